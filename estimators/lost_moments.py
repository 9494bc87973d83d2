"""What clipping took away from a release's moments, from its matrix of lost moments.

Rows longer than the radius r are shortened to it: of a row z, the matrix gets w z z^T with w =
min(1, r^2/|z|^2). The lost matrix has the rest, (1 - w) z z^T, with a as the intercept, of every
row cut to the Frobenius norm k r^2. So that much of what clipping hides is published, and what is
beyond the cut is bounded by the published lengths of rows. All of it is a function of published
numbers, in scaled units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.clipping_radius import RowLengths
from gramercy.schemas.evidence import LostMatrix

Array = NDArray[np.float64]

_SURE, _CAUTIOUS, _CAUTIOUS_GAP = 1.64, 2.3, 0.25
_LARGEST_RATIO = 0.18  # of the rows of one octave to those of the octave before
_DISTINCT, _DISTINCT_PAIR = 2.5, 4.0
_EVEN_SPREAD, _EVEN_SHARE = 1.5, 0.1
_UNSEEN, _BEYOND_SHARE = 2.0, 0.25
_LEAST_POWER = 0.02


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
        rows, sd = lengths.rows, lengths.sd
        low, high = lengths.ends
        losses = lengths.lost(radius)
        weights = lengths.weights()
        squares = np.maximum(low * high, 1e-12)
        share = 1 - np.minimum(radius**2 / squares, 1.0)
        norms = np.maximum(share * (squares + lost.intercept**2 - 1), 1e-12)
        beyond = losses * np.clip(1 - lost.cut * radius**2 / norms, 0.0, 1.0)
        kept = np.flatnonzero(weights > 0)
        seen = int(kept[-1]) + 1
        cautious = lengths.weights(_CAUTIOUS, _CAUTIOUS_GAP)
        noise = sd / rows * math.sqrt(float((losses[:seen] ** 2).sum()))
        return cls(
            float(weights @ losses),
            float(weights @ beyond),
            float(cautious @ losses),
            noise,
            _hidden(lengths, weights, losses, seen),
        )


def _hidden(lengths: RowLengths, weights: Array, losses: Array, seen: int) -> float:
    """The losses of rows beyond the last bin that is seen.

    From bin to bin, the number of rows falls at least as from the octave before the last seen one
    to that one. Of a bin, the posterior mean: a prior exponential in the number of rows, and the
    published count.
    """
    low, high = lengths.ends
    rows, sd = lengths.rows, lengths.sd
    counts = lengths.counts + (rows - float(lengths.counts.sum())) / len(lengths.counts)
    top = high[seen - 1]

    def between(start: float, end: float) -> float:
        inside = (low >= start * 0.999) & (high <= end * 1.001)
        return float(weights[inside].sum()) * rows

    last, before = between(top / 2, top), between(top / 4, top / 2)
    ratio = min(last / max(before, 1.0), _LARGEST_RATIO)
    expected, total = last, 0.0
    for k in range(seen, len(losses)):
        prior = expected * ratio ** min(1.0, math.log2(high[k] / low[k]))
        expected = min(_posterior_mean(float(counts[k]), sd, prior), prior)
        total += expected * float(losses[k]) / rows
        if expected < 0.1:  # noqa: PLR2004
            break
    return total


def _posterior_mean(count: float, sd: float, prior: float) -> float:
    """Mean of a number of rows given its noisy count, under an exponential prior."""
    if prior < 0.05 * sd:  # noqa: PLR2004
        return prior
    mean = count - sd * sd / prior
    u = -mean / sd
    if u < 6:  # noqa: PLR2004
        tail = max(0.5 * math.erfc(u / math.sqrt(2)), 1e-300)
        return max(mean + sd * math.exp(-u * u / 2) / math.sqrt(2 * math.pi) / tail, 0.0)
    slope = 1 - count * prior / sd**2
    return max(prior / slope if slope > 0 else prior, 0.0)


@dataclass(frozen=True)
class ClippedMoments:
    """Moments of a table in scaled units, with errors by noise and by clipping; p columns.

    Every array is of the columns without the intercept, of shape (p,) or (p, p).
    """

    mean: Array
    variance: Array
    correlation: Array
    # standard deviations of the noise
    mean_noise: Array
    variance_noise: Array
    correlation_noise: Array
    # Half widths of the bias at 1.96 standard deviations of its own errors.
    mean_bias: Array
    variance_bias_below: Array
    variance_bias_above: Array
    pair_bias: Array  # of a correlation, from what was lost of the pair
    unseen: Array  # what the pair may have lost unseen, by its deviations
    typical_bias: Array  # of a correlation, one standard deviation
    known: NDArray[np.bool_]  # columns whose variance stands out of the noise


def clipped_moments(
    raw: Array,
    denoised: Array,
    sd: float,
    radius: float,
    present: Array,
    lengths: RowLengths,
    lost: LostMatrix,
    z: float = 1.96,
) -> ClippedMoments:
    """Moments about the means, with what clipping took away put back as far as it is known.

    Parameters
    ----------
    raw, denoised
        The released matrix, minus the mean of the noise, and its best positive semidefinite form;
        the intercept first. Shape (q, q).
    sd
        Standard deviation of the noise of `raw` off the diagonal.
    radius
        Of clipping.
    present
        Share of rows with a value, of the columns without the intercept. Shape (p,).
    z
        Number of standard deviations of the bias's own noise in its half widths.
    """
    p, o, r2 = len(present), present, radius**2
    products = np.outer(o, o)
    np.fill_diagonal(products, o)
    kept, better, nu = r2 * raw, r2 * denoised, r2 * sd
    weight = float(np.clip(kept[0, 0], 0.05, 1.0))
    lost_weight = max(1 - weight, 0.0)
    s, sd_diagonal = lost.sd, math.sqrt(2) * lost.sd

    # How much was lost in all, by lengths; without the intercept.
    losses = LengthLosses.of(lengths, radius, lost)
    total = max(losses.seen - lost_weight, 0.0)
    cautious = max(losses.cautious - lost_weight, 0.0)
    most = max(total, cautious) + _SURE * losses.sd + losses.hidden

    # Diagonal: shrunk to what every column would lose in proportion to its variance.
    power = np.maximum(np.diag(better)[1:], _LEAST_POWER * o)
    even = total * power / power.sum()
    diagonal = np.diag(lost.matrix)[1:]
    off = diagonal - even
    spread = max(float(np.mean(off**2)) - sd_diagonal**2, (_EVEN_SPREAD * total / p) ** 2)
    trust = np.full(p, spread / (spread + sd_diagonal**2))
    distinct = 1 - (_DISTINCT * sd_diagonal / np.maximum(np.abs(off), 1e-12)) ** 2
    trust = np.maximum(trust, distinct)
    d = np.maximum(even + trust * off, 0.0)

    # Beyond the cut: as far as the trace confirms that the longest rows are there.
    base = d + _EVEN_SHARE * even + 1e-9
    share = base / base.sum()
    unexplained = total - d.sum() - _UNSEEN * math.hypot(losses.sd, math.sqrt(p) * sd_diagonal)
    beyond = min(max(losses.beyond, unexplained, 0.0), max(total, losses.beyond))
    within = max(total - losses.beyond, 1e-12)
    trace, trace_sd = float(diagonal.sum()), math.sqrt(2 * p) * s
    confirmed = float(np.clip(max(trace, 0.0) / within, 0, 1))
    at_most = float(np.clip((trace + _SURE * trace_sd) / within, 0, 1))
    extra = share * beyond * confirmed
    remainder = share * (beyond * at_most + max(cautious - total, 0.0))
    remainder = remainder + losses.hidden * np.maximum(share, power / power.sum())
    upper = np.minimum(
        np.minimum(np.maximum(diagonal, 0) + _SURE * sd_diagonal + remainder, most),
        np.maximum(d + _SURE * sd_diagonal, 0) + remainder,
    )

    # Off the diagonal: what the tail adds to the correlation of what was kept.
    root = np.sqrt(np.maximum(np.diag(better)[1:], 1e-9))
    second = np.clip(better[1:, 1:] / np.outer(root, root), -1, 1)
    roots = np.outer(np.sqrt(d), np.sqrt(d))
    prior = second * roots
    gain = lost.matrix[1:, 1:] - prior
    pairs = np.triu_indices(p, 1)
    squares = roots**2 + 1e-18
    excess = float((gain[pairs] ** 2).sum()) - len(pairs[0]) * s * s
    kappa = float(np.clip(excess / max(float(squares[pairs].sum()), 1e-15), 0.0, 1.0))
    trust_pair = kappa * squares / (kappa * squares + s * s)
    distinct = 1 - (_DISTINCT_PAIR * s / np.maximum(np.abs(gain), 1e-12)) ** 2
    trust_pair = np.maximum(trust_pair, np.maximum(distinct, 0.0))
    bound = np.sqrt(np.outer(upper, upper))
    off_diagonal = np.clip(prior + trust_pair * gain, -bound, bound)
    np.fill_diagonal(off_diagonal, d)

    # Means.
    lost_mean, lost_mean_sd = lost.matrix[0, 1:] / lost.intercept, s / lost.intercept
    expected = lost_weight * kept[0, 1:] / weight
    spread = max(float(np.mean((lost_mean - expected) ** 2)) - lost_mean_sd**2, 1e-8)
    trust_mean = spread / (spread + lost_mean_sd**2)
    mean = (kept[0, 1:] + expected + trust_mean * (lost_mean - expected)) / o

    # Variances and correlations.
    variance_seen = np.diag(kept)[1:] / o + d / o - mean**2
    variance_seen = np.maximum(variance_seen, 1e-12)
    variance = variance_seen + _BEYOND_SHARE * extra / o
    covariance = (better[1:, 1:] + off_diagonal) / products - np.outer(mean, mean)
    denoised_variance = np.maximum(np.diag(covariance) + _BEYOND_SHARE * extra / o, 1e-12)
    denoised_variance = np.where(denoised_variance > variance / 2, denoised_variance, variance)
    lost_correlation = np.clip(
        np.where(roots > 1e-12, off_diagonal / np.maximum(roots, 1e-12), second), -1, 1
    )
    covariance += (
        _BEYOND_SHARE * lost_correlation * np.sqrt(np.outer(extra, extra)) / np.outer(o, o)
    )
    with_lost = covariance / np.sqrt(np.outer(denoised_variance, denoised_variance))
    correlation = (np.clip(with_lost, -1, 1) + _kept_correlation(better, weight, products, o)) / 2
    np.fill_diagonal(correlation, 1.0)

    # Noise.
    variance_noise = np.sqrt(2 * nu**2 / o**2 + 4 * mean**2 * nu**2 / o**2)
    v = np.maximum(variance, 1e-12)
    deviations = np.sqrt(np.outer(v, v))
    squares_noise = nu**2 / products**2
    squares_noise = (
        squares_noise + np.outer(nu**2 / o**2, mean**2) + np.outer(mean**2, nu**2 / o**2)
    )
    relative = (variance_noise / v) ** 2 / 4
    noise = np.sqrt(
        squares_noise / deviations**2 + correlation**2 * np.add.outer(relative, relative)
    )

    # Bias: a confidence interval of the lost part, cut by Cauchy and Schwarz.
    limit = np.minimum(bound, most / 2)
    rows_of = np.outer(o, o)
    unseen = np.minimum(np.sqrt(np.outer(remainder, remainder)) / rows_of / deviations, 2.0)
    cut = _half_width(off_diagonal, lost.matrix[1:, 1:], s, -limit, limit, z)
    own = np.hypot(z * np.sqrt(trust_pair) * s, 0.5 * (1 - trust_pair) * np.abs(gain))
    shrunk = 0.5 * (1 - trust) * np.abs(off) / o
    uncertain = z * np.sqrt(trust) * sd_diagonal / o
    above = np.minimum(np.clip(diagonal + z * sd_diagonal, 0, most) - d, np.maximum(upper - d, 0))
    below = np.minimum(d - np.clip(diagonal - z * sd_diagonal, 0, most), d)
    shrunk_mean = 0.5 * (1 - trust_mean) * np.abs(lost_mean - expected)
    mean_bias = (
        np.minimum(np.sqrt(lost_weight * np.maximum(remainder / o, 0)), 0.5 * np.sqrt(v))
        + np.minimum(shrunk_mean, np.sqrt(lost_weight * upper)) / o
    )
    of_diagonal = np.minimum(shrunk + uncertain, np.maximum(above, below) / o) / v
    pair_bias = np.sqrt(
        np.minimum(own, np.maximum(cut, 0)) ** 2 / rows_of**2 / deviations**2
        + correlation**2 / 4 * np.add.outer(of_diagonal**2, of_diagonal**2)
    )
    return ClippedMoments(
        mean=mean,
        variance=variance,
        correlation=correlation,
        mean_noise=np.hypot(
            nu * np.sqrt(1 + mean**2) / o, math.sqrt(trust_mean) * lost_mean_sd / o
        ),
        variance_noise=variance_noise,
        correlation_noise=noise,
        mean_bias=mean_bias,
        variance_bias_below=np.minimum(shrunk + uncertain, np.maximum(below, 0) / o)
        + (variance - variance_seen) * 0,
        variance_bias_above=np.minimum(shrunk + uncertain, np.maximum(above, 0) / o),
        pair_bias=pair_bias,
        unseen=unseen,
        typical_bias=np.sqrt(trust_pair) * s / rows_of / deviations,
        known=variance_seen > 2 * variance_noise,
    ), dict(
        d=d, extra=extra, remainder=remainder, variance_seen=variance_seen, total=total, most=most
    )


def _kept_correlation(better: Array, weight: float, products: Array, o: Array) -> Array:
    """Correlations of the clipped rows alone."""
    mean = better[0, 1:] / weight / o
    covariance = better[1:, 1:] / weight / products - np.outer(mean, mean)
    root = np.sqrt(np.maximum(np.diag(covariance), 1e-9))
    kept: Array = np.clip(covariance / np.outer(root, root), -1, 1)
    return kept


def _half_width(
    centre: Array, observed: Array, sd: float, lower: Array, upper: Array, z: float
) -> Array:
    """Largest distance from a centre to the ends of a confidence interval, cut at two bounds."""
    ends = (np.clip(observed - z * sd, lower, upper), np.clip(observed + z * sd, lower, upper))
    width: Array = np.maximum(np.maximum(ends[1] - centre, centre - ends[0]), 0)
    return width
