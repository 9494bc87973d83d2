"""The regressors that a lasso selects, from noisy moments.

With unit columns, P the denoised moments of the k regressors and c their noisy moments with the
outcome,

minimise over b  b^T P b / 2 - c^T b + sum penalty_i |b_i|,
penalty_i^2 = 2 log(1 + k) (tails r / n + t_i^2 |e|^2),

where r is the variance of the residuals, e = (1, -b) in the units of the moments, and t_i |e| the
standard deviation of the noise in c_i - (P b)_i. So the penalty is a little above what sampling and
noise together do to the largest of k scores: coefficients that these could have made are zero. As r
and e depend on b, there are two rounds. The selected coefficients are not those of the lasso, which
are too small, but those of `filtered_fit` without the other regressors (Meinshausen 2007, "Relaxed
lasso").

Tibshirani (1996), "Regression shrinkage and selection via the lasso".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.linear.moments import Moments
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.solvers.columnwise import columnwise

Array = NDArray[np.float64]

_ROUNDS = 2  # lasso problems; the second knows r and e of the first
_RIDGE = 1e-4  # on unit diagonals, so that the lasso converges for duplicate columns
_LEAST_RESIDUAL = 1e-3  # share of the outcome's variance, of which noise may leave less, or none
_CLEAR = 2.0  # standard deviations of the noise that the variance of a regressor must exceed


def lasso_selection(
    noisy: Moments, denoised: Moments, noise: float, rows: float, tails: float
) -> NDArray[np.bool_]:
    """Which of k regressors are selected, shape (k,).

    Parameters
    ----------
    noisy, denoised
        Moments of the matrix as released, and of the denoised one.
    noise
        Standard deviation of the noise in a moment off the diagonal.
    rows
        Number of rows.
    tails
        Factor of the sampling variance for rows with heavy tails.
    """
    moment = project(denoised.covariance[1:, 1:], np.inf)
    clear = np.flatnonzero(np.diag(moment) > _CLEAR * np.sqrt(2) * noise)
    selected = np.zeros(len(moment), dtype=bool)
    if clear.size == 0:
        return selected
    outcome = float(np.sqrt(noisy.covariance[0, 0]))
    root = np.sqrt(np.diag(moment)[clear])
    unit = moment[np.ix_(clear, clear)] / np.outer(root, root) + _RIDGE * np.eye(clear.size)
    correlations = noisy.covariance[1:, 0][clear] / (root * outcome)
    lasso = np.zeros(clear.size)
    for _ in range(_ROUNDS):
        explained = float(2 * lasso @ correlations - lasso @ unit @ lasso)
        residual = max(1 - explained, _LEAST_RESIDUAL)
        squared_length = 1 + float(((outcome * lasso / root) ** 2).sum())
        variances = tails * residual / rows + squared_length * (noise / (root * outcome)) ** 2
        penalties = np.sqrt(2 * np.log(1 + clear.size) * variances)
        lasso = columnwise(unit, correlations[:, None], penalties[:, None]).coefficients[:, 0]
    selected[clear] = lasso != 0
    return selected
