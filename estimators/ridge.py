"""Ridge precision matrix.

Su, Guo and Zhang (2020), Algorithm 1; Kuismin, Kemppainen and Sillanpää (2017):

minimise over positive definite T:  -log det T + tr(S T) + penalty ||T||_F^2
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from estimators.estimator import Estimator, Evidence, Precision
from schemas.model import Positive

Array = NDArray[np.float64]


class Ridge(Estimator):
    """``ridge``: a dense precision matrix.

    Parameters
    ----------
    penalty
        A positive number, or ``auto``: from the noise law and the number of rows.
    input
        ``denoised`` (the default) or ``raw``.
    """

    name: Literal["ridge"] = "ridge"
    penalty: Literal["auto"] | Positive = "auto"
    input: Literal["denoised", "raw"] = "denoised"

    def fit(self, evidence: Evidence) -> Precision:
        """See `Estimator.fit`."""
        penalty = auto_penalty(evidence) if self.penalty == "auto" else self.penalty
        matrix = evidence.denoised if self.input == "denoised" else evidence.raw
        return Precision(ridge_precision(matrix, penalty), penalty)


def ridge_precision(matrix: Array, penalty: float) -> Array:
    """The unique minimiser, in closed form; the input may be indefinite.

    Parameters
    ----------
    matrix
        S, symmetric, shape (p, p).
    penalty
        Positive.

    Returns
    -------
    ndarray, shape (p, p)
        Symmetric, positive definite.

    Raises
    ------
    ValueError
        If the penalty is not positive and finite.

    Notes
    -----
    With S = M diag(phi) M^T, T = M diag(t) M^T, t = 2 / (phi + sqrt(phi^2 + 8 penalty)); for
    phi < 0 the same number as (sqrt(phi^2 + 8 penalty) - phi) / (4 penalty), which does not
    cancel.
    """
    if not (penalty > 0 and math.isfinite(penalty)):
        raise ValueError("the penalty must be positive and finite")
    phi, vectors = np.linalg.eigh(matrix)
    root = np.hypot(phi, math.sqrt(8 * penalty))
    with np.errstate(divide="ignore"):
        t = np.where(phi > 0, 2 / (phi + root), (root - phi) / (4 * penalty))
    product: Array = (vectors * t) @ vectors.T
    return (product + product.T) / 2


def auto_penalty(evidence: Evidence) -> float:
    """A penalty from public facts: the noise law, the shape, and the trace of unit rows.

    Notes
    -----
    At phi = 0 the estimate is 1 / sqrt(2 penalty), so sqrt(2 penalty) acts as the smallest
    eigenvalue that is believed. It is set to what noise (sd sqrt p) and sampling
    (sqrt(p / n) of the average eigenvalue 1/p) can make of an eigenvalue that is zero.
    """
    p = evidence.raw.shape[0]
    noise = evidence.law.sd_off_diagonal * math.sqrt(p)
    sampling = math.sqrt(p / max(evidence.rows, 1.0)) / p
    return math.hypot(noise, sampling) ** 2 / 2
