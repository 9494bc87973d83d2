"""Moments of clipped rows with what clipping took away put back, and bounds of what is unknown.

Rows longer than the radius r are shortened to it: of a row z, the matrix gets w z z^T with w =
min(1, r^2/|z|^2). The lost matrix has the rest, (1 - w) z z^T, with a as the intercept, of every
row cut to the Frobenius norm k r^2. So most of what clipping hides is published, and what is beyond
the cut is bounded by the published lengths of rows. Everything is a function of published numbers.

Three errors are kept apart: the noise, whose law is known; the sampling error, of a statement about
a population and not of one about the table itself; and the bias of clipping, as far as it is not
known. The estimates of what was lost are shrunk, towards losses in proportion to variances and
towards the correlations of what was kept: for each, the noise of the lost matrix is compared with
the spread of the differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.estimators.clipped_moments import Z95, ClippedMoments, LostMoments
from gramercy.estimators.column_tails import ColumnTails
from gramercy.estimators.continued_tail import ContinuedTail
from gramercy.estimators.level_moments import LevelMoments
from gramercy.estimators.missing_cells import Presence
from gramercy.estimators.pooling.pooled_moments import pooled_moments
from gramercy.estimators.table_units import table_units, weight_lost
from gramercy.estimators.uncertainty.column_kurtosis import GAUSSIAN, column_kurtosis
from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance
from gramercy.scaling.clipping_radius import RowLengths
from gramercy.scaling.runs import centred
from gramercy.schemas.evidence import Evidence, LostMatrix
from gramercy.schemas.facts import ColumnFacts

Array = NDArray[np.float64]

_SURE = 1.64
_CAUTIOUS, _CAUTIOUS_LAST = 2.3, 2.0
_EVEN_SHARE, _LEAST_SPREAD = 0.1, 1e-8
_CONTRADICTED = 3.0  # standard deviations of the noise of counts
_LEAST_POWER, _LEAST_WEIGHT = 0.02, 0.05
_PAIR_KURTOSIS = 50.0  # largest one of which a correlation takes account


@dataclass(frozen=True)
class LengthLosses:
    """What clipping took from the mean squared length of rows, by their published lengths."""

    seen: float  # of rows that are seen
    beyond: float  # of these, beyond the cut of the lost matrix
    cautious: float  # of rows that may be seen
    hidden: float  # expected of rows beyond the last bin that is seen
    hidden_most: float  # upper bound of the same

    @classmethod
    def of(cls, lengths: RowLengths, radius: float, lost: LostMatrix) -> LengthLosses:
        """The losses at a radius."""
        low, high = lengths.ends
        losses, weights = lengths.lost(radius), lengths.weights()
        squares = np.maximum(low * high, 1e-12)
        together = squares + lost.rows_per_unit * (lost.intercept**2 - 1)
        norms = (1 - np.minimum(radius**2 / squares, 1.0)) * together
        cut = lost.cut * radius**2 / np.maximum(norms, 1e-12)
        shares = centred(lengths.counts, lengths.rows) / lengths.rows
        tail = ContinuedTail.of(shares, low, high, lengths.sd / lengths.rows)
        unseen = np.where(np.cumsum(weights[::-1])[::-1] > 0, 0.0, losses)
        return cls(
            float(weights @ losses),
            float(weights @ (losses * np.clip(1 - cut, 0.0, 1.0))),
            float(lengths.weights(_CAUTIOUS, _CAUTIOUS_LAST) @ losses),
            tail.expected(unseen) if tail else 0.0,
            tail.most(unseen) if tail else 0.0,
        )

    def times(self, factor: float) -> LengthLosses:
        """The losses in another unit."""
        return LengthLosses(*(factor * each for each in astuple(self)))

    def of_part(self, share: float, lost: LostMatrix, weight: float) -> LengthLosses:
        """The losses of a group that is this share of the rows, by the trace of its lost matrix.

        They are at most those of all rows over the share. `weight`: of the group's rows, lost.
        """
        trace, p = float(np.trace(lost.matrix[1:, 1:])), len(lost.matrix) - 1
        within = max(self.seen - self.beyond - weight, 1e-12)
        noise = math.sqrt(2 * p) * lost.sd
        trust = within**2 / (within**2 + noise**2)
        ratio = float(np.clip(1 + trust * (trace / within - 1), 0.0, 1 / share))
        most = float(np.clip((trace + _SURE * noise) / within, ratio, 1 / share))
        return LengthLosses(
            ratio * self.seen,
            ratio * self.beyond,
            most * max(self.cautious, self.seen),
            most * self.hidden,
            most * self.hidden_most,
        )


@dataclass(frozen=True)
class Losses:
    """What clipping took from second moments; scaled units, p columns without the intercept."""

    weight: float  # of all rows that was lost
    columns: Array  # lost second moments, shape (p,)
    error: float  # standard deviation of their errors by noise
    unseen: Array  # expected of what no matrix has, shape (p,)
    unseen_most: Array  # upper bounds of the same

    @classmethod
    def of(cls, lengths: LengthLosses, lost: LostMatrix, weight: float, power: Array) -> Losses:
        """The losses by column.

        `weight`: of all rows that was lost. `power`: kept second moments of the columns.
        """
        total = max(lengths.seen - weight, 0.0)
        cautious = max(lengths.cautious - weight, 0.0)
        noise, observed = math.sqrt(2) * lost.sd, np.diag(lost.matrix)[1:]
        even = total * power / power.sum()
        shrunk, trust = _shrunk(observed, even, noise)
        columns = np.maximum(shrunk, 0.0)
        unseen = lengths.beyond + max(cautious - total, 0.0) + lengths.hidden
        # Where little is seen, the columns' lost moments are mostly noise, and no base of a share.
        base = columns + _EVEN_SHARE * (total + unseen) * power / power.sum() + 1e-9
        share = base / base.sum()
        most = unseen - lengths.hidden + max(lengths.hidden_most, lengths.hidden)
        return cls(weight, columns, math.sqrt(trust) * noise, share * unseen, share * most)

    def at_most(self, most: Array) -> Losses:
        """The same, where no column lost more than this."""
        unseen, unseen_most = (np.minimum(each, most) for each in (self.unseen, self.unseen_most))
        return replace(self, unseen=unseen, unseen_most=unseen_most)


_MOST_BEYOND = 3.0  # times what the lost matrix shows


def _beyond_the_cut(unseen: Array, roots: Array) -> Array:
    """How much more was lost than the lost matrix shows; zero on the diagonal, shape (p, p).

    It is of the same rows, which differ as much from those that were kept. `unseen`: of each
    column. `roots`: the roots of the products of what two columns lost.
    """
    more: Array = np.sqrt(np.outer(unseen, unseen)) / np.maximum(roots, 1e-9)
    more = np.minimum(more, _MOST_BEYOND)
    np.fill_diagonal(more, 0.0)
    return more


def _shrunk(observed: Array, expected: Array, noise: float) -> tuple[Array, float]:
    """Noisy values, shrunk towards expected ones by their spread about these; and the factor."""
    moved = observed - expected
    spread = max(float(np.mean(moved**2)) - noise**2, _LEAST_SPREAD)
    trust = spread / (spread + noise**2)
    return expected + trust * moved, trust


_USUAL_SPREAD = 0.15


def _gain(lost: Array, expected: Array, noise: float) -> tuple[Array, EntryCovariance]:
    """How much what was lost differs from what is expected of it, and its errors.

    In the axes of the expected second moment, with eigenvalues l, the differences of the entries
    have the variances kappa l_i l_j, as those of a matrix of a few rows would: two nearly collinear
    columns lost nearly the same. Each is shrunk by the noise of the lost matrix. kappa is that of
    the differences beyond the noise and one standard deviation of their sum, from .15 to 1.

    `expected`: positive semidefinite, shape (p, p). `noise`: standard deviation of the lost matrix.
    """
    values, axes = np.linalg.eigh(expected)
    values = np.maximum(values, 0.0)
    moved, products = congruence(axes.T, lost - expected), np.outer(values, values)
    pairs, square = np.triu_indices(len(values), 1), max(noise * noise, 1e-300)
    count = len(pairs[0])
    beyond = float((moved[pairs] ** 2).sum()) - (count + math.sqrt(2 * count)) * square
    total = max(float(products[pairs].sum()), 1e-300)
    kappa = float(np.clip(beyond / total, _USUAL_SPREAD, 1.0))
    unknown = 1 / (1 + kappa * products / square)
    shrunk = congruence(axes, moved * (1 - unknown))
    return shrunk, EntryCovariance.in_axes(axes * np.sqrt(math.sqrt(kappa) * values), unknown)


def clipped_moments(evidence: Evidence) -> ClippedMoments | None:
    """Moments about the means of a release that publishes what clipping took away; else None.

    Of a pool, the average of those of its releases.
    """
    if evidence.pooled:
        return pooled_moments(evidence, clipped_moments)
    units, lengths, radius = table_units(evidence), evidence.lengths, evidence.radius
    lost = evidence.lost
    if lost is None or units is None or lengths is None or radius is None:
        return None
    if weight_lost(evidence.raw, evidence.deviations):
        return None
    counted = _counted(evidence)
    of_rows = RowLengths(lengths.count, lengths.sd, np.nan_to_num(lengths.lower), counted)
    # A matrix that was divided by the declared number is divided by the counted one instead; and
    # that of persons by the rows of a person.
    rows = max(evidence.rows, 1.0)
    divisor = 1.0 if evidence.declared is None else counted / rows
    per_unit = _rows_per_unit(evidence.raw[0, 0] * radius**2 / divisor, _divided(lost, divisor))
    square = radius**2 / divisor / per_unit
    losses = LengthLosses.of(of_rows, radius, lost).times(1 / per_unit)
    lost = _divided(lost, divisor * per_unit)
    weight = float(np.clip(evidence.raw[0, 0] * square, _LEAST_WEIGHT, 1.0))
    losses = losses.of_part(min(rows * divisor / counted, 1.0), lost, 1 - weight)
    clamped = moments_of(
        evidence.raw * square,
        evidence.repaired * square,
        evidence.typical_noise * square,
        units.together,
        losses,
        lost,
        rows * divisor,
        LevelMoments.of(evidence),
        _reach(evidence),
        partial(column_kurtosis, evidence),
    )
    clamped = replace(clamped, lost=clamped.lost.times(radius**2 / square))
    return clamped.with_tails(ColumnTails.of(evidence))


def _reach(evidence: Evidence) -> Array:
    """The largest distance of a cell from its centre, in scaled units; shape (p,)."""
    return np.array(
        [
            max(facts.upper - facts.centre, facts.centre - facts.lower) / facts.scale
            if isinstance(facts, ColumnFacts)
            else 1.0
            for facts in evidence.columns[1:]
        ]
    )


def _divided(lost: LostMatrix, divisor: float) -> LostMatrix:
    """The matrix of lost moments divided by a number."""
    return replace(lost, matrix=lost.matrix / divisor, sd=lost.sd / divisor)


def _counted(evidence: Evidence) -> float:
    """Number of rows or persons in the published histograms: the declared one, or what they say.

    The histograms of a group of rows are of all groups.
    """
    rows, counted = max(evidence.rows, 1.0), evidence.counted
    if counted is None or abs(counted[0] - rows) <= _CONTRADICTED * counted[1]:
        return rows
    return max(counted[0], 1.0)


def _rows_per_unit(kept: float, lost: LostMatrix) -> float:
    """Mean number of rows that are clipped together: 1, or that of a person by what is published.

    `kept`: mean weight of a person's rows.
    """
    if lost.rows_per_unit == 1 or not lost.intercept:
        return 1.0
    return max(kept + float(lost.matrix[0, 0]) / lost.intercept**2, _LEAST_WEIGHT)


def moments_of(
    raw: Array,
    denoised: Array,
    nu: float,
    presence: Presence,
    lengths: LengthLosses,
    lost: LostMatrix,
    rows: float,
    levels: LevelMoments,
    reach: Array,
    kurtosis_of: Callable[[Array], Array],
) -> ClippedMoments:
    """See `clipped_moments`; `nu` is the deviation of the noise of `raw` off the diagonal.

    The matrices are in scaled units, with the intercept first, shape (p + 1, p + 1); `kurtosis_of`
    gives the kurtosis of the columns from their variances.
    """
    o, s = np.diag(presence.share), lost.sd
    pairs = products = presence.share
    weight = float(np.clip(raw[0, 0], _LEAST_WEIGHT, 1.0))
    most_weight = float(np.clip(1 - raw[0, 0] + Z95 * math.sqrt(2) * nu, 0.0, 1.0))
    power = np.maximum(np.diag(denoised)[1:], _LEAST_POWER * o)
    # The square of a cell is within the clamps.
    losses = Losses.of(lengths, lost, 1 - weight, power).at_most(reach**2 * most_weight)
    of_column = losses.unseen

    # Means: the lost part is shrunk to the mean of what was kept.
    observed_sd = s / lost.intercept
    expected = losses.weight * raw[0, 1:] / weight
    observed, trust = _shrunk(lost.matrix[0, 1:] / lost.intercept, expected, observed_sd)
    numeric = ~levels.of_level
    # The square of an indicator is the indicator.
    d = np.where(numeric, losses.columns, np.clip(observed, 0.0, losses.weight))
    mean = np.where(numeric, (raw[0, 1:] + observed) / o, levels.share)
    variance = np.where(numeric, (np.diag(raw)[1:] + d) / o - mean**2, levels.variance)
    variance = np.maximum(variance, 1e-12)
    variance_noise = np.where(
        numeric, nu / o * np.sqrt(2 + 4 * mean**2), levels.slope * levels.noise
    )

    # Off the diagonal: what the tail adds to the correlation of what was kept.
    root = np.sqrt(np.maximum(np.diag(denoised)[1:], 1e-9))
    kept = np.clip(denoised[1:, 1:] / np.outer(root, root), -1, 1)
    roots = np.sqrt(np.outer(d, d))
    gain, errors = _gain(lost.matrix[1:, 1:], kept * roots, s)
    of_gain = np.maximum(errors.variance(len(d)), 0.0)
    lost_second = kept * roots + gain
    lost_pairs = lost_second.copy()
    np.fill_diagonal(lost_pairs, d)
    beyond = _beyond_the_cut(of_column, roots)

    # Correlations: half with what was lost, half of what was kept.
    shifted = mean[:, None] + presence.shift
    covariance = (denoised[1:, 1:] + lost_pairs + beyond * gain) / products - shifted * shifted.T
    with_lost = np.clip(covariance / np.sqrt(np.outer(variance, variance)), -1, 1)
    of_kept = _kept_correlation(denoised, weight, presence)
    correlation, apart = (with_lost + of_kept) / 2, np.abs(with_lost - of_kept) / 2
    np.fill_diagonal(correlation, 1.0)

    # Noise and bias of correlations: the true ones may be those with what was lost, or of what was
    # kept.
    deviations = np.sqrt(np.outer(variance, variance))
    of_means = np.outer((nu / o) ** 2, mean**2)
    squares = (nu / products) ** 2 + (of_means + of_means.T)  # symmetric to the last digit
    relative = (variance_noise / variance) ** 2 / 4
    squares = squares + presence.noise(correlation * deviations + np.outer(mean, mean), mean) ** 2
    noise = np.sqrt(squares / deviations**2 + correlation**2 * np.add.outer(relative, relative))
    unlike = np.abs(presence.shift) / np.sqrt(variance)[:, None]
    unseen = np.minimum(np.sqrt(np.outer(of_column, of_column)) / pairs / deviations, 2.0)
    trust_pair = np.minimum(of_gain / (s * s), 1.0) if s else np.ones_like(of_gain)
    of_lost = np.sqrt(of_gain) * (1 + trust_pair * beyond) / pairs / deviations

    mean_bias = np.minimum(np.sqrt(losses.weight * of_column / o), np.sqrt(variance) / 2)
    cells = rows * o
    kurtosis = kurtosis_of(variance)
    pair_kurtosis = np.clip(kurtosis, GAUSSIAN, _PAIR_KURTOSIS)
    heavy = np.sqrt(np.sqrt(np.outer(pair_kurtosis, pair_kurtosis)) / GAUSSIAN)
    return ClippedMoments(
        mean=mean,
        mean_noise=np.hypot(nu * np.sqrt(1 + mean**2), math.sqrt(trust) * observed_sd) / o,
        mean_bias=mean_bias,
        variance=variance,
        variance_noise=variance_noise,
        variance_bias=np.where(numeric, Z95 * losses.error / o, levels.slope * levels.bias),
        variance_shift=(np.zeros_like(o), np.where(numeric, losses.unseen_most / o, 0.0)),
        correlation=correlation,
        correlation_noise=noise,
        correlation_bias=np.hypot(np.hypot(Z95 * of_lost, unseen), apart),
        correlation_spread=np.hypot(of_lost, unseen / 4),
        correlation_missing=(unlike + unlike.T) / 2,
        mean_sampling=np.sqrt(variance / cells),
        variance_sampling=variance * np.sqrt((kurtosis - 1) / cells),
        correlation_sampling=heavy * (1 - correlation**2) / np.sqrt(rows * pairs),
        lost=LostMoments(losses.weight, observed, lost_second, errors, of_column),
    ).with_levels(levels)


def _kept_correlation(denoised: Array, weight: float, presence: Presence) -> Array:
    """Correlations of the clipped rows alone."""
    mean = denoised[0, 1:] / weight / np.diag(presence.share)
    shifted = mean[:, None] + presence.shift
    covariance = denoised[1:, 1:] / weight / presence.share - shifted * shifted.T
    root = np.sqrt(np.maximum(np.diag(covariance), 1e-9))
    kept: Array = np.clip(covariance / np.outer(root, root), -1, 1)
    return kept
