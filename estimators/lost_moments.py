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

from gramercy.estimators.missing_cells import Presence
from gramercy.estimators.table_units import table_units, weight_lost
from gramercy.estimators.uncertainty.column_kurtosis import GAUSSIAN, column_kurtosis
from gramercy.scaling.clipping_radius import RowLengths
from gramercy.schemas.evidence import Evidence, LostMatrix

Array = NDArray[np.float64]

Z95 = 1.96
_SURE, _CAUTIOUS, _CAUTIOUS_GAP = 1.64, 2.3, 0.25
_LARGEST_RATIO, _FEW_ROWS, _NO_NOISE, _FAR_TAIL = 0.18, 0.1, 0.05, 6.0
_DISTINCT, _DISTINCT_PAIR = 2.5, 4.0
_EVEN_SPREAD, _EVEN_SHARE = 1.5, 0.1
_UNSEEN, _BEYOND_SHARE = 2.0, 0.25
_CONTRADICTED = 3.0  # standard deviations of the noise of counts
_LEAST_POWER, _LEAST_WEIGHT = 0.02, 0.05
_HIDDEN = 1.0
_REMAINDER = 0.7  # of what is unseen, in an interval
_FLOOR = 2.0  # standard deviations of the noise that a variance must exceed
_PAIR_KURTOSIS = 50.0  # largest one of which a correlation takes account


@dataclass(frozen=True)
class LengthLosses:
    """What clipping took from the mean squared length of rows, by their published lengths."""

    seen: float  # of rows that are seen
    beyond: float  # of these, beyond the cut of the lost matrix
    cautious: float  # of rows that may be seen
    sd: float  # standard deviation of the noise of `seen`
    hidden: float  # of rows that noise may hide, if lengths go on as their last octaves

    @classmethod
    def of(cls, lengths: RowLengths, radius: float, lost: LostMatrix) -> LengthLosses:
        """The losses at a radius."""
        low, high = lengths.ends
        losses, weights = lengths.lost(radius), lengths.weights()
        squares = np.maximum(low * high, 1e-12)
        together = squares + lost.rows_per_unit * (lost.intercept**2 - 1)
        norms = (1 - np.minimum(radius**2 / squares, 1.0)) * together
        cut = lost.cut * radius**2 / np.maximum(norms, 1e-12)
        seen = int(np.flatnonzero(weights > 0)[-1]) + 1
        return cls(
            float(weights @ losses),
            float(weights @ (losses * np.clip(1 - cut, 0.0, 1.0))),
            float(lengths.weights(_CAUTIOUS, _CAUTIOUS_GAP) @ losses),
            lengths.sd / lengths.rows * float(np.linalg.norm(losses[:seen])),
            _hidden(lengths, weights, losses, seen),
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
            most * self.sd,
            most * self.hidden,
        )


def _hidden(lengths: RowLengths, weights: Array, losses: Array, seen: int) -> float:
    """The losses of rows beyond the last bin that is seen.

    From bin to bin outwards, the number of rows is the posterior mean given its count, if it falls
    at least as fast as from the octave before the last seen one to that one.
    """
    (low, high), rows = lengths.ends, lengths.rows
    counts = lengths.counts + (rows - float(lengths.counts.sum())) / len(lengths.counts)

    def between(start: float, end: float) -> float:
        inside = (low >= start * 0.999) & (high <= end * 1.001)
        return float(weights[inside].sum()) * rows

    top = high[seen - 1]
    last, before = between(top / 2, top), between(top / 4, top / 2)
    ratio = min(last / max(before, 1.0), _LARGEST_RATIO)
    expected, total = last, 0.0
    for k in range(seen, len(losses)):
        prior = expected * ratio ** min(1.0, math.log2(high[k] / low[k]))
        expected = min(_posterior_mean(float(counts[k]), lengths.sd, prior), prior)
        total += expected * float(losses[k]) / rows
        if expected < _FEW_ROWS:
            break
    return total


def _posterior_mean(count: float, sd: float, prior: float) -> float:
    """Mean of a number of rows, exponential with mean `prior`, given its noisy count."""
    if prior < _NO_NOISE * sd:
        return prior
    mean = count - sd * sd / prior
    u = -mean / sd
    if u > _FAR_TAIL:
        slope = 1 - count * prior / sd**2
        return prior / slope if slope > 0 else prior
    tail = max(0.5 * math.erfc(u / math.sqrt(2)), 1e-300)
    return max(mean + sd * math.exp(-u * u / 2) / math.sqrt(2 * math.pi) / tail, 0.0)


