"""Tables of counts of levels, with intervals and a test of independence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import gammaincc

from gramercy.estimators.clipped_moments import Z95, ClippedMoments
from gramercy.estimators.column_tails import ColumnTails
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.released_table import LAW, ReleasedTable, Shares, likely_difference
from gramercy.estimators.table_units import TableUnits
from gramercy.estimators.uncertainty.entry_estimates import Target
from gramercy.estimators.uncertainty.jackknife import (
    describe_sampling,
    jackknife,
    student_quantile,
)
from gramercy.schemas.column import level_names
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

# A table of shares of two columns of levels.
#
# Levels are entries 0 or 1 of a row, so the released matrix has, with noise, the weight of the rows
# with levels i and j. The shares of the levels themselves, and of cells of no declared level, are
# known better: see `released_table`. The cells are estimated by least squares with these shares as
# margins. Of the cells of no declared level only their margins are known, which are small: each is
# near the product of its margins. Then negative cells are removed, and the table is raked, so that
# cells add up to the margins, and the margins to 1.

Array = NDArray[np.float64]

_LIKELY = 2.0  # standard deviations that a small share may be larger than its estimate
_SMALLEST = 0.1  # rows; standard deviation of a cell that is known otherwise
_ROUNDS, _RAKINGS, _CLOSE = 20, 1000, 1e-13


@dataclass(frozen=True)
class CrossShares:
    """Shares of the rows by two columns; those of no declared level last."""

    rows: Shares  # margins, shape (a + 1,)
    columns: Shares  # margins, shape (b + 1,)
    cells: Shares  # in order of rows, then columns; shape ((a + 1) (b + 1),)
    # what the matrix tells of the declared levels alone, and its noise; shape (a, b)
    measured: Array
    measured_error: Array


def cross_shares(known: ReleasedTable, rows: LevelsFacts, columns: LevelsFacts) -> CrossShares:
    """The table of two columns; NaN where noise hides the weight of all rows."""
    margins = known.levels(rows), known.levels(columns)
    a, b = (len(each.value) - 1 for each in margins)
    size, weights, n = (a + 1) * (b + 1), known.weights, known.rows.value
    if weights is None:
        unknown, none = np.full(size, np.nan), np.full((size, size), np.nan)
        cells = Shares(unknown, unknown, none, np.zeros(size), n)
        return CrossShares(*margins, cells, unknown[: a * b].reshape(a, b), np.zeros((a, b)))
    at = np.ix_(*(level_indices(known.evidence, each) for each in (rows, columns)))
    measured, noise = weights.matrix[at], weights.variance[at]
    bias = weights.hidden * likely_difference(measured)

    # Cells of no declared level are expected to be the product of their margins.
    r, c = (each.value for each in margins)
    expected, variance = np.outer(r, c), np.zeros((a + 1, b + 1))
    few = [each.value[-1] + _LIKELY * each.noise_error[-1] for each in margins]
    variance[:, -1], variance[-1, :] = few[1] ** 2 * r, few[0] ** 2 * c
    variance[-1, -1] = (few[0] * few[1]) ** 2
    variance = np.maximum(variance, (_SMALLEST / n) ** 2)
    expected[:-1, :-1], variance[:-1, :-1] = measured, np.maximum(noise + bias**2, 1e-18)

    sums = np.concatenate([np.kron(np.eye(a + 1), np.ones(b + 1)), np.tile(np.eye(b + 1), a + 1)])
    fit = _Margins.of(expected.ravel(), variance.ravel(), sums, np.concatenate([r, c]))
    own = variance.copy()
    own[:-1, :-1] = noise
    covariance = fit.by_cells * own.ravel() @ fit.by_cells.T
    for which, margin in enumerate(margins):
        part = fit.by_margins[:, : a + 1] if which == 0 else fit.by_margins[:, a + 1 :]
        covariance += part @ margin.covariance @ part.T
    scaled = np.zeros((a + 1, b + 1))
    scaled[:-1, :-1] = -measured * weights.total_error
    moved = fit.by_cells @ scaled.ravel()
    covariance += np.outer(moved, moved)
    widths = np.zeros((a + 1, b + 1))
    widths[:-1, :-1] = bias
    of_bias = np.abs(fit.by_cells) @ widths.ravel()
    cells = Shares(
        _raked(fit, r, c).ravel(),
        fit.cells,
        covariance,
        np.minimum(of_bias, weights.hidden),
        n,
        weights.shape,
    )
    return CrossShares(
        *margins, _without_expectation(cells, margins, measured, noise), measured, np.sqrt(noise)
    )


class _Margins(NamedTuple):
    """Cells by least squares with given sums, and what moves them."""

    cells: Array
    by_cells: Array  # derivatives by the observed cells
    by_margins: Array  # derivatives by the sums
    variance: Array
    sums: Array

    @classmethod
    def of(cls, observed: Array, variance: Array, sums: Array, margins: Array) -> _Margins:
        inverse = np.linalg.pinv((sums * variance) @ sums.T, rcond=1e-12, hermitian=True)
        by_margins = variance[:, None] * (sums.T @ inverse)
        by_cells = np.eye(len(observed)) - by_margins @ sums
        return cls(by_cells @ observed + by_margins @ margins, by_cells, by_margins, variance, sums)


def _raked(fit: _Margins, rows: Array, columns: Array) -> Array:
    """The cells without negative ones, and with these margins; shape (a + 1, b + 1)."""
    cells = fit.cells
    for _ in range(_ROUNDS):
        if not (cells < 0).any():
            break
        # Those that would be negative are zero; the others make up for it.
        free = np.where(cells > 0, fit.variance, 0.0)
        cells = np.maximum(cells, 0.0)
        lacking = np.concatenate([rows, columns]) - fit.sums @ cells
        inverse = np.linalg.pinv((fit.sums * free) @ fit.sums.T, rcond=1e-12, hermitian=True)
        cells = cells + free * (fit.sums.T @ (inverse @ lacking))
    product = np.outer(rows, columns)
    table = np.maximum(cells.reshape(product.shape), 1e-12 * product)
    table[product == 0] = 0.0
    for _ in range(_RAKINGS):
        before = table.sum(axis=1)
        table *= np.divide(rows, before, out=np.zeros_like(rows), where=before > 0)[:, None]
        after = table.sum(axis=0)
        table *= np.divide(columns, after, out=np.zeros_like(columns), where=after > 0)
        if np.abs(table.sum(axis=1) - rows).max() < _CLOSE:
            break
    return table


def _without_expectation(
    cells: Shares, margins: tuple[Shares, Shares], measured: Array, noise: Array
) -> Shares:
    """The same where intervals of cells of no declared level do not trust what is expected.

    Such a cell is what its margin has beyond the declared levels, and not above its margins.
    """
    shape = tuple(len(each.value) for each in margins)
    unbiased, variance = cells.unbiased.reshape(shape).copy(), np.diag(cells.covariance)
    variance, largest = variance.reshape(shape).copy(), np.ones(shape)
    r, c = (each.unbiased for each in margins)
    of_r, of_c = (each.noise_error**2 for each in margins)
    unbiased[:-1, -1] = r[:-1] - measured.sum(axis=1)
    unbiased[-1, :-1] = c[:-1] - measured.sum(axis=0)
    unbiased[-1, -1] = 1 - r[:-1].sum() - c[:-1].sum() + measured.sum()
    variance[:-1, -1] = of_r[:-1] + noise.sum(axis=1)
    variance[-1, :-1] = of_c[:-1] + noise.sum(axis=0)
    variance[-1, -1] = of_r[-1] + of_c[-1] + noise.sum()
    most = [each.value + _LIKELY * each.noise_error for each in margins]
    largest[:, -1] = np.minimum(most[0], most[1][-1])
    largest[-1, :] = np.minimum(most[1], most[0][-1])
    covariance = cells.covariance.copy()
    np.fill_diagonal(covariance, variance.ravel())
    return replace(cells, unbiased=unbiased.ravel(), covariance=covariance, largest=largest.ravel())


ALL, OTHER = "(all)", "(no declared level)"  # lines of margins, and of other cells


def table_frame(
    known: ReleasedTable,
    rows: LevelsFacts,
    columns: LevelsFacts | None,
    level: float,
    target: Target = "population",
) -> pd.DataFrame:
    """The cells of two columns of levels, or of one, and their margins.

    Returns ``row`` and ``column``, the levels; ``count`` with ``count_lower`` and ``count_upper``,
    an interval that covers the noise alone; ``share`` with ``standard_error``, ``lower`` and
    ``upper``, which cover noise and sampling, or noise alone if the `target` is the table; and
    ``law``, what is assumed about sampling. NaN if noise hides the weight of all rows.
    """
    if columns is None:
        parts = [known.levels(rows)]
    else:
        table = cross_shares(known, rows, columns)
        parts = [table.cells, table.rows, table.columns]
    parts.append(_everything(parts[-1]))
    labels = _labels_of(rows, columns)
    counts = [each.counts(known.rows, level) for each in parts]
    bounds = [each.interval(level, target) for each in parts]
    return pd.DataFrame(
        {
            "row": pd.Series([row for row, _ in labels], dtype="str"),
            "column": pd.Series([column for _, column in labels], dtype="str"),
            "count": np.concatenate([count for count, _, _ in counts]),
            "count_lower": np.concatenate([lower for _, lower, _ in counts]),
            "count_upper": np.concatenate([upper for _, _, upper in counts]),
            "share": np.concatenate([each.value for each in parts]),
            "standard_error": np.concatenate([each.error(target) for each in parts]),
            "lower": np.concatenate([lower for lower, _ in bounds]),
            "upper": np.concatenate([upper for _, upper in bounds]),
            "law": pd.Series([LAW] * len(labels), dtype="str"),
        }
    )


def _everything(shares: Shares) -> Shares:
    """The share of all rows, which is 1 if any is known."""
    one = shares.value[:1] * 0 + 1
    return replace(shares, value=one, unbiased=one, covariance=np.zeros((1, 1)), bias=np.zeros(1))


def level_indices(evidence: Evidence, facts: LevelsFacts | None) -> list[int]:
    """Matrix columns of the levels of a column; none for None."""
    return [k for k, column in enumerate(evidence.columns) if facts and column == facts]


def _labels_of(rows: LevelsFacts, columns: LevelsFacts | None) -> list[tuple[str, str]]:
    """The labels of each line: the cells, then the margins and the total."""
    *first, all_rows = _labels(rows)
    if columns is None:
        return [(name, "") for name in (*first, all_rows)]
    *second, all_columns = _labels(columns)
    labels = [(row, column) for row in first for column in second]
    labels += [(row, all_columns) for row in first]
    return labels + [(all_rows, column) for column in (*second, all_columns)]


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
# Levels whose share noise may explain are left out, and named. Rows beyond the clipping radius may
# count less than others, so that with many of them sampling errors exceed multinomial ones.

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
    # which levels are in use, shapes (a,) and (b,)
    rows: NDArray[np.bool_]
    columns: NDArray[np.bool_]


def independence(table: CrossShares, sample: float) -> Independence:
    """Test independence; `sample` is the number of rows.

    NaN if fewer than two levels of either column are clear of the noise.
    """
    used = [_clear(each) for each in (table.rows, table.columns)]
    k, size = (int(each.sum()) for each in used)
    measured, error = (each[np.ix_(*used)] for each in (table.measured, table.measured_error))
    total = float(measured.sum())
    if min(k, size) < 2 or not total > 0:
        return Independence(math.nan, 0, math.nan, math.nan, math.nan, *used)
    shares = measured / total
    margins = [np.maximum(shares.sum(axis=axis), 0.0) for axis in (1, 0)]
    rows, columns = (margin / margin.sum() for margin in margins)
    expected = np.outer(rows, columns)
    contrasts = np.kron(np.eye(k) - rows[:, None], np.eye(size) - columns[:, None])
    noise = np.diag((error.ravel() / total) ** 2)
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
        *used,
    )


def _clear(margin: Shares) -> NDArray[np.bool_]:
    """The declared levels whose share is above the noise."""
    clear: NDArray[np.bool_] = margin.unbiased[:-1] > _CLEAR * margin.noise_error[:-1]
    return clear & (margin.value[:-1] > 0)


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
    of_clipping = np.zeros_like(estimate)
    clipped = clipped_moments(evidence)
    if clipped is not None:
        found = _WithLost.of(evidence, by, clipped, scaled)
        ratio = np.where(clear[:, None], found.mean, np.nan)
        ratio[:, [units.names[k] in evidence.signs for k in scaled]] = np.nan
        estimate, of_clipping = centre + scale * ratio, scale * found.bias
        noise = scale * np.hypot(found.noise, ratio * found.relative_noise[:, None])
        sampling = scale * clipped.mean_sampling[scaled] / np.sqrt(found.share)[:, None]
        error = np.hypot(noise, sampling)
    folds = jackknife(evidence, means)
    if folds is not None:
        error, z = np.maximum(folds.standard_error, noise), student_quantile(level, folds.freedom)
    reach = np.hypot(z * error, of_clipping * (student_quantile(level, np.inf) / Z95))
    names = [units.names[k] for k in scaled]
    labels = [name for name in level_names(by.levels) for _ in names]
    return pd.DataFrame(
        {
            "level": pd.Series(labels, dtype="str"),
            "column": pd.Series(names * len(levels), dtype="str"),
            "mean": estimate.ravel(),
            "standard_error": error.ravel(),
            "lower": (estimate - reach).ravel(),
            "upper": (estimate + reach).ravel(),
            "law": pd.Series([describe_sampling(evidence)] * len(labels), dtype="str"),
        }
    )


@dataclass(frozen=True)
class _WithLost:
    """Means within levels with what clipping took away, about the centres in scaled units."""

    share: Array  # of the rows in the levels, shape (levels,)
    relative_noise: Array  # of the numbers of rows in the levels, shape (levels,)
    mean: Array  # shape (levels, columns)
    noise: Array  # without that of the numbers of rows
    bias: Array  # half widths of intervals of 95 %

    @classmethod
    def of(
        cls,
        evidence: Evidence,
        by: LevelsFacts,
        clipped: ClippedMoments,
        columns: NDArray[np.intp],
    ) -> _WithLost:
        """`columns`: of the moments, without the intercept.

        What no matrix has may be in one level or in another: in the rows that were clipped there,
        the inequality of Cauchy and Schwarz bounds it.
        """
        levels = np.array(level_indices(evidence, by))
        shares, lost = ReleasedTable(evidence).levels(by), clipped.lost
        square = 1.0 if evidence.radius is None else evidence.radius**2
        total = square * float(evidence.raw[0, 0]) + lost.weight
        share = np.maximum(shares.value[:-1], 1 / max(evidence.rows, 1.0))
        rows = (
            total
            * share[:, None]
            * np.array(evidence.present or [1.0] * len(evidence.raw))[columns + 1]
        )
        at, in_matrix = np.ix_(levels - 1, columns), np.ix_(levels, columns + 1)
        # Long rows are in the levels as what clipping took away is, as far as the noise tells.
        noise = float(np.diag(lost.bias)[levels - 1].mean()) / Z95
        gone = np.maximum(np.diag(lost.second)[levels - 1], 0.0) + noise * share
        gone = np.clip(gone / max(lost.weight + noise, 1e-12), 0.0, 1.0)
        unseen = np.sqrt(gone)[:, None] * clipped.mean_bias[columns] / share[:, None]
        beyond = np.outer(gone / share, ColumnTails.of(evidence).mean[columns])
        of_total = square * float(evidence.deviations[0, 0]) / total
        return cls(
            share,
            np.hypot(shares.noise_error[:-1] / share, of_total),
            (square * evidence.raw[in_matrix] + lost.second[at]) / rows + beyond,
            square * evidence.deviations[in_matrix] / rows,
            np.hypot(lost.bias[at] / rows, unseen),
        )
