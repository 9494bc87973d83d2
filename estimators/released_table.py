"""What a release knows of the columns of its table: one number, and one error, for each fact.

Several published numbers tell the same fact. The share of a level is in the histograms of all
stages, in the row of the intercept, on the diagonal, and, of the rows that were clipped, in the
lost matrix. They are weighted by inverse variances, shares add up to 1, and none is negative.
Everything that states a share, a number of missing cells or a quantile reads it here.

Persons count once in histograms, by one of their rows, and with all of their rows in the matrix.
Shares of levels are then those of rows, and follow from the matrix alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.common.partition import Partition
from gramercy.estimators.marginals import QUANTILES, Distribution, Share, missing_share
from gramercy.estimators.table_units import weight_lost
from gramercy.estimators.uncertainty.entry_estimates import Bounds, Target
from gramercy.estimators.uncertainty.tails import critical_value, gamma_shape, noise_share
from gramercy.schemas.evidence import ALL_LENGTHS, Evidence, Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts, RowsFacts

Array = NDArray[np.float64]

LAW = "independent rows"  # what sampling errors of shares assume
_SURE = 3.0  # standard deviations by which counts contradict a declared number of persons
_DIFFERENT = 0.5  # of the clipped rows in a level, by its standard deviation
_DISTINCT = 2.5  # standard deviations
_EXACT = 1e-9  # share that stands for no error at all


@dataclass(frozen=True)
class Shares:
    """Shares of the rows in parts of the table, or in sums of them; arrays of shape (parts,)."""

    value: Array  # within [0, 1]; NaN if the noise hides the weight of all rows
    unbiased: Array  # the same without the bounds
    covariance: Array  # of the errors of `unbiased` by noise, shape (parts, parts)
    bias: Array  # half widths of what clipping may hide
    rows: float  # by which sampling errors are computed
    shape: float = math.inf  # Gamma shape of the noise: see `uncertainty.tails`
    largest: Array | float = 1.0  # upper bounds that are known otherwise

    @property
    def noise_error(self) -> Array:
        """Standard deviations of the errors of `unbiased` by noise."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def sampling_error(self) -> Array:
        """Standard deviations of sampling errors, of independent rows."""
        return np.sqrt(np.maximum(self.value * (1 - self.value), 0.0) / max(self.rows, 1.0))

    @property
    def standard_error(self) -> Array:
        """Standard deviations by noise and sampling together."""
        return np.hypot(self.noise_error, self.sampling_error)

    def error(self, target: Target) -> Array:
        """Standard deviations of the errors: of the table itself those of the noise alone."""
        return self.standard_error if target == "population" else self.noise_error

    def interval(self, level: float, target: Target = "population") -> Bounds:
        """Bounds of the shares in the table, or in the population of which it is a sample."""
        sampling = self.sampling_error
        return self._bounds(level, sampling if target == "population" else 0 * sampling)

    def counts(self, rows: RowsFacts, level: float) -> tuple[Array, Array, Array]:
        """Numbers of rows of the table, and their lower and upper bounds."""
        of_rows = np.abs(self.value) * rows.sd / rows.value
        lower, upper = self._bounds(level, np.zeros_like(self.value), of_rows)
        return rows.value * self.value, rows.value * lower, rows.value * upper

    def _bounds(self, level: float, sampling: Array, more_noise: Array | float = 0.0) -> Bounds:
        by_sampling, by_noise = sampling**2, self.noise_error**2 + np.square(more_noise)
        shape = np.full(self.value.shape, self.shape)
        z = critical_value(1 - level, noise_share(by_sampling, by_noise), shape)
        reach = np.hypot(z * np.sqrt(by_sampling + by_noise), self.bias)
        most = np.inf if np.any(more_noise) else self.largest
        lower = np.clip(self.unbiased - reach, 0.0, most)
        # No interval is a point where noise made a share negative.
        upper = np.clip(np.maximum(self.unbiased, 0.0) + reach, 0.0, most)
        return np.minimum(lower, self.value), np.maximum(upper, self.value)