@dataclass(frozen=True)
class Losses:
    """What clipping took from second moments; scaled units, p columns without the intercept."""

    weight: float  # of all rows that was lost
    total: float  # of the mean squared length
    most: float  # upper bound of the same
    columns: Array  # lost second moments, shape (p,)
    # the same as published, how much of it they are, how far it was moved, and its noise
    observed: Array
    trust: Array
    moved: Array
    noise: float
    upper: Array  # upper bounds of them, shape (p,)
    extra: Array  # expected beyond the cut, shape (p,)
    remainder: Array  # at most unseen, shape (p,)

    @classmethod
    def of(cls, lengths: LengthLosses, lost: LostMatrix, weight: float, power: Array) -> Losses:
        """The losses by column.

        `weight`: of all rows that was lost. `power`: kept second moments of the columns.
        """
        p, noise = len(power), math.sqrt(2) * lost.sd
        total = max(lengths.seen - weight, 0.0)
        cautious = max(lengths.cautious - weight, 0.0)
        most = max(total, cautious) + _SURE * lengths.sd + lengths.hidden
        by_power = power / power.sum()
        even, observed = total * by_power, np.diag(lost.matrix)[1:]
        moved = observed - even
        spread = max(float(np.mean(moved**2)) - noise**2, (_EVEN_SPREAD * total / p) ** 2)
        distinct = 1 - (_DISTINCT * noise / np.maximum(np.abs(moved), 1e-12)) ** 2
        trust = np.maximum(spread / (spread + noise**2), distinct)
        columns = np.maximum(even + trust * moved, 0.0)

        # Beyond the cut: as far as the trace confirms that the longest rows are there.
        base = columns + _EVEN_SHARE * even + 1e-9
        share = base / base.sum()
        explained = columns.sum() + _UNSEEN * math.hypot(lengths.sd, math.sqrt(p) * noise)
        beyond = min(max(lengths.beyond, total - explained, 0.0), max(total, lengths.beyond))
        within = max(total - lengths.beyond, 1e-12)
        trace = float(observed.sum())
        confirmed = float(np.clip(trace / within, 0, 1))
        at_most = float(np.clip((trace + _SURE * math.sqrt(p) * noise) / within, 0, 1))
        remainder = share * (beyond * at_most + max(cautious - total, 0.0))
        remainder = remainder + _HIDDEN * lengths.hidden * np.maximum(share, by_power)
        upper = np.minimum(
            np.minimum(np.maximum(observed, 0.0) + _SURE * noise + remainder, most),
            columns + _SURE * noise + remainder,
        )
        extra = share * beyond * confirmed
        return cls(
            weight, total, most, columns, observed, trust, moved, noise, upper, extra, remainder
        )

    @property
    def bias(self) -> tuple[Array, Array]:
        """Half widths of what is not known of the lost second moments, below and above."""
        width = (1 - self.trust) * np.abs(self.moved) / 2
        width = width + Z95 * np.sqrt(self.trust) * self.noise
        low = np.clip(self.observed - Z95 * self.noise, 0, self.most)
        high = np.clip(self.observed + Z95 * self.noise, 0, self.most)
        below = np.minimum(self.columns - low, self.columns)
        above = np.minimum(high - self.columns, np.maximum(self.upper - self.columns, 0.0))
        return np.minimum(width, np.maximum(below, 0.0)), np.minimum(width, np.maximum(above, 0.0))


@dataclass(frozen=True)
class ClippedMoments:
    """Moments of a table and their errors by noise and by clipping; p columns, scaled units."""

    mean: Array
    mean_noise: Array
    mean_bias: Array  # half width of an interval of 95 %
    variance: Array
    variance_noise: Array
    # half widths of intervals of 95 %; with the distances of their centre from `variance`
    variance_bias: tuple[Array, Array]
    variance_shift: tuple[Array, Array]
    correlation: Array
    correlation_noise: Array
    correlation_bias: Array  # half width of an interval of 95 %
    correlation_spread: Array  # standard deviation of the bias
    # at most by rows in which only one cell of a pair is missing, and which are unlike the others
    correlation_missing: Array
    # standard deviations by sampling, of rows with the kurtosis of the published histograms
    mean_sampling: Array
    variance_sampling: Array
    correlation_sampling: Array

    @property
    def known(self) -> NDArray[np.bool_]:
        """The columns whose variance exceeds the noise, shape (p,)."""
        below, _ = self.variance_shift
        clear: NDArray[np.bool_] = self.variance - below > _FLOOR * self.variance_noise
        return clear


