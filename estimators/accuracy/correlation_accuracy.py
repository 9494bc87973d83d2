"""How accurate the correlations of a release are: noise and bias, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gramercy.estimators.accuracy.row_simulation import (
    Law,
    Normalisation,
    Simulated,
    Target,
    as_correlation,
    gaussian,
    lognormal,
    simulate,
    some_lognormal,
    standard_rows,
    student,
)
from gramercy.estimators.table_units import table_units, total_weight
from gramercy.estimators.uncertainty.moment_errors import schur_complement
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]

_KNOWN = 2.0  # standard deviations of the noise that a variance must exceed
_MOST_NOISE = 0.3  # largest noise of a correlation that is not lost
_LEAST_WEIGHT = 5.0  # standard deviations of the noise that the intercept's entry must exceed
_ASSUMED_MISSING = 0.05  # share of missing cells where it is unknown


@dataclass(frozen=True)
class ScaledMoments:
    """Moments of a release in scaled units, without the intercept; q columns."""

    mean: Array  # weighted means; zero without an intercept. Shape (q,).
    # covariance of the matrix as released, or its second moment without an intercept, with the
    # standard deviation of its noise. Shape (q, q).
    released: Array
    noise: Array
    denoised: Array  # the same of the denoised matrix
    facts: tuple[ColumnFacts | LevelsFacts | None, ...]  # the columns; empty if unknown
    present: Array  # share of rows with a value, shape (q,)
    intercept: bool  # whether moments are about the means

    @classmethod
    def of(cls, evidence: Evidence) -> ScaledMoments | None:
        raw, repaired, sd = evidence.raw, evidence.repaired, evidence.deviations
        has_intercept = bool(evidence.columns) and evidence.columns[0] is None
        first = int(has_intercept)
        facts, q = evidence.columns[first:], len(raw) - first
        present = np.array(evidence.present[first:] or [1.0] * q)
        if not has_intercept:
            return cls(np.zeros(q), raw, sd, repaired, facts, present, intercept=False)
        if min(raw[0, 0], repaired[0, 0]) <= _LEAST_WEIGHT * sd[0, 0]:
            return None
        own = table_units(evidence)
        if own is None:
            released, denoised = (schur_complement(each) / each[0, 0] for each in (raw, repaired))
            mean = repaired[0, 1:] / repaired[0, 0]
        else:
            scales = np.outer(own.scale, own.scale)
            released, denoised = (
                np.nan_to_num(own.moments(each).covariance / scales) for each in (raw, repaired)
            )
            mean = np.nan_to_num((own.moments(repaired).mean - own.centre) / own.scale)
        noise = _noise_about_means(sd / raw[0, 0], mean, np.maximum(present, 1e-6))
        return cls(mean, released, noise, denoised, facts, present, intercept=True)

    @property
    def variance(self) -> Array:
        """Variances, denoised where that leaves something; shape (q,)."""
        denoised = np.diag(self.denoised)
        return np.where(denoised > 0, denoised, np.diag(self.released))

    def correlation_noise(self) -> Array:
        """Noise in every correlation; infinite where it is lost, zero on the diagonal."""
        variance, sd = np.diag(self.released), np.diag(self.noise)
        known = variance > _KNOWN * sd
        deviation = np.sqrt(np.where(known, variance, 1.0))
        relative = np.where(known, sd / deviation**2, 0.0) ** 2 / 4
        squares = (self.noise / np.outer(deviation, deviation)) ** 2
        squares += as_correlation(self.denoised) ** 2 * np.add.outer(relative, relative)
        noise: Array = np.sqrt(squares)
        noise[(noise > _MOST_NOISE) | ~np.logical_and.outer(known, known)] = np.inf
        np.fill_diagonal(noise, np.where(known, 0.0, np.inf))
        return noise

    def missing_unknown(self) -> Array:
        """Change of the correlations if a few cells of every numeric column are missing."""
        levels = [isinstance(each, LevelsFacts) for each in self.facts] or [False] * len(self.mean)
        root = np.sqrt(np.where(levels, 1.0, 1 - _ASSUMED_MISSING))
        change: Array = as_correlation(self.denoised) * (np.outer(root, root) - 1)
        np.fill_diagonal(change, 0.0)
        return change

    def jointly_missing(self) -> Array:
        """Change of the correlations if cells are missing in the same rows, not independently."""
        deviation = np.sqrt(np.maximum(self.variance, 1e-300))
        product = (self.denoised + np.outer(self.mean, self.mean)) / np.outer(deviation, deviation)
        never = 1 - np.maximum.outer(self.present, self.present)
        change: Array = np.clip(never * product, -2.0, 2.0)
        np.fill_diagonal(change, 0.0)
        return change


def _noise_about_means(sd: Array, mean: Array, present: Array) -> Array:
    """Standard deviation of the noise in S_ij - S_0i S_0j / S_00, to first order.

    E_ij - m_j E_0i - m_i E_0j + m_i m_j E_00, where missing cells divide S_ij by o_i o_j, S_ii by
    o_i and m_i by o_i. The error of S_00 as a divisor of all is left out: correlations do not have
    it.
    """
    divisors = np.outer(present, present)
    np.fill_diagonal(divisors, present)
    squares = sd**2
    linear = np.outer(squares[0, 1:] / present**2, mean**2)
    linear += linear.T
    np.fill_diagonal(linear, 2 * np.diag(linear))  # there both terms are the same error
    variance = squares[1:, 1:] / divisors**2 + linear + np.outer(mean, mean) ** 2 * squares[0, 0]
    noise: Array = np.sqrt(variance)
    return noise


# What the normalisation of rows does to correlations, estimated from a release alone.
#
# Rows that are clipped or divided by their length count for less than others, so correlations after
# normalisation differ from those of the table. That difference does not shrink with the number of
# rows, and is not part of the noise. It is estimated by simulation: rows of several laws whose
# moments after normalisation are the released ones (see `row_simulation`). The laws have tails:
# with ``clip``, their length follows from the mean weight of the rows, which is 1 if no row was
# clipped. Releases that publish what clipping took away need no laws: see `clipped_accuracy`.
#
# Without an intercept, means cannot be distinguished from structure: a mean that is off its public
# centre by m adds the matrix m m^T, one direction. See `CorrelationAccuracy.if_centres_are_off`.

_CORRELATION_STEPS = 2
_DEGREES = (100.0, 20.0, 10.0, 6.0, 4.5, 3.5, 3.0, 2.5)
_SKEWNESS = (0.1, 0.35, 0.6, 0.85, 1.1, 1.4, 1.8, 2.2)
_HEAVY_TAILS: Mapping[str, tuple[Callable[[float], Law], tuple[float, ...]]] = {
    "t": (student, _DEGREES),
    "lognormal": (lognormal, _SKEWNESS),
    "some-lognormal": (some_lognormal, _SKEWNESS),
}
# Shapes where nothing is known of the weight.
_ASSUMED = {"t": 4.5, "lognormal": 0.6, "some-lognormal": 0.85}
_KEPT = 4  # simulations of a family; the last ones are of its lightest laws
_NOISE = 2.0  # standard deviations of the noise by which a mean weight is reduced


@dataclass(frozen=True)
class LawBias:
    """What normalisation does to rows of one law; q columns."""

    correlation: Array  # correlations after normalisation minus those before, shape (q, q)
    spread: Array  # standard deviations before normalisation, relative to those after; shape (q,)


def normalisation_bias(
    evidence: Evidence, moments: ScaledMoments, known: NDArray[np.bool_], rows_per_person: int
) -> dict[str, LawBias]:
    """What normalisation does, by law of the rows; nothing to columns that are not `known`."""
    columns = np.flatnonzero(known)
    facts = [moments.facts[j] if moments.facts else None for j in columns.tolist()]
    is_level = np.array([isinstance(each, LevelsFacts) for each in facts]) & moments.intercept
    unit = 1.0  # squared scaled units in a unit of the moments
    if evidence.radius is not None and not (moments.intercept or evidence.unit):
        unit = evidence.radius**2 / rows_per_person  # nothing divides them
    target = Target(
        moments.mean[columns],
        np.sqrt(moments.variance[columns] * unit),
        as_correlation(moments.denoised[np.ix_(columns, columns)]),
        is_level,
    )
    how = Normalisation(
        None if evidence.unit else evidence.radius,
        moments.intercept,
        np.array([_limits(each) for each in facts]).T,
        not evidence.present,
        rows_per_person,
    )
    weight = row_weight(evidence, rows_per_person)
    cells = standard_rows(target.correlation)

    @lru_cache(maxsize=_KEPT)
    def simulated(law: Law) -> Simulated:
        return simulate(cells, law, target, how)

    bias = {}
    for name, family in _families(weight is not None).items():
        law = _lightest(family, lambda law: simulated(law).mean_weight, weight)
        # Rows whose correlations after normalisation, too, are those of the target, or nearly so.
        result = simulated(law)
        correlation = target.correlation
        for _ in range(_CORRELATION_STEPS):
            correlation = np.clip(correlation + target.correlation - result.normalised, -1.0, 1.0)
            result = simulate(standard_rows(correlation), law, target, how)
        bias[name] = LawBias(np.zeros(moments.released.shape), np.ones(len(moments.mean)))
        change = result.normalised - result.correlation
        bias[name].correlation[np.ix_(columns, columns)] = change
        bias[name].spread[columns] = result.spread
    return bias


def _families(weight_known: bool) -> dict[str, list[Law]]:
    """The laws that rows may have; of each family, from the lightest tails to the heaviest."""
    families: dict[str, list[Law]] = {"gaussian": [gaussian]}
    for name, (law, shapes) in _HEAVY_TAILS.items():
        families[name] = [law(shape) for shape in (shapes if weight_known else [_ASSUMED[name]])]
    return families


def _lightest(
    laws: Sequence[Law], simulated_weight: Callable[[Law], float], weight: float | None
) -> Law:
    """The law with the lightest tails whose mean weight is at most this; else the heaviest."""
    if weight is None:
        return laws[-1]
    low, high = 0, len(laws) - 1
    while low < high:
        middle = (low + high) // 2
        if simulated_weight(laws[middle]) <= weight:
            high = middle
        else:
            low = middle + 1
    return laws[low]


def _limits(facts: ColumnFacts | LevelsFacts | None) -> tuple[float, float]:
    """Bounds of a column in scaled units."""
    if not isinstance(facts, ColumnFacts):
        return -np.inf, np.inf
    return (facts.lower - facts.centre) / facts.scale, (facts.upper - facts.centre) / facts.scale


def row_weight(evidence: Evidence, rows_per_person: int) -> float | None:
    """Mean over rows of min(1, r^2 / |x|^2), at least; None if it is not published.

    Two standard deviations of its noise are subtracted: the tails that are inferred from a weight
    shall not be too light.
    """
    weight = total_weight(evidence)
    if weight is None or evidence.radius is None:
        return None
    sd = evidence.radius**2 * float(evidence.deviations[0, 0]) / rows_per_person
    return min(1.0, weight / rows_per_person) - _NOISE * sd


_LEAST_REACH = 2.0  # standard deviations of the noise


@dataclass(frozen=True)
class CorrelationAccuracy:
    """Errors of the correlations of a release, other than sampling; q columns."""

    # standard deviation of the noise in every correlation, to first order; infinite where the
    # correlation is lost in it. Shape (q, q), zero on the diagonal.
    noise: Array
    # by law of the rows, the correlations after normalisation minus those before, and what missing
    # cells may do. Shape (q, q) each, zero where the correlation is lost.
    bias: Mapping[str, Array]
    # the largest absolute change of the correlations if the leading direction is a mean; zero with
    # an intercept. Shape (q, q).
    if_centres_are_off: Array
    # standard deviations of the rows relative to those after normalisation: the least over the
    # laws, and 1 without an intercept. Shape (q,).
    spread: Array
    leading_share: float  # share of the largest eigenvalue in the trace

    @property
    def pairs(self) -> NDArray[np.bool_]:
        """Pairs of columns whose correlation is not lost in the noise, each once."""
        known = np.isfinite(self.noise)
        return np.triu(known, 1)

    @property
    def lost_share(self) -> float:
        """Share of the pairs that are lost in the noise."""
        q = len(self.noise)
        return 1 - self.pairs.sum() / (q * (q - 1) / 2) if q > 1 else 0.0

    @property
    def typical_noise(self) -> float:
        """Root mean square of the noise over the pairs that are not lost."""
        return _root_mean_square(self.noise[self.pairs])

    @property
    def typical_bias(self) -> float:
        """Root mean square over these pairs, for the law under which it is largest."""
        return max((_root_mean_square(each[self.pairs]) for each in self.bias.values()), default=0)

    @property
    def typical_error(self) -> float:
        """Noise and bias together: the root of the sum of their squares."""
        return math.hypot(self.typical_noise, self.typical_bias)

    @property
    def largest_error(self) -> float:
        """Largest sum of bias and noise, over pairs and laws.

        Of the noise, as many standard deviations as one of all pairs exceeds on average, and at
        least two.
        """
        pairs = self.pairs
        number = max(int(pairs.sum()), 1)
        reach = max(_LEAST_REACH, float(-ndtri(0.5 / number))) * self.noise[pairs]
        errors = (np.abs(each[pairs]) + reach for each in self.bias.values())
        return max((float(each.max()) for each in errors if each.size), default=0.0)

    @property
    def error_if_centres_are_off(self) -> float:
        """Root mean square of `if_centres_are_off` over these pairs."""
        return _root_mean_square(self.if_centres_are_off[self.pairs])


def correlation_accuracy(
    evidence: Evidence, rows_per_person: int = 1
) -> CorrelationAccuracy | None:
    """Noise in the correlations of a release, and the bias of its normalisation.

    `evidence`: a release of a second moment, with its histograms if it has some. `rows_per_person`:
    number of rows that are normalised together. None if there are fewer than two columns, or if the
    weight of all rows is lost.
    """
    moments = ScaledMoments.of(evidence)
    if moments is None or len(moments.mean) < 2:
        return None
    noise = moments.correlation_noise()
    q = len(noise)
    known = np.isfinite(np.diag(noise))
    laws: dict[str, LawBias] = {}
    if np.count_nonzero(known) > 1 and (evidence.unit or evidence.radius is not None):
        laws = normalisation_bias(evidence, moments, known, rows_per_person)
    bias = {name: each.correlation for name, each in laws.items()}
    bias["missing"] = moments.jointly_missing() if evidence.present else moments.missing_unknown()
    trace = float(np.trace(moments.denoised))
    return CorrelationAccuracy(
        noise,
        {name: np.where(np.isfinite(noise), each, 0.0) for name, each in bias.items()},
        np.zeros((q, q)) if moments.intercept else _change_without_leading(moments.denoised),
        np.min([each.spread for each in laws.values()], axis=0)
        if laws and moments.intercept
        else np.ones(q),
        float(np.linalg.eigvalsh(moments.denoised)[-1]) / trace if trace > 0 else 0.0,
    )


def _change_without_leading(second: Array) -> Array:
    """Change of the correlations without what the first eigenvalue has more than the second."""
    values, vectors = np.linalg.eigh(second)
    if len(values) < 2:
        return np.zeros_like(second)
    leading = np.outer(vectors[:, -1], vectors[:, -1])
    rest = second - (values[-1] - max(values[-2], 0.0)) * leading
    return np.abs(as_correlation(second) - as_correlation(rest))


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0
