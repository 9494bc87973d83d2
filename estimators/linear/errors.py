"""Errors of a regression by noise and by sampling, as covariances of its scores.

Let e = (-a, 1, -b) be the coefficients of the residual y - a - b x, in the order of intercept,
outcome and regressors. The error E of the moments moves the scores of the normal equations by
u = E e, so to first order the coefficients move by M (u_x - m_x u_0).

*Noise.* The covariance of u follows exactly from that of the noise. For isotropic Gaussian noise of
deviation t off the diagonal it is t^2 (|e|^2 I + e e^T).

*Sampling.* If the residuals are independent of the regressors, u_x - m_x u_0 has the covariance
res C_xx / n, where res is the variance of the residuals. `linear.missing_cells` has the form for
missing cells. For rows with heavy tails there is a factor: `uncertainty.tail_factor`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.linear.moments import Moments
from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance

Array = NDArray[np.float64]


def noise_of_scores(noise: EntryCovariance, residual: Array) -> Array:
    """Covariance of E e; shape (p, p).

    Parameters
    ----------
    noise
        Covariance of the entries of E.
    residual
        e, shape (p,).
    """
    covariance = np.zeros((len(residual), len(residual)))
    for left, right in noise.products:
        of_left, of_right = left @ residual, right @ residual
        cross = np.outer(of_left, of_right)
        covariance += (left * (residual @ of_right) + right * (residual @ of_left)) / 2
        covariance += (cross + cross.T) / 2
    for c, matrix in noise.rank_one:
        covariance += c * np.outer(matrix @ residual, matrix @ residual)
    for c, linear in noise.quartic:
        covariance += c * (linear * (linear.T @ residual) ** 2) @ linear.T
    return covariance


def sampling_of_scores(moments: Moments, positive: Array, variance: float) -> Array:
    """Sampling covariance of sqrt(n) times (u_0, u_x - m_x u_0); shape (1 + k, 1 + k).

    Parameters
    ----------
    moments
        Moments of the outcome, first, and the k regressors, of whose cells none is missing.
    positive
        C_xx without negative eigenvalues, shape (k, k).
    variance
        Of the residuals.
    """
    scores = np.zeros_like(moments.covariance)
    scores[0, 0] = variance * moments.weight
    scores[1:, 1:] = variance * positive
    return scores
