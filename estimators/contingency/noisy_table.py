"""A table of shares from the entries of a second moment that count its cells and margins.

Levels are entries 0 or 1 of a row, so the released matrix has, with noise, the total weight of the
rows with levels i and j (off the diagonal), that of the rows with level i twice (on the diagonal,
and with the intercept), and that of all rows. The cells of a table, with one more row and column
for cells of no declared level, are estimated from all of these by weighted least squares, without
negative cells. So cells add up to the margins and the margins to the total, and shares to 1.

Rows within the clipping radius all have the weight 1, so without clipped rows these are plain
shares; see `own_units`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from gramercy.estimators.own_units import weight_lost
from gramercy.estimators.uncertainty.jackknife import Statistic
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]
Indices = list[int]


@dataclass(frozen=True)
class NoisyTable:
    """Shares of the rows; cells in order of rows, then columns, those of no level last.

    Parameters
    ----------
    shape
        Numbers of rows and columns of the table, (a + 1, b + 1); (a + 1, 1) for one column.
    share
        Not negative, of sum 1; shape (a + 1, b + 1). NaN if noise hides the weight of all rows.
    unbiased
        The same without the bound at zero; some may be negative.
    noise
        Covariance of the errors of `unbiased` by noise, to first order; shape (cells, cells).
    shares_of
        `unbiased` as a function of the second moment, such as that of some folds; shape (cells,).
    """

    shape: tuple[int, int]
    share: Array
    unbiased: Array
    noise: Array
    shares_of: Statistic


def noisy_table(evidence: Evidence, rows: Indices, columns: Indices) -> NoisyTable:
    """The table of two columns of levels, or of one.

    Parameters
    ----------
    evidence
        A release with an intercept, in which rows were not divided by their own length.
    rows, columns
        Matrix columns of the levels of both; none for the table of one column.
    """
    shape = (len(rows) + 1, len(columns) + 1)
    sums, at = _measurements(rows, columns)
    deviation = evidence.deviations[at]
    weight = 1 / np.where(deviation > 0, deviation, 1.0)
    weighted = sums * weight[:, None]
    covariance = np.linalg.inv(weighted.T @ weighted)
    solution = covariance @ weighted.T * weight

    def shares_of(matrix: Array) -> Array:
        cells = solution @ matrix[at]
        shares: Array = cells / cells.sum()
        return shares

    if weight_lost(evidence.raw, evidence.deviations):
        unknown, no_noise = np.full(shape, np.nan), np.full(covariance.shape, np.nan)
        return NoisyTable(shape, unknown, unknown, no_noise, shares_of)
    released = evidence.raw[at]
    bounded = scipy.optimize.nnls(weighted, weight * released, maxiter=100 * len(covariance))[0]
    unbiased = shares_of(evidence.raw)
    total = float((solution @ released).sum())
    to_shares = (np.eye(unbiased.size) - np.outer(unbiased, np.ones(unbiased.size))) / total
    if not evidence.law.has_noise:
        covariance = np.zeros_like(covariance)
    return NoisyTable(
        shape,
        (bounded / bounded.sum()).reshape(shape),
        unbiased.reshape(shape),
        to_shares @ covariance @ to_shares.T,
        shares_of,
    )


def _measurements(rows: Indices, columns: Indices) -> tuple[Array, tuple[Indices, Indices]]:
    """Which cells each released entry sums, shape (entries, cells), and where the entries are."""
    a, b = len(rows), len(columns)
    cells = np.eye((a + 1) * (b + 1)).reshape(a + 1, b + 1, -1)
    of_rows, of_columns = cells[:a].sum(axis=1), cells[:, :b].sum(axis=0)
    pairs = cells[:a, :b].reshape(a * b, cells.shape[-1])
    everything = cells.sum(axis=(0, 1))[None]
    sums = np.concatenate([pairs, of_rows, of_rows, of_columns, of_columns, everything])
    first = [i for i in rows for _ in columns] + rows + [0] * a + columns + [0] * b + [0]
    second = columns * a + rows + rows + columns + columns + [0]
    return sums, (first, second)
