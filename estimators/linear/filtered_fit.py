"""Regression coefficients from noisy moments, by Tikhonov's filter on the squared spectrum.

With the eigenvalues w and eigenvectors V of C_xx, and delta of the size of the squared noise, the
fit for prediction and the coefficients with less bias are

b = V f V^T C_xy,   f = w_+ / (w^2 + delta),
b2 = M C_xy,   M = V f2 V^T,   f2 = f (2 - w f).

The bias of b is delta / w^2 of the signal in each direction, while that of ridge regression is
penalty / w; that of b2 is the square of it. Directions without signal are left out, so that
collinear columns do not amplify the noise.

Tikhonov and Arsenin (1977), "Solutions of ill-posed problems".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.linear.moments import Moments

Array = NDArray[np.float64]

_DELTA = 4.0  # times k and the squared standard deviation of the noise
_ROUNDING = 1e-12  # eigenvalues below this share of the largest one are zero


@dataclass(frozen=True)
class FilteredFit:
    """Coefficients of k regressors, in the units of the moments.

    Parameters
    ----------
    fitted
        b, for prediction; shape (k,).
    coefficients
        b2, for inference; shape (k,).
    inverse
        M, shape (k, k).
    leakage
        I - M C_xx, with negative eigenvalues as zero: how a coefficient mixes with others in
        directions that noise hides. Shape (k, k), zero without noise.
    positive
        C_xx with negative eigenvalues as zero.
    filter_trace, filter_norm
        tr f, and b^T V f V^T b: the size of the noise that the fit follows.
    """

    fitted: Array
    coefficients: Array
    inverse: Array
    leakage: Array
    positive: Array
    filter_trace: float
    filter_norm: float


def regularisation(noise: float, regressors: int) -> float:
    """The regularisation delta for noise of this standard deviation."""
    return _DELTA * regressors * noise**2


def filtered_fit(moments: Moments, delta: float) -> FilteredFit:
    """The fit of the outcome by the regressors; `delta` is not negative."""
    inner, cross = moments.covariance[1:, 1:], moments.covariance[1:, 0]
    values, vectors = np.linalg.eigh(inner)
    positive = np.maximum(values, 0.0)
    kept = positive > _ROUNDING * positive.max(initial=0.0)
    first = np.divide(positive, positive**2 + delta, out=np.zeros_like(values), where=kept)
    second = first * (2 - positive * first)

    def in_columns(spectrum: Array) -> Array:
        matrix: Array = (vectors * spectrum) @ vectors.T
        return matrix

    inverse = in_columns(second)
    fitted = in_columns(first) @ cross
    return FilteredFit(
        fitted,
        inverse @ cross,
        inverse,
        in_columns(1 - positive * second),
        in_columns(positive),
        float(first.sum()),
        float(fitted @ in_columns(first) @ fitted),
    )
