"""Tables of counts from a noisy second moment, with intervals and a test of independence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray
from scipy.special import gammaincc

from gramercy.estimators.table_units import TableUnits, weight_lost
from gramercy.estimators.uncertainty.jackknife import (
    Statistic,
    describe_sampling,
    jackknife,
    student_quantile,
)
from gramercy.estimators.uncertainty.tails import critical_value, gamma_shape
from gramercy.schemas.column import level_names
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

# A table of shares from the entries of a second moment that count its cells and margins.
#
# Levels are entries 0 or 1 of a row, so the released matrix has, with noise, the total weight of
# the rows with levels i and j (off the diagonal), that of the rows with level i twice (on the
# diagonal, and with the intercept), and that of all rows. The cells of a table, with one more row
# and column for cells of no declared level, are estimated from all of these by weighted least
# squares, without negative cells. So cells add up to the margins and the margins to the total, and
# shares to 1.
#
# Rows within the clipping radius all have the weight 1, so without clipped rows these are plain
# shares; see `table_units`.

Array = NDArray[np.float64]
Indices = list[int]


@dataclass(frozen=True)
class NoisyTable:
    """Shares of the rows; cells in order of rows, then columns, those of no level last."""

    # numbers of rows and columns of the table, (a + 1, b + 1); (a + 1, 1) for one column
    shape: tuple[int, int]
    # not negative, of sum 1; shape (a + 1, b + 1). NaN if noise hides the weight of all rows.
    share: Array
    unbiased: Array  # the same without the bound at zero; some may be negative
    # covariance of the errors of `unbiased` by noise, to first order; shape (cells, cells)
    noise: Array
    # `unbiased` as a function of the second moment, such as that of some folds; shape (cells,)
    shares_of: Statistic


def noisy_table(evidence: Evidence, rows: Indices, columns: Indices) -> NoisyTable:
    """The table of two columns of levels, or of one.

    `evidence`: a release with an intercept, in which rows were not divided by their own length.
    `rows`, `columns`: matrix columns of the levels of both; none for the table of one column.
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


ALL, OTHER = "(all)", "(no declared level)"  # lines of margins, and of other cells


def table_frame(
    evidence: Evidence, rows: LevelsFacts, columns: LevelsFacts | None, level: float
) -> pd.DataFrame:
    """The cells of two columns of levels, or of one, and their margins.

    `evidence`: a release with an intercept, in which rows were not divided by their own length.
    Returns ``row`` and ``column``, the levels; ``count`` with ``count_lower`` and ``count_upper``,
    an interval that covers the noise alone; ``share`` with ``standard_error``, ``lower`` and
    ``upper``, which cover noise and sampling; and ``law``, what is assumed about sampling. NaN if
    noise hides the weight of all rows.
    """
    table = noisy_table(evidence, level_indices(evidence, rows), level_indices(evidence, columns))
    sums, labels = _lines(table.shape, rows, columns)
    share, unbiased = sums @ table.share.ravel(), sums @ table.unbiased.ravel()
    noise = np.sqrt(np.maximum(((sums @ table.noise) * sums).sum(axis=1), 0.0))
    entry = gamma_shape(evidence.law, np.eye(len(evidence.raw))[:2])[:1, 1]
    z = float(critical_value(1 - level, np.ones(1), entry)[0])  # sums have lighter tails
    n = evidence.rows
    reach = z * np.hypot(noise, unbiased * evidence.rows_sd / max(n, 1.0))
    count_lower, count_upper = (n * each for each in _bounds(unbiased, reach, share, np.inf))
    error = np.hypot(noise, np.sqrt(np.maximum(share * (1 - share), 0.0) / max(n, 1.0)))
    folds = jackknife(evidence, lambda matrix: sums @ table.shares_of(matrix))
    if folds is not None:
        error = np.maximum(folds.standard_error, noise)
        z = max(z, student_quantile(level, folds.freedom))
    lower, upper = _bounds(unbiased, z * error, share, 1.0)
    return pd.DataFrame(
        {
            "row": pd.Series([row for row, _ in labels], dtype="str"),
            "column": pd.Series([column for _, column in labels], dtype="str"),
            "count": share * n,
            "count_lower": count_lower,
            "count_upper": count_upper,
            "share": share,
            "standard_error": error,
            "lower": lower,
            "upper": upper,
            "law": pd.Series([describe_sampling(evidence)] * len(labels), dtype="str"),
        }
    )


def level_indices(evidence: Evidence, facts: LevelsFacts | None) -> Indices:
    """Matrix columns of the levels of a column; none for None."""
    return [k for k, column in enumerate(evidence.columns) if facts and column == facts]


def _bounds(unbiased: Array, reach: Array, share: Array, largest: float) -> tuple[Array, Array]:
    """Bounds that contain the share, and are not a point where noise made `unbiased` negative."""
    lower = np.clip(unbiased - reach, 0.0, largest)
    upper = np.clip(np.maximum(unbiased, 0.0) + reach, 0.0, largest)
    return np.minimum(lower, share), np.maximum(upper, share)


def _lines(
    shape: tuple[int, int], rows: LevelsFacts, columns: LevelsFacts | None
) -> tuple[Array, list[tuple[str, str]]]:
    """Which cells each line sums, and its labels: the cells, then the margins and the total."""
    cells = np.eye(shape[0] * shape[1]).reshape(*shape, -1)
    everything = cells.sum(axis=(0, 1))[None]
    *first, all_rows = _labels(rows)
    if columns is None:
        labels = [(name, "") for name in (*first, all_rows)]
        return np.concatenate([cells[:, 0], everything]), labels
    *second, all_columns = _labels(columns)
    margins = (cells.sum(axis=1), cells.sum(axis=0), everything)
    labels = [(row, column) for row in first for column in second]
    labels += [(row, all_columns) for row in first]
    labels += [(all_rows, column) for column in (*second, all_columns)]
    return np.concatenate([cells.reshape(shape[0] * shape[1], -1), *margins]), labels