@dataclass(frozen=True)
class Weights:
    """What the matrix tells of the weights of rows, by a total of 1."""

    matrix: Array  # with what clipping took away, of rows of weight 1; shape (p, p)
    variance: Array  # of the noise of its entries off the first row; shape (p, p)
    first: Array  # entries with the intercept, shape (p,)
    first_variance: Array
    total_error: float  # relative standard deviation of the noise in the total
    hidden: float  # weight that clipping hides
    shape: float  # Gamma shape of the noise


@dataclass(frozen=True)
class ReleasedTable:
    """The fitted model of the columns of a release."""

    evidence: Evidence

    @cached_property
    def stages(self) -> dict[str, list[Histogram]]:
        """The histograms of every table column, in the order of their stages."""
        found: dict[str, list[Histogram]] = {}
        for each in self.evidence.histograms:
            if each.column not in ALL_LENGTHS:
                found.setdefault(each.column, []).append(each)
        return found

    @cached_property
    def rows(self) -> RowsFacts:
        """The number of rows or persons by which everything is divided.

        It is the public one, or pooled from all counts. No one compares a declared number of
        persons with the table: the counts replace it if they contradict it.
        """
        seen = self.evidence
        if seen.size is not None:
            return _rows(max(seen.size[0], 1.0), seen.size[1])
        stated, sd = max(seen.rows, 1.0), seen.rows_sd
        # Groups of rows have the histogram of the lengths of all rows, and none of columns.
        if not self.stages or seen.counted is None or not (sd > 0 or seen.persons):
            return _rows(stated, sd)
        counted, error = seen.counted
        if sd == 0:
            contradicted = abs(counted - stated) > _SURE * error
            return _rows(max(counted, 1.0), error) if contradicted else _rows(stated, 0.0)
        weights = 1 / error**2, 1 / sd**2
        pooled = (counted * weights[0] + stated * weights[1]) / sum(weights)
        return _rows(max(pooled, 1.0), 1 / math.sqrt(sum(weights)))

    def present(self, name: str) -> float | None:
        """The published share of the cells of a numeric column that have a value, if there is."""
        names = [column.name if column else None for column in self.evidence.columns]
        return self.evidence.present[names.index(name)] if self.evidence.present else None

    def missing(self, name: str) -> Share | None:
        """The share of missing cells of a numeric column; None if it is not published."""
        stages, present = self.stages.get(name), self.present(name)
        if stages:
            return missing_share(stages, self.rows, present)
        if present is None:
            return None
        # Of the counts of another release, whose noise is not stated here.
        return Share(1 - present, math.sqrt(present * (1 - present) / self.rows.value))

    def distribution(self, name: str) -> Distribution | None:
        """The distribution of a numeric column; None without histograms."""
        stages = self.stages.get(name)
        return Distribution.of(stages, self.rows, self.present(name)) if stages else None

    def levels(self, facts: LevelsFacts) -> Shares:
        """The shares of the levels of a column, and last that of cells of no declared level.

        Of a pool, they are the average of those of its releases.
        """
        return _pooled(self.evidence, facts) if self.evidence.pooled else _fitted(self, facts)

    @cached_property
    def weights(self) -> Weights | None:
        """What the matrix tells of the weights of rows.

        None if it is of unit rows or has no intercept, or if noise hides the weight of all rows.
        """
        seen = self.evidence
        if seen.unit or not seen.columns or seen.columns[0] is not None or not len(seen.raw):
            return None
        square = 1.0 if seen.radius is None else seen.radius**2
        matrix, variance = square * seen.raw, (square * seen.deviations) ** 2
        if weight_lost(seen.raw, seen.deviations):
            return None
        first, first_variance = matrix[0].copy(), variance[0].copy()
        total, total_variance = float(matrix[0, 0]), float(variance[0, 0])
        lost = seen.lost
        if lost is not None and lost.intercept > 0:
            weight = max(float(lost.matrix[0, 0]) / lost.intercept**2, 0.0)
            gone = _Gone(weight, total)
            sd = np.full(matrix.shape, lost.sd)
            sd[np.diag_indices_from(sd)] *= math.sqrt(2)
            matrix, variance = gone.added(matrix, variance, lost.matrix, sd)
            first, first_variance = gone.added(
                first, first_variance, lost.matrix[0] / lost.intercept, sd[0, 1] / lost.intercept
            )
            total += weight
            total_variance += 2 * (lost.sd / lost.intercept**2) ** 2
        if _none_clipped(seen) and not seen.persons and seen.rows_sd == 0:
            total, total_variance = 1.0, 0.0
        hidden = 0.0 if seen.radius is None or seen.persons else max(1 - total, 0.0)
        return Weights(
            matrix / total,
            variance / total**2,
            first / total,
            first_variance / total**2,
            math.sqrt(total_variance) / total,
            hidden,
            float(gamma_shape(seen.law, np.eye(len(matrix))[:2])[0, 1]),
        )

    def frame(self, columns: Sequence[ColumnFacts | LevelsFacts]) -> pd.DataFrame:
        """The published marginals, one line for each bin of the last stage.

        Returns ``column``, ``lower``, ``upper`` and ``level`` of the bin (none of them for missing
        cells), ``count`` as published, and ``share``, from all that is known, with its
        ``standard_error``.
        """
        frames = []
        for facts in columns:
            last = self.stages[facts.name][-1]
            share, error = self._of_bins(facts)
            frames.append(
                pd.DataFrame(
                    {
                        "column": last.column,
                        "lower": last.lower,
                        "upper": last.upper,
                        "level": list(last.level),
                        "count": last.count,
                        "share": share,
                        "standard_error": error,
                    }
                )
            )
        return pd.concat(frames, ignore_index=True)

    def quantiles(self, at: Sequence[float] = QUANTILES, level: float = 0.95) -> pd.DataFrame:
        """Quantiles of every numeric column that has a distribution, with intervals.

        Returns ``column``, ``probability``, ``value``, ``lower`` and ``upper``.
        """
        lines = [
            (facts.name, probability, found.value, found.lower, found.upper)
            for facts in self.evidence.columns
            if isinstance(facts, ColumnFacts)
            and (distribution := self.distribution(facts.name)) is not None
            for probability, found in zip(at, distribution.quantiles(at, level), strict=True)
        ]
        table = pd.DataFrame(lines, columns=["column", "probability", "value", "lower", "upper"])
        return table.astype({"column": "str"})

    def _of_bins(self, facts: ColumnFacts | LevelsFacts) -> tuple[Array, Array]:
        """Shares of the bins of the last stage, and their standard errors."""
        if isinstance(facts, LevelsFacts):
            shares = self.levels(facts)
            return shares.value, shares.standard_error
        found, missing = self.distribution(facts.name), self.missing(facts.name)
        assert found is not None  # noqa: S101
        assert missing is not None  # noqa: S101
        counts, sd = found.published
        share = np.clip(counts / self.rows.value, 0.0, 1.0)
        noise = np.hypot(sd, share * self.rows.sd) / self.rows.value
        error = np.sqrt(noise**2 + share * (1 - share) / self.rows.value)
        return np.append(share, missing.value), np.append(error, missing.standard_error)


