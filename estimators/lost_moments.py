"""Moments of clipped rows with what clipping took away put back, and bounds of what is unknown.

Rows longer than the radius r are shortened to it: of a row z, the matrix gets w z z^T with w =
min(1, r^2/|z|^2), or with the length of A z in the metric A of a pilot matrix. The lost matrix has
the rest, (1 - w) z z^T, with a as the intercept, of every row cut to the Frobenius norm k r^2. So
most of what clipping hides is published, and what is beyond the cut is bounded by the published
lengths of rows. Everything is a function of published numbers.

Three errors are kept apart: the noise, whose law is known; the sampling error, of a statement about
a population and not of one about the table itself; and the bias of clipping, as far as it is not
known. The estimates of what was lost are shrunk, towards losses in proportion to variances and
towards the correlations of what was kept: for each, the noise of the lost matrix is compared with
the spread of the differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gramercy.common.kept_results import kept
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
from gramercy.estimators.uncertainty.moment_errors import additive_noise
from gramercy.scaling.clipping_radius import RowLengths
from gramercy.scaling.runs import centred
from gramercy.schemas.evidence import Evidence, Histogram, LostMatrix
from gramercy.schemas.facts import ColumnFacts

Array = NDArray[np.float64]

_SURE = 1.64
_CAUTIOUS, _CAUTIOUS_LAST = 2.3, 2.0
_EVEN_SHARE, _LEAST_SPREAD = 0.1, 1e-8
_CONTRADICTED = 3.0  # standard deviations of the noise of counts
_FLOOR = 2.0
_LEAST_POWER, _LEAST_WEIGHT = 0.02, 0.05
_PAIR_KURTOSIS = 50.0  # largest one of which a correlation takes account


_POINTS = 8  # of a bin


@dataclass(frozen=True)
class ClippedLengths:
    """A published histogram of the lengths of rows, and what clipping takes from rows in its bins.

    If rows are clipped in another metric, there are two. By the lengths of scaled rows, a row that
    is long is taken to be long in the metric as well: lengths of equal rank belong together, and no
    other pairs lose more. By the lengths in the metric, squares in scaled units are in proportion.
    """

    lengths: RowLengths
    squares: Array  # of scaled rows, shape (bins, points)
    shares: Array  # of a row's square that clipping takes away; as `squares`

    @classmethod
    def of(cls, evidence: Evidence, rows: float) -> tuple[ClippedLengths, ...]:
        """Of scaled rows, and in the metric of clipping if it is another; empty without any."""
        if evidence.lengths is None or evidence.radius is None:
            return ()
        scaled = _row_lengths(evidence.lengths, rows)
        points = _points(scaled)
        if evidence.metric_radius is None or evidence.turned_lengths is None:
            return (cls(scaled, points**2, _clipped_share(points, evidence.radius)),)
        turned, radius = _row_lengths(evidence.turned_lengths, rows), evidence.metric_radius
        of_ranks, own = _of_equal_rank(scaled, turned), _points(turned)
        in_proportion = scaled.power / turned.power * own**2
        return (
            cls(scaled, points**2, _clipped_share(of_ranks, radius)),
            cls(turned, in_proportion, _clipped_share(own, radius)),
        )

    @property
    def losses(self) -> Array:
        """What is lost of the mean square of the rows in each bin."""
        losses: Array = (self.shares * self.squares).mean(axis=1)
        return losses

    @property
    def tail(self) -> ContinuedTail | None:
        """The lengths beyond those that are seen."""
        return _tail(self.lengths)


def _clipped_share(lengths: Array, radius: float) -> Array:
    """The share of a row's square that clipping takes away, by its length."""
    share: Array = 1 - np.minimum(radius**2 / np.maximum(lengths, 1e-12) ** 2, 1.0)
    return share


def _of_equal_rank(scaled: RowLengths, turned: RowLengths) -> Array:
    """The lengths in a metric that have the ranks of the points of scaled lengths.

    Beyond the longest rows, both are longer by the same factor.
    """
    points = _points(scaled)
    ours, theirs = (_with_tail(each) for each in (scaled, turned))
    above = np.cumsum(np.repeat(ours[::-1] / _POINTS, _POINTS))
    places = _points(turned).ravel()[::-1]
    ranks = np.cumsum(np.repeat(theirs[::-1] / _POINTS, _POINTS))
    middle = above - np.repeat(ours[::-1] / _POINTS, _POINTS) / 2
    matched = places[np.minimum(np.searchsorted(ranks, middle), len(places) - 1)]
    lengths = points.ravel()[::-1]
    first = int(np.argmax(middle > 0))
    farther = matched[first] * lengths / lengths[first]
    matched = np.where(np.arange(len(lengths)) < first, farther, matched)
    return matched[::-1].reshape(points.shape)


