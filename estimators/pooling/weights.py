"""Weights of the releases of a pool: inverse to the variance of their entries.

One weight for a release keeps the pool a linear map of the releases, so that its noise is exact and
its matrix as positive as theirs. An entry of release a has the variance v_a from noise, and from
sampling if the rows are different. The weight is proportional to 1 / v_a, where v_a is the
geometric mean over the entries off the diagonal: it does not depend on the units of the columns,
and where releases differ by a factor only, it is the inverse variance of every entry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.denoise import project
from gramercy.estimators.uncertainty.row_law import sampling_covariance

Array = NDArray[np.float64]


def weights(variances: Sequence[Array]) -> Array:
    """Weights that add up to 1, inverse to the variances.

    Parameters
    ----------
    variances
        Variance of every entry of each matrix, shape (p, p) each.

    Returns
    -------
    ndarray, shape (k,)
        Equal among matrices without errors, if there are any.
    """
    p = len(variances[0])
    entries = np.triu_indices(p, 1) if p > 1 else (np.zeros(1, int), np.zeros(1, int))
    values = np.array([variance[entries] for variance in variances])
    exact = ~(values > 0).all(axis=1)
    if exact.any():
        shares: Array = exact / exact.sum()
        return shares
    logarithms = np.log(values).mean(axis=1)
    inverse = np.exp(logarithms.min() - logarithms)
    total: Array = inverse / inverse.sum()
    return total


def sampling_variance(
    matrices: Sequence[Array], rows: Sequence[float], *, unit: bool, intercept: bool
) -> Array:
    """Sampling variance of every entry for one row, under the assumed law of the rows.

    Parameters
    ----------
    matrices, rows
        The matrices of the tables in common units, and their numbers of rows.
    unit, intercept
        See `estimators.uncertainty.row_law.sampling_covariance`.

    Returns
    -------
    ndarray, shape (p, p)
        At the average matrix of all tables.
    """
    average = np.average(np.array(matrices), axis=0, weights=np.maximum(rows, 1.0))
    moment = project(average, np.inf)
    law = sampling_covariance(moment, 1.0, unit=unit, intercept=intercept)
    return np.maximum(law.variance(len(moment)), 0.0)
