"""Least squares from noisy moments, by Tikhonov's filter in the metric of the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.estimators.linear.noise_metric import NoiseMetric

# Let the noise of C_xx be B E B^T with spherical E. With the eigenvalues w and eigenvectors U of
# B^-1 C_xx B^-T, V = B^-T U, and delta of the size of the squared noise E, the fit for prediction
# and the coefficients with less bias are
#
# b = V f V^T C_xy,   f = w_+ / (w^2 + delta),
# b2 = M C_xy,   M = V f2 V^T,   f2 = f (2 - w f).
#
# The bias of b is delta / w^2 of the signal in each direction, while that of ridge regression is
# penalty / w; that of b2 is the square of it. Directions without signal are left out, so that
# collinear columns do not amplify the noise.
#
# Tikhonov and Arsenin (1977), "Solutions of ill-posed problems".

Array = NDArray[np.float64]

_DELTA = 4.0  # times k and the squared standard deviation of the noise
_ROUNDING = 1e-12  # eigenvalues below this share of the largest one are zero


class Moments(NamedTuple):
    """Moments of the outcome, first, and of the k regressors."""

    weight: float  # mean weight s of the rows; NaN if it is not positive
    mean: Array  # not moved towards the centres; shape (1 + k,)
    covariance: Array  # C, shape (1 + k, 1 + k); may be indefinite

    def of(self, regressors: NDArray[np.bool_]) -> Moments:
        """Moments of the outcome and of some of the regressors, shape (k,)."""
        kept = np.append(True, regressors)
        return Moments(self.weight, self.mean[kept], self.covariance[np.ix_(kept, kept)])


@dataclass(frozen=True)
class FilteredFit:
    """Coefficients of k regressors, in the units of the moments."""

    fitted: Array  # b, for prediction; shape (k,)
    coefficients: Array  # b2, for inference; shape (k,)
    inverse: Array  # M, shape (k, k)
    # (I - M C_xx) B^-T up to a rotation, with negative eigenvalues as zero: how a coefficient mixes
    # with others in directions that noise hides. Shape (k, k), zero without noise.
    leakage: Array
    positive: Array  # C_xx with negative eigenvalues as zero
    first: Array  # f, shape (k,)
    directions: Array  # V, shape (k, k)
    metric: NoiseMetric  # of the noise in C_xx


def regularisation(noise: float, regressors: int) -> float:
    """The regularisation delta for noise of this standard deviation."""
    return _DELTA * regressors * noise**2


def filtered_fit(moments: Moments, noise: NoiseMetric, delta: float) -> FilteredFit:
    """The fit of the outcome by the regressors; `delta` is not negative.

    `noise`: that of the moments of the outcome and the regressors.
    """
    metric = noise.among(np.arange(len(noise.shape)) > 0)
    inner, cross = moments.covariance[1:, 1:], moments.covariance[1:, 0]
    values, vectors = np.linalg.eigh(congruence(metric.back, inner))
    positive = np.maximum(values, 0.0)
    kept = positive > _ROUNDING * positive.max(initial=0.0)
    first = np.divide(positive, positive**2 + delta, out=np.zeros_like(values), where=kept)
    second = first * (2 - positive * first)
    directions = metric.back.T @ vectors

    def in_columns(spectrum: Array) -> Array:
        matrix: Array = (directions * spectrum) @ directions.T
        return matrix

    inverse, of_moments = in_columns(second), metric.shape @ directions
    return FilteredFit(
        in_columns(first) @ cross,
        inverse @ cross,
        inverse,
        directions * (1 - positive * second),
        (of_moments * positive) @ of_moments.T,
        first,
        directions,
        metric,
    )