def _row_lengths(histogram: Histogram, rows: float) -> RowLengths:
    return RowLengths(histogram.count, histogram.sd, np.nan_to_num(histogram.lower), rows)


def _points(lengths: RowLengths) -> Array:
    """Lengths by bin, evenly in the logarithm; shape (bins, points)."""
    low, high = lengths.ends
    places = (np.arange(_POINTS) + 0.5) / _POINTS
    points: Array = low[:, None] * (high / low)[:, None] ** places
    return points


def _tail(lengths: RowLengths) -> ContinuedTail | None:
    low, high = lengths.ends
    shares = centred(lengths.counts, lengths.rows) / lengths.rows
    return ContinuedTail.of(shares, low, high, lengths.sd / lengths.rows)


def _with_tail(lengths: RowLengths) -> Array:
    """Shares of rows by bin, with those that are expected beyond what is seen; of sum 1."""
    weights, tail = lengths.weights(), _tail(lengths)
    if tail is None:
        return weights
    expected = np.zeros_like(weights)
    expected[-tail.shares.shape[1] :] = tail.likelihood @ tail.shares
    beyond = np.cumsum(weights[::-1])[::-1] <= 0
    weights = np.where(beyond, expected, weights)
    result: Array = weights / weights.sum()
    return result


@dataclass(frozen=True)
class LengthLosses:
    """What clipping took from the mean squared length of rows, by their published lengths."""

    seen: float  # of rows that are seen
    beyond: float  # of these, beyond the cut of the lost matrix
    cautious: float  # of rows that may be seen
    hidden: float  # expected of rows beyond the last bin that is seen
    hidden_most: float  # upper bound of the same
    noise: float = 0.0  # standard deviation of the error of `seen` by the noise of the lost matrix

    @classmethod
    def of(cls, clipped: ClippedLengths, cut: float, lost: LostMatrix) -> LengthLosses:
        """The losses by a histogram; `cut`: the largest Frobenius norm of what a row loses."""
        lengths, losses, tail = clipped.lengths, clipped.losses, clipped.tail
        weights = lengths.weights()
        together = clipped.squares + lost.rows_per_unit * (lost.intercept**2 - 1)
        norms = (clipped.shares * together).mean(axis=1)
        kept = np.clip(cut / np.maximum(norms, 1e-12), 0.0, 1.0)
        unseen = np.where(np.cumsum(weights[::-1])[::-1] > 0, 0.0, losses)
        return cls(
            float(weights @ losses),
            float(weights @ (losses * (1 - kept))),
            float(lengths.weights(_CAUTIOUS, _CAUTIOUS_LAST) @ losses),
            tail.expected(unseen) if tail else 0.0,
            tail.most(unseen) if tail else 0.0,
        )

    def times(self, factor: float) -> LengthLosses:
        """The losses in another unit."""
        return LengthLosses(*(factor * each for each in astuple(self)))

    def at_most(self, others: LengthLosses) -> LengthLosses:
        """The same, where rows that are hardly seen, or hidden, lose no more than others say."""
        return replace(
            self,
            cautious=min(self.cautious, others.cautious),
            hidden=min(self.hidden, others.hidden),
            hidden_most=min(self.hidden_most, others.hidden_most),
        )

    def of_part(self, largest: float, lost: LostMatrix, weight: float) -> LengthLosses:
        """The losses of a group of rows, by the trace of its lost matrix.

        `largest`: ratio to the losses of all rows. `weight`: of the group's rows, lost.
        """
        trace, p = float(np.trace(lost.matrix[1:, 1:])), len(lost.matrix) - 1
        within = max(self.seen - self.beyond - weight, 1e-12)
        noise = math.sqrt(2 * p) * lost.sd
        trust = within**2 / (within**2 + noise**2)
        ratio = float(np.clip(1 + trust * (trace / within - 1), 0.0, largest))
        most = float(np.clip((trace + _SURE * noise) / within, ratio, largest))
        return LengthLosses(
            ratio * self.seen,
            ratio * self.beyond,
            most * max(self.cautious, self.seen),
            most * self.hidden,
            most * self.hidden_most,
            trust * noise * self.seen / within,
        )