def clipped_moments(evidence: Evidence) -> ClippedMoments | None:
    """Moments about the means of a release that publishes what clipping took away; else None."""
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
    if rows * divisor < counted:  # a group: the lengths are those of all rows
        weight = float(np.clip(evidence.raw[0, 0] * square, _LEAST_WEIGHT, 1.0))
        losses = losses.of_part(rows * divisor / counted, lost, 1 - weight)
    return moments_of(
        evidence.raw * square,
        evidence.repaired * square,
        evidence.typical_noise * square,
        units.together,
        losses,
        lost,
        rows * divisor,
        partial(column_kurtosis, evidence),
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


def moments_of(  # noqa: PLR0915  one derivation
    raw: Array,
    denoised: Array,
    nu: float,
    presence: Presence,
    lengths: LengthLosses,
    lost: LostMatrix,
    rows: float,
    kurtosis_of: Callable[[Array], Array],
) -> ClippedMoments:
    """See `clipped_moments`; `nu` is the deviation of the noise of `raw` off the diagonal.

    The matrices are in scaled units, with the intercept first, shape (p + 1, p + 1); `kurtosis_of`
    gives the kurtosis of the columns from their variances.
    """
    o, s = np.diag(presence.share), lost.sd
    pairs = products = presence.share
    weight = float(np.clip(raw[0, 0], _LEAST_WEIGHT, 1.0))
    power = np.maximum(np.diag(denoised)[1:], _LEAST_POWER * o)
    losses = Losses.of(lengths, lost, 1 - weight, power)
    d, remainder = losses.columns, losses.remainder

    # Means: the lost part is shrunk to the mean of what was kept.
    observed, observed_sd = lost.matrix[0, 1:] / lost.intercept, s / lost.intercept
    expected = losses.weight * raw[0, 1:] / weight
    moved = observed - expected
    spread = max(float(np.mean(moved**2)) - observed_sd**2, 1e-8)
    trust = spread / (spread + observed_sd**2)
    mean = (raw[0, 1:] + expected + trust * moved) / o

    # Variances.
    seen = np.maximum((np.diag(raw)[1:] + d) / o - mean**2, 1e-12)
    variance = seen + _BEYOND_SHARE * losses.extra / o
    v = np.maximum(variance, 1e-12)
    variance_noise = nu / o * np.sqrt(2 + 4 * mean**2)
    below, above = losses.bias

    # Off the diagonal: what the tail adds to the correlation of what was kept.
    root = np.sqrt(np.maximum(np.diag(denoised)[1:], 1e-9))
    kept = np.clip(denoised[1:, 1:] / np.outer(root, root), -1, 1)
    roots = np.sqrt(np.outer(d, d))
    prior, upper = kept * roots, np.triu_indices(len(d), 1)
    gain = lost.matrix[1:, 1:] - prior
    excess = float((gain[upper] ** 2).sum()) - len(upper[0]) * s * s
    kappa = float(np.clip(excess / max(float((roots[upper] ** 2).sum()), 1e-15), 0.0, 1.0))
    trust_pair = kappa * roots**2 / (kappa * roots**2 + s * s)
    distinct = 1 - (_DISTINCT_PAIR * s / np.maximum(np.abs(gain), 1e-12)) ** 2
    trust_pair = np.maximum(trust_pair, np.maximum(distinct, 0.0))
    bound = np.sqrt(np.outer(losses.upper, losses.upper))
    lost_pairs = np.clip(prior + trust_pair * gain, -bound, bound)
    np.fill_diagonal(lost_pairs, d)

    # Correlations: half with what was lost, half of what was kept.
    extra = _BEYOND_SHARE * losses.extra
    shifted = mean[:, None] + presence.shift
    covariance = (denoised[1:, 1:] + lost_pairs) / products - shifted * shifted.T
    lost_correlation = np.divide(lost_pairs, roots, out=kept.copy(), where=roots > 1e-12)
    covariance += np.clip(lost_correlation, -1, 1) * np.sqrt(np.outer(extra, extra)) / pairs
    own = np.diag(covariance)
    own = np.where(own > variance / 2, own, variance)
    with_lost = np.clip(covariance / np.sqrt(np.outer(own, own)), -1, 1)
    correlation = (with_lost + _kept_correlation(denoised, weight, presence)) / 2
    np.fill_diagonal(correlation, 1.0)

    # Noise and bias of correlations.
    deviations = np.sqrt(np.outer(v, v))
    squares = (nu / products) ** 2 + np.outer((nu / o) ** 2, mean**2)
    squares = squares + np.outer(mean**2, (nu / o) ** 2)
    relative = (variance_noise / v) ** 2 / 4
    squares = squares + presence.noise(correlation * deviations + np.outer(mean, mean), mean) ** 2
    noise = np.sqrt(squares / deviations**2 + correlation**2 * np.add.outer(relative, relative))
    unlike = np.abs(presence.shift) / np.sqrt(v)[:, None]
    unseen = np.minimum(np.sqrt(np.outer(remainder, remainder)) / pairs / deviations, 2.0)
    limit = np.minimum(bound, losses.most / 2)  # the losses of all columns sum to at most `most`
    ends = [np.clip(lost.matrix[1:, 1:] + z * s, -limit, limit) for z in (-Z95, Z95)]
    cut = np.maximum(np.maximum(ends[1] - lost_pairs, lost_pairs - ends[0]), 0.0)
    shrunk = np.hypot(Z95 * np.sqrt(trust_pair) * s, (1 - trust_pair) * np.abs(gain) / 2)
    of_variance = np.maximum(below, above) / o / v
    bias = (np.minimum(shrunk, cut) / pairs / deviations) ** 2
    bias = bias + correlation**2 / 4 * np.add.outer(of_variance**2, of_variance**2)
    bias = np.sqrt(bias + (_REMAINDER * unseen) ** 2)

    mean_bias = np.minimum(np.sqrt(losses.weight * remainder / o), np.sqrt(v) / 2)
    moved_back = (1 - trust) * np.abs(moved) / 2
    mean_bias = mean_bias + np.minimum(moved_back, np.sqrt(losses.weight * losses.upper)) / o
    cells = rows * o
    kurtosis = kurtosis_of(variance)
    pair_kurtosis = np.clip(kurtosis, GAUSSIAN, _PAIR_KURTOSIS)
    heavy = np.sqrt(np.sqrt(np.outer(pair_kurtosis, pair_kurtosis)) / GAUSSIAN)
    return ClippedMoments(
        mean=mean,
        mean_noise=np.hypot(nu * np.sqrt(1 + mean**2), math.sqrt(trust) * observed_sd) / o,
        mean_bias=_REMAINDER * mean_bias,
        variance=variance,
        variance_noise=variance_noise,
        variance_bias=(below / o, above / o),
        variance_shift=(variance - seen, seen + remainder / o - variance),
        correlation=correlation,
        correlation_noise=noise,
        correlation_bias=bias,
        correlation_spread=np.hypot(
            np.sqrt(trust_pair) * s / pairs / deviations, _REMAINDER / 2 * _REMAINDER * unseen
        ),
        correlation_missing=(unlike + unlike.T) / 2,
        mean_sampling=np.sqrt(v / cells),
        variance_sampling=v * np.sqrt((kurtosis - 1) / cells),
        correlation_sampling=heavy * (1 - correlation**2) / np.sqrt(rows * pairs),
    )


def _kept_correlation(denoised: Array, weight: float, presence: Presence) -> Array:
    """Correlations of the clipped rows alone."""
    mean = denoised[0, 1:] / weight / np.diag(presence.share)
    shifted = mean[:, None] + presence.shift
    covariance = denoised[1:, 1:] / weight / presence.share - shifted * shifted.T
    root = np.sqrt(np.maximum(np.diag(covariance), 1e-9))
    kept: Array = np.clip(covariance / np.outer(root, root), -1, 1)
    return kept