def likely_difference(share: Array) -> Array:
    """How far the share of a level among clipped rows may be from that among all rows."""
    spread: Array = 2 * _DIFFERENT * np.sqrt(np.clip(share * (1 - share), 0.0, None))
    return spread


@dataclass(frozen=True)
class _Gone:
    """What clipping took away, of which shares in levels are expected to be like those kept."""

    weight: float  # of rows
    kept: float  # the rest

    def added(
        self, kept: Array, variance: Array, lost: Array, sd: Array | float
    ) -> tuple[Array, Array]:
        """Entries that count rows with what was lost, and variances of their errors.

        What was lost is shrunk towards its expectation, as far as noise may explain the difference.
        """
        share = np.clip(kept / self.kept, 0.0, 1.0)
        expected = self.weight * kept / self.kept
        spread = (_DIFFERENT * self.weight) ** 2 * share * (1 - share)
        moved, noise = lost - expected, np.square(sd)
        trust = np.divide(spread, spread + noise, out=np.ones_like(kept), where=noise > 0)
        distinct = 1 - np.divide(
            _DISTINCT**2 * noise, moved**2, out=np.full_like(kept, np.inf), where=moved != 0
        )
        trust = np.maximum(trust, distinct)
        own = 1 + (1 - trust) * self.weight / self.kept
        return kept + expected + trust * moved, own**2 * variance + trust * noise