def _labels(column: LevelsFacts) -> list[str]:
    """The levels, then those of other cells and of the margin: in more parentheses than a level."""
    names = level_names(column.levels)
    for label in (OTHER, ALL):
        depth = next(k for k in range(len(names) + 1) if _enclosed(label, k) not in names)
        names.append(_enclosed(label, depth))
    return names


def _enclosed(label: str, depth: int) -> str:
    return "(" * depth + label + ")" * depth


# Test of independence of two columns of levels, from a noisy table of shares.
#
# With shares p_ij among the cells of declared levels, the differences d_ij = p_ij - p_i. p_.j have,
# if the columns are independent, the covariance of multinomial sampling and that of the noise. To
# first order both follow from d = G p with G = (I - r 1^T) (x) (I - c 1^T) for the margins r and c.
# The quadratic form of d in the inverse of this covariance has a chi-squared distribution with
# (k - 1) (l - 1) degrees of freedom. Without noise it is Pearson's statistic.
#
# Levels whose share noise may explain are left out. Rows beyond the clipping radius count less than
# others, so that with many of them sampling errors are larger than multinomial ones.

_CLEAR = 3.0  # standard deviations of the noise that the share or weight of a level must exceed


@dataclass(frozen=True)
class Independence:
    """A test of independence."""

    # Chi-squared statistic and its degrees of freedom
    statistic: float
    freedom: int
    p_value: float
    # Cramer's V, between 0 and 1, corrected for what noise and sampling add to it
    association: float
    # smallest expected count of a cell; below 5 the test without noise is inexact
    least_expected: float
    # numbers of levels that are in use
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
    margins = [np.maximum(shares.sum(axis=axis), 0.0) for axis in (1, 0)]
    rows, columns = (margin / margin.sum() for margin in margins)
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


# Means of the numeric columns within each level of a column, with intervals.
#
# With the weights of level k, S_0k and S_kk, which estimate the same number, the mean of column x
# in level k is S_kx / w_k for their average w_k by inverse variances. If a share o of the cells of
# x is present, it is divided by o: missing cells are zero in scaled units.


def group_means(
    evidence: Evidence, units: TableUnits, by: LevelsFacts, level: float
) -> pd.DataFrame:
    """One line for each level and numeric column, in the columns' own units.

    Returns ``level``, ``column``, ``mean``, ``standard_error``, ``lower``, ``upper``, ``law``. NaN
    for levels whose weight is within three standard deviations of the noise.

    Standard errors cover noise and sampling. Without folds, sampling errors take the variance
    within each level to be that of the whole column.
    """
    levels = level_indices(evidence, by)
    numeric = [k for k, each in enumerate(evidence.columns) if isinstance(each, ColumnFacts)]
    scaled = np.array(numeric, dtype=np.intp) - 1
    centre, scale, present = (each[scaled] for each in (units.centre, units.scale, units.present))
    variances = evidence.deviations**2
    pair = np.array([variances[0, levels], np.diag(variances)[levels]])
    inverse = 1 / np.where(pair > 0, pair, 1.0)
    of_weight = 1 / inverse.sum(axis=0) if evidence.law.has_noise else np.zeros(len(levels))

    def weights(matrix: Array) -> Array:
        both = np.array([matrix[0, levels], np.diag(matrix)[levels]])
        averaged: Array = (both * inverse).sum(axis=0) / inverse.sum(axis=0)
        return averaged

    def means(matrix: Array) -> Array:
        of_levels = weights(matrix)[:, None]
        positive = np.where(of_levels > 0, of_levels, np.nan)
        return centre + scale * matrix[np.ix_(levels, numeric)] / positive / present

    weight = weights(evidence.raw)
    clear = weight > np.maximum(_CLEAR * np.sqrt(of_weight), 0.0)
    safe = np.where(clear, weight, np.nan)[:, None]
    estimate = np.where(clear[:, None], means(evidence.raw), np.nan)
    ratio = (estimate - centre) / scale
    noise_variance = variances[np.ix_(levels, numeric)] / present**2
    noise = scale * np.sqrt(noise_variance + ratio**2 * of_weight[:, None]) / safe
    spread = np.maximum(np.diag(units.moments(evidence.repaired).covariance)[scaled], 0.0)
    share = np.clip(safe / evidence.raw[0, 0], 0.0, 1.0)
    sampling = np.sqrt(spread / present / (share * max(evidence.rows, 1.0)))
    error, z = np.hypot(noise, sampling), student_quantile(level, np.inf)
    folds = jackknife(evidence, means)
    if folds is not None:
        error, z = np.maximum(folds.standard_error, noise), student_quantile(level, folds.freedom)
    names = [units.names[k] for k in scaled]
    labels = [name for name in level_names(by.levels) for _ in names]
    return pd.DataFrame(
        {
            "level": pd.Series(labels, dtype="str"),
            "column": pd.Series(names * len(levels), dtype="str"),
            "mean": estimate.ravel(),
            "standard_error": error.ravel(),
            "lower": (estimate - z * error).ravel(),
            "upper": (estimate + z * error).ravel(),
            "law": pd.Series([describe_sampling(evidence)] * len(labels), dtype="str"),
        }
    )