@dataclass(frozen=True)
class Losses:
    """What clipping took from second moments; scaled units, p columns without the intercept."""

    weight: float  # of all rows that was lost
    columns: Array  # lost second moments, shape (p,)
    error: Array  # standard deviations of their errors by noise, shape (p,)
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
        even, of_total = total * power / power.sum(), lengths.noise * power / power.sum()
        shrunk, trust = _shrunk(observed, even, noise)
        columns = np.maximum(shrunk, 0.0)
        unseen = lengths.beyond + max(cautious - total, 0.0) + lengths.hidden
        # Where little is seen, the columns' lost moments are mostly noise, and no base of a share.
        base = columns + _EVEN_SHARE * (total + unseen) * power / power.sum() + 1e-9
        share = base / base.sum()
        most = unseen - lengths.hidden + max(lengths.hidden_most, lengths.hidden)
        error = np.hypot(math.sqrt(trust) * noise, (1 - trust) * of_total)
        return cls(weight, columns, error, share * unseen, share * most)

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


_USUAL_SPREAD = 0.15  # kappa; on real tables .03 to .2, where clipping was measured
_ABOVE = 1.25  # the largest eigenvalue of noise exceeds its edge by less


def _gain(lost: Array, expected: Array, noise: float) -> tuple[Array, EntryCovariance]:
    """How much what was lost differs from what is expected of it, and its errors.

    In the axes of the expected second moment, with eigenvalues l, the differences of the entries
    have the variances kappa l_i l_j, as those of a matrix of a few rows would: two nearly collinear
    columns lost nearly the same. Each is shrunk by the noise of the lost matrix. kappa is that of
    the differences beyond the noise, less a standard deviation of its error, at most 1. Errors are
    at least those of .15: where the noise hides differences, there may be usual ones. Rows of
    another kind may have lost in directions in which the others hardly vary: what exceeds the noise
    of all directions there is kept.

    `expected`: positive semidefinite, shape (p, p). `noise`: standard deviation of the lost matrix.
    """
    values, axes = np.linalg.eigh(expected)
    values = np.maximum(values, 0.0)
    moved, products = congruence(axes.T, lost - expected), np.outer(values, values)
    pairs, square = np.triu_indices(len(values), 1), max(noise * noise, 1e-300)
    weights = products[pairs]
    length = max(float(np.linalg.norm(weights)), 1e-300)
    beyond = float(weights @ (moved[pairs] ** 2 - square)) / length - math.sqrt(2) * square
    kappa = float(np.clip(beyond / length, 0.0, 1.0))
    hidden = square / (kappa * products + square)
    unlike, directions = _unlike(moved * hidden, noise * hidden)
    kappa = max(kappa, _USUAL_SPREAD)
    unknown = 1 / (1 + kappa * products / square)
    errors = EntryCovariance.in_axes(axes * np.sqrt(math.sqrt(kappa) * values), unknown)
    of_others = noise * congruence(axes, directions), noise * np.eye(len(values))
    gain = moved * (1 - hidden) + unlike
    return congruence(axes, gain), EntryCovariance((*errors.products, of_others))


def _unlike(rest: Array, noise: Array) -> tuple[Array, Array]:
    """What rows of another kind lost, in the few directions in which it exceeds all noise.

    Of symmetric noise with a component of size l in one direction, the largest eigenvalue is
    l + p s^2 / l, if it exceeds 2 s sqrt(p), which noise alone hardly does. Also, the projection on
    the directions. Benaych-Georges and Nadakuditi (2011), Theorem 2.1.

    `noise`: standard deviations by entry, shape (p, p).
    """
    square = float((noise**2).sum(axis=1).max())  # p s^2, or more
    values, vectors = np.linalg.eigh(rest)
    seen = np.abs(values) > _ABOVE * 2 * math.sqrt(square)
    values, vectors = values[seen], vectors[:, seen]
    sizes = (values + np.sign(values) * np.sqrt(values**2 - 4 * square)) / 2
    return (vectors * sizes) @ vectors.T, vectors @ vectors.T


