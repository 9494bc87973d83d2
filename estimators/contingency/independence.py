"""Test of independence of two columns of levels, from a noisy table of shares.

With shares p_ij among the cells of declared levels, the differences d_ij = p_ij - p_i. p_.j have,
if the columns are independent, the covariance of multinomial sampling and that of the noise. To
first order both follow from d = G p with G = (I - r 1^T) (x) (I - c 1^T) for the margins r and c.
The quadratic form of d in the inverse of this covariance has a chi-squared distribution with
(k - 1) (l - 1) degrees of freedom. Without noise it is Pearson's statistic.

Levels whose share noise may explain are left out. Rows beyond the clipping radius count less than
others, so that with many of them sampling errors are larger than multinomial ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from gramercy.estimators.contingency.noisy_table import NoisyTable

Array = NDArray[np.float64]

_CLEAR = 3.0  # standard deviations of the noise that the share of a level must exceed


@dataclass(frozen=True)
class Independence:
    """A test of independence.

    Parameters
    ----------
    statistic, freedom, p_value
        Chi-squared statistic and its degrees of freedom.
    association
        Cramer's V, between 0 and 1, corrected for what noise and sampling add to it.
    least_expected
        Smallest expected count of a cell; below 5 the test without noise is inexact.
    rows, columns
        Numbers of levels that are in use.
    """

    statistic: float
    freedom: int
    p_value: float
    association: float
    least_expected: float
    rows: int
    columns: int


def independence(table: NoisyTable, sample: float) -> Independence:
    """Test independence; `sample` is the number of rows.

    NaN if fewer than two levels of either column are clear of the noise.
    """
    a, b = (size - 1 for size in table.shape)
    cells = np.arange(table.unbiased.size).reshape(table.shape)[:a, :b]
    cells = cells[_clear(table, cells, 1)][:, _clear(table, cells, 0)]
    k, size = cells.shape
    total = float(table.unbiased.ravel()[cells].sum())
    if min(k, size) < 2 or not total > 0:
        return Independence(math.nan, 0, math.nan, math.nan, math.nan, k, size)
    shares = table.unbiased.ravel()[cells] / total
    rows, columns = (_margin(shares, axis) for axis in (1, 0))
    expected = np.outer(rows, columns)
    contrasts = np.kron(np.eye(k) - rows[:, None], np.eye(size) - columns[:, None])
    noise = table.noise[np.ix_(cells.ravel(), cells.ravel())] / total**2
    flat = expected.ravel()
    sampling = (np.diag(flat) - np.outer(flat, flat)) / (sample * total)
    covariance = contrasts @ (noise + sampling) @ contrasts.T
    difference = (shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).ravel()
    inner = np.arange(k * size).reshape(k, size)[:-1, :-1].ravel()
    within = covariance[np.ix_(inner, inner)]
    statistic = float(difference[inner] @ np.linalg.solve(within, difference[inner]))
    freedom = len(inner)
    excess = float(((difference**2 - np.diag(covariance)) / flat).sum())
    return Independence(
        statistic,
        freedom,
        float(gammaincc(freedom / 2, max(statistic, 0.0) / 2)),
        min(math.sqrt(max(excess, 0.0) / (min(k, size) - 1)), 1.0),
        float(expected.min()) * sample * total,
        k,
        size,
    )


def _clear(table: NoisyTable, cells: NDArray[np.intp], axis: int) -> NDArray[np.bool_]:
    """The levels whose share among declared cells is above the noise."""
    lines = cells if axis == 1 else cells.T
    shares = np.array([table.unbiased.ravel()[line].sum() for line in lines])
    variances = np.array([table.noise[np.ix_(line, line)].sum() for line in lines])
    clear: NDArray[np.bool_] = shares > _CLEAR * np.sqrt(np.maximum(variances, 0.0))
    return clear


def _margin(shares: Array, axis: int) -> Array:
    margin = np.maximum(shares.sum(axis=axis), 0.0)
    normalised: Array = margin / margin.sum()
    return normalised
