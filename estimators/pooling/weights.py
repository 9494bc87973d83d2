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
    typical = np.array([typical_error(variance) for variance in variances])
    exact = typical == 0
    if exact.any():
        shares: Array = exact / exact.sum()
        return shares
    inverse = (typical.min() / typical) ** 2
    total: Array = inverse / inverse.sum()
    return total


def typical_error(variance: Array) -> float:
    """The geometric mean of the standard deviations of all pairs of columns.

    Parameters
    ----------
    variance
        Variance of every entry of a matrix, shape (p, p). The diagonal counts if p = 1.

    Returns
    -------
    float
        0 if an entry has no error.
    """
    p = len(variance)
    values = variance[np.triu_indices(p, 1)] if p > 1 else variance.ravel()
    return float(np.exp(np.log(values).mean() / 2)) if (values > 0).all() else 0.0


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