@kept
def clipped_moments(evidence: Evidence) -> ClippedMoments | None:
    """Moments about the means of a release that publishes what clipping took away; else None.

    Of a pool, the average of those of its releases.
    """
    if evidence.pooled:
        return pooled_moments(evidence, clipped_moments)
    units, radius, lost = table_units(evidence), evidence.radius, evidence.lost
    counted = _counted(evidence)
    lengths = ClippedLengths.of(evidence, counted)
    if lost is None or units is None or not lengths or radius is None:
        return None
    if weight_lost(evidence.raw, evidence.deviations):
        return None
    # A matrix that was divided by the declared number is divided by the counted one instead; and
    # that of persons by the rows of a person.
    rows = max(evidence.rows, 1.0)
    divisor = 1.0 if evidence.declared is None else counted / rows
    per_unit = _rows_per_unit(evidence.raw[0, 0] * radius**2 / divisor, _divided(lost, divisor))
    square = radius**2 / divisor / per_unit
    of_lengths = [
        LengthLosses.of(each, lost.cut * radius**2, lost).times(1 / per_unit) for each in lengths
    ]
    lost = _divided(lost, divisor * per_unit)
    weight = float(np.clip(evidence.raw[0, 0] * square, _LEAST_WEIGHT, 1.0))
    losses = _by_all(of_lengths, 1 / min(rows * divisor / counted, 1.0), lost, 1 - weight)
    clamped = moments_of(
        evidence.raw * square,
        evidence.repaired * square,
        additive_noise(evidence).scaled(np.full(len(evidence.raw), math.sqrt(square))),
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


def _by_all(
    losses: Sequence[LengthLosses], largest: float, lost: LostMatrix, weight: float
) -> LengthLosses:
    """The losses of a group by all histograms; see `LengthLosses.of_part`.

    What is seen is that by the lengths of scaled rows. A row that noise may hide must be hidden in
    the metric as well, where it is longer than the radius.
    """
    bound, *others = losses
    of_part = bound.of_part(largest, lost, weight)
    for each in others:
        farthest = largest * max(bound.seen / max(each.seen, 1e-12), 1.0)
        of_part = of_part.at_most(each.of_part(farthest, lost, weight))
    return of_part


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
    noise: EntryCovariance,
    presence: Presence,
    lengths: LengthLosses,
    lost: LostMatrix,
    rows: float,
    levels: LevelMoments,
    reach: Array,
    kurtosis_of: Callable[[Array], Array],
) -> ClippedMoments:
    """See `clipped_moments`; `noise` is that of `raw`.

    The matrices are in scaled units, with the intercept first, shape (p + 1, p + 1); `kurtosis_of`
    gives the kurtosis of the columns from their variances.
    """
    o, s = np.diag(presence.share), lost.sd
    pairs = products = presence.share
    weight = float(np.clip(raw[0, 0], _LEAST_WEIGHT, 1.0))
    of_weight = math.sqrt(float(noise.variance(len(raw))[0, 0]))
    most_weight = float(np.clip(1 - raw[0, 0] + Z95 * of_weight, 0.0, 1.0))
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
    noise = _about_means(noise, mean, o)
    noises = np.maximum(noise.variance(len(raw)), 0.0)
    variance_noise = np.where(
        numeric, np.sqrt(np.diag(noises)[1:]) / o, levels.slope * levels.noise
    )

    # Off the diagonal: what the tail adds to the correlation of what was kept.
    roots = np.sqrt(np.outer(d, d))
    expected = _as_correlation(denoised[1:, 1:]) * roots
    gain, errors = _gain(lost.matrix[1:, 1:], expected, s)
    of_gain = np.maximum(errors.variance(len(d)), 0.0)
    trust_pair = np.minimum(of_gain / max(s * s, 1e-300), 1.0)
    lost_second = expected + gain
    lost_pairs = lost_second.copy()
    np.fill_diagonal(lost_pairs, d)
    beyond = _beyond_the_cut(of_column, roots)

    # Correlations: between those with what was lost, and those of what was kept.
    shifted = mean[:, None] + presence.shift
    covariance = (denoised[1:, 1:] + lost_pairs + beyond * gain) / products - shifted * shifted.T
    deviations = np.sqrt(np.outer(variance, variance))
    of_kept = _kept_correlation(denoised, weight, presence)
    of_lost = np.sqrt(of_gain) * (1 + trust_pair * beyond) / pairs / deviations
    correlation, apart = _between(
        of_kept,
        np.clip(covariance / deviations, -1, 1),
        of_lost,
        losses.error / (o * variance),
        variance > _FLOOR * variance_noise,
    )

    # Noise and bias of correlations: the true ones may be those with what was lost, or of what was
    # kept.
    of_shares = presence.noise(correlation * deviations + np.outer(mean, mean), mean) / deviations
    of_noise = np.sqrt(
        _correlation_noise(
            noise,
            correlation,
            products * deviations,
            np.where(numeric, o * variance, np.inf),
            variance_noise / variance,
        )
        + of_shares**2
    )
    unlike = np.abs(presence.shift) / np.sqrt(variance)[:, None]
    unseen = np.minimum(np.sqrt(np.outer(of_column, of_column)) / pairs / deviations, 2.0)

    mean_bias = np.minimum(np.sqrt(losses.weight * of_column / o), np.sqrt(variance) / 2)
    cells = rows * o
    kurtosis = kurtosis_of(variance)
    pair_kurtosis = np.clip(kurtosis, GAUSSIAN, _PAIR_KURTOSIS)
    heavy = np.sqrt(np.sqrt(np.outer(pair_kurtosis, pair_kurtosis)) / GAUSSIAN)
    return ClippedMoments(
        mean=mean,
        mean_noise=np.sqrt(noises[0, 1:] + trust * observed_sd**2) / o,
        mean_bias=mean_bias,
        variance=variance,
        variance_noise=variance_noise,
        variance_bias=np.where(numeric, Z95 * losses.error / o, levels.slope * levels.bias),
        variance_shift=(np.zeros_like(o), np.where(numeric, losses.unseen_most / o, 0.0)),
        correlation=correlation,
        correlation_noise=of_noise,
        correlation_bias=np.hypot(np.hypot(Z95 * of_lost, unseen), apart),
        correlation_spread=np.hypot(of_lost, unseen / 4),
        correlation_missing=(unlike + unlike.T) / 2,
        mean_sampling=np.sqrt(variance / cells),
        variance_sampling=variance * np.sqrt((kurtosis - 1) / cells),
        correlation_sampling=heavy * (1 - correlation**2) / np.sqrt(rows * pairs),
        lost=LostMoments(losses.weight, observed, lost_second, errors, of_column),
    ).with_levels(levels)