def _rows(value: float, sd: float) -> RowsFacts:
    return RowsFacts(value=value, observed=value, status="noisy" if sd else "public", sd=sd)


def _none_clipped(evidence: Evidence) -> bool:
    """Whether no row within the bounds can be longer than the radius."""
    squares = [
        (max(facts.upper - facts.centre, facts.centre - facts.lower) / facts.scale) ** 2
        if isinstance(facts, ColumnFacts)
        else 1.0  # the intercept, or at most one level
        for facts in dict.fromkeys(evidence.columns)
    ]
    return not evidence.clips(math.sqrt(math.fsum(squares)))


def _pooled(pool: Evidence, facts: LevelsFacts) -> Shares:
    """See `ReleasedTable.levels`; what clipping hides may be alike in all releases."""
    own = []
    for each in pool.pooled:
        (column,) = {
            column
            for column in each.evidence.columns
            if isinstance(column, LevelsFacts) and column.name == facts.name
        }
        order = np.array([*map(column.levels.index, facts.levels), len(facts.levels)])
        own.append((each.weight, order, ReleasedTable(each.evidence).levels(column)))
    return Shares(
        np.sum([w * shares.value[at] for w, at, shares in own], axis=0),
        np.sum([w * shares.unbiased[at] for w, at, shares in own], axis=0),
        np.sum([w**2 * shares.covariance[np.ix_(at, at)] for w, at, shares in own], axis=0),
        np.sum([w * shares.bias[at] for w, at, shares in own], axis=0),
        max(pool.rows, 1.0),
        min(shares.shape for _, _, shares in own),
    )


def _fitted(table: ReleasedTable, facts: LevelsFacts) -> Shares:
    """See `ReleasedTable.levels`."""
    seen, n, parts = table.evidence, table.rows.value, len(facts.levels) + 1
    weights = table.weights
    by_histograms, by_matrix, moved, observed = np.zeros((4, parts))
    # Where persons count once in histograms, these are of other shares than the matrix.
    stages = [] if seen.persons and weights is not None else table.stages.get(facts.name, [])
    for each in stages:
        weight = np.full(parts, (n / max(each.sd, _EXACT * n)) ** 2)
        observed += weight * each.count / n
        moved += weight**2 * (each.sd / n) ** 2
        by_histograms += weight
    hidden, total_error, shape = 0.0, 0.0, math.inf
    at = [k for k, column in enumerate(seen.columns) if column == facts]
    if weights is not None and at:
        variance = np.array([weights.first_variance[at], np.diag(weights.variance)[at]])
        inverse = 1 / np.maximum(variance, _EXACT**2)
        both = np.array([weights.first[at], np.diag(weights.matrix)[at]])
        kept, total = (both * inverse).sum(axis=0) / inverse.sum(axis=0), inverse.sum(axis=0)
        noise = (variance * inverse**2).sum(axis=0) / total**2
        hidden, total_error = weights.hidden, weights.total_error
        reach = hidden * likely_difference(kept)
        by_matrix[:-1] = 1 / (1 / total + reach**2)
        observed[:-1] += by_matrix[:-1] * kept
        moved[:-1] += by_matrix[:-1] ** 2 * noise
        shape = math.inf if stages else weights.shape
    weight = by_histograms + by_matrix
    if not weight.any():
        unknown, none = np.full(parts, np.nan), np.full((parts, parts), np.nan)
        return Shares(unknown, unknown, none, np.zeros(parts), n)
    fit = Partition.of(np.divide(observed, weight, out=observed, where=weight > 0), weight)
    covariance = fit.covariance(moved)
    for part in (-by_matrix * total_error, -by_histograms * table.rows.sd / n):
        of_total = fit.pulled(fit.value * part)
        covariance += np.outer(of_total, of_total)
    reach = hidden * likely_difference(fit.value)
    bias = np.minimum(np.abs(fit.pulled(by_matrix * reach)), hidden)
    return Shares(fit.value, fit.unbiased, covariance, bias, n, shape)