def _about_means(noise: EntryCovariance, mean: Array, present: Array) -> EntryCovariance:
    """The noise of moments about means; in the first row, of means times the weight of all rows.

    `mean`: in scaled units, divided by the shares `present`.
    """
    linear = np.eye(len(mean) + 1)
    linear[1:, 0] = -mean * present
    return noise.transformed(linear)


def _correlation_noise(
    noise: EntryCovariance, correlation: Array, pairs: Array, squares: Array, of_variances: Array
) -> Array:
    """Variances of the noise of correlations, to first order; shape (p, p).

    `noise`: of covariances. `pairs`, `squares`: the divisors that make these correlations; infinite
    where the variance is not that of the matrix. `of_variances`: relative noise of all variances.
    """
    p = len(correlation) + 1
    variance = noise.variance(p)[1:, 1:] / pairs**2
    with_own, between = (each[1:, 1:] for each in noise.covariance_with_diagonal(p))
    shared = with_own / pairs / squares[:, None]
    both = between / np.outer(squares, squares)
    relative = of_variances**2
    both = both + np.add.outer(relative, relative) / 2
    variance = variance - correlation * (shared + shared.T) + correlation**2 / 2 * both
    return np.maximum(variance, 0.0)


def _between(
    of_kept: Array,
    with_lost: Array,
    of_lost: Array,
    of_variances: Array,
    known: NDArray[np.bool_],
) -> tuple[Array, Array]:
    """Correlations, and half the distance between those of what was kept and those with the lost.

    Both are wrong where the tail differs, so the middle is taken, as far as the noise of the lost
    matrix does not explain the distances. `of_lost`, `of_variances`: errors by this noise, of
    covariances by the deviations, and relative ones. `known`: columns whose distances count.
    """
    distance = with_lost - of_kept
    noise = np.hypot(of_lost, np.abs(of_kept) / 2 * np.hypot.outer(of_variances, of_variances))
    pairs = np.triu(np.logical_and.outer(known, known), 1)
    explained = float((noise[pairs] ** 2).sum()) / max(float((distance[pairs] ** 2).sum()), 1e-15)
    correlation = of_kept + max(1 - explained, 0.0) / 2 * distance
    np.fill_diagonal(correlation, 1.0)
    return correlation, np.abs(distance) / 2


def _kept_correlation(denoised: Array, weight: float, presence: Presence) -> Array:
    """Correlations of the clipped rows alone."""
    mean = denoised[0, 1:] / weight / np.diag(presence.share)
    shifted = mean[:, None] + presence.shift
    return _as_correlation(denoised[1:, 1:] / weight / presence.share - shifted * shifted.T)


def _as_correlation(covariance: Array) -> Array:
    root = np.sqrt(np.maximum(np.diag(covariance), 1e-9))
    result: Array = np.clip(covariance / np.outer(root, root), -1, 1)
    return result
