"""What the normalisation of rows does to correlations, estimated from a release alone.

Rows that are clipped or divided by their length count for less than others, so correlations after
normalisation differ from those of the table. That difference does not shrink with the number of
rows, and is not part of the noise. It is estimated by simulation: rows of several laws whose
moments after normalisation are the released ones (see `row_simulation`). The laws have tails: with
``clip``, their length follows from the mean weight of the rows, which is 1 if no row was clipped.

Without an intercept, means cannot be distinguished from structure: a mean that is off its public
centre by m adds the matrix m m^T, one direction. See `CorrelationAccuracy.if_centres_are_off`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.accuracy.published_marginals import published_marginals, seen
from gramercy.estimators.accuracy.row_laws import (
    Law,
    Marginal,
    copula,
    gaussian,
    lognormal,
    some_lognormal,
    student,
)
from gramercy.estimators.accuracy.row_simulation import (
    Normalisation,
    Simulated,
    Target,
    as_correlation,
    simulate,
    standard_rows,
)
from gramercy.estimators.accuracy.scaled_moments import ScaledMoments
from gramercy.estimators.own_units import mean_weight
from gramercy.schemas.evidence import Evidence, Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]

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
# The tails of published histograms end somewhere: in scaled units, a quarter octave apart.
_REACHES = (0.0, *(2.0 ** (np.arange(4, 29) / 4)).tolist(), math.inf)
_KEPT = 4  # simulations of a family; the last ones are of its lightest laws
_JOINT = 4.0  # degrees of freedom of a copula whose tails come together
_NOISE = 2.0  # standard deviations of the noise that a count must exceed to be seen
_BEYOND = 2  # bins beyond the radius that always count
_RATIO = 2**0.25  # of the last, unbounded bin's ends


@dataclass(frozen=True)
class LawBias:
    """What normalisation does to rows of one law; q columns.

    Parameters
    ----------
    correlation
        Correlations after normalisation minus those before, shape (q, q).
    spread
        Standard deviations before normalisation, relative to those after; shape (q,).
    """

    correlation: Array
    spread: Array


def normalisation_bias(
    evidence: Evidence,
    moments: ScaledMoments,
    known: NDArray[np.bool_],
    rows_per_person: int,
) -> dict[str, LawBias]:
    """What normalisation does, by law of the rows; nothing to columns that are not `known`."""
    columns = np.flatnonzero(known)
    facts = [moments.facts[j] if moments.facts else None for j in columns.tolist()]
    is_level = np.array([isinstance(each, LevelsFacts) for each in facts]) & moments.intercept
    target = Target(
        moments.mean[columns],
        np.sqrt(moments.variance[columns] * _unit(evidence, moments, rows_per_person)),
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
    marginals = published_marginals(evidence.marginals, facts)
    weight = row_weight(evidence, rows_per_person)
    cells = standard_rows(target.correlation)

    @lru_cache(maxsize=_KEPT)
    def simulated(law: Law) -> Simulated:
        return simulate(cells, law, target, how)

    bias = {}
    for name, family in _families(marginals, weight is not None).items():
        law = _lightest(family, lambda law: simulated(law).mean_weight, weight)
        result = _fitted(simulated(law), law, target, how)
        bias[name] = LawBias(np.zeros(moments.released.shape), np.ones(len(moments.mean)))
        change = result.normalised - result.correlation
        bias[name].correlation[np.ix_(columns, columns)] = change
        bias[name].spread[columns] = result.spread
    return bias


def _families(marginals: tuple[Marginal | None, ...], weight_known: bool) -> dict[str, list[Law]]:
    """The laws that rows may have; of each family, from the lightest tails to the heaviest."""
    if any(each is not None for each in marginals):
        return {
            "marginals": [_within(marginals, reach) for reach in _REACHES],
            "marginals-t": [_within(marginals, reach, _JOINT) for reach in _REACHES],
        }
    families: dict[str, list[Law]] = {"gaussian": [gaussian]}
    for name, (law, shapes) in _HEAVY_TAILS.items():
        families[name] = [law(shape) for shape in (shapes if weight_known else [_ASSUMED[name]])]
    return families


def _unit(evidence: Evidence, moments: ScaledMoments, rows_per_person: int) -> float:
    """Squared scaled units in a unit of the moments: without an intercept, nothing divides them."""
    if moments.intercept or evidence.unit or evidence.radius is None:
        return 1.0
    return evidence.radius**2 / rows_per_person


def _fitted(result: Simulated, law: Law, target: Target, how: Normalisation) -> Simulated:
    """Rows whose correlations after normalisation, too, are those of the target, or nearly so.

    `result` is of rows with the correlations of the target before normalisation.
    """
    correlation = target.correlation
    for _ in range(_CORRELATION_STEPS):
        correlation = np.clip(correlation + target.correlation - result.normalised, -1.0, 1.0)
        result = simulate(standard_rows(correlation), law, target, how)
    return result


def _within(marginals: tuple[Marginal | None, ...], reach: float, degrees: float = 0.0) -> Law:
    """Columns with these histograms, whose tails end at `reach`."""
    ended = tuple(None if each is None else each.within(reach) for each in marginals)
    return copula(ended, degrees or None)


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
    """Mean over rows of min(1, r^2 / |x|^2), as far as is known; None of unit rows.

    By the published lengths of rows, or else by the entry of the intercept. The noise in that entry
    is several times larger, so two of its standard deviations are subtracted: the tails that are
    inferred from a weight shall not be too light.
    """
    radius, lengths = evidence.radius, evidence.lengths
    if radius is None:
        return None
    if lengths is not None and lengths.count.sum() > 0:
        return _by_lengths(lengths, radius)
    weight = mean_weight(evidence)
    if weight is None:
        return None
    sd = radius**2 * float(evidence.deviations[0, 0]) / rows_per_person
    return min(1.0, weight / rows_per_person) - _NOISE * sd


def _by_lengths(lengths: Histogram, radius: float) -> float:
    """The same from a histogram of lengths; of a bin, the geometric mean of its ends."""
    upper = np.where(np.isnan(lengths.upper), lengths.lower * _RATIO, lengths.upper)
    lost = 1 - np.minimum(1.0, radius**2 / (lengths.lower * upper))
    counts = lengths.count.astype(np.float64)
    edges = np.append(lengths.lower, upper[-1])
    visible = np.flatnonzero(seen(edges, counts, _NOISE * lengths.sd, body=0.0))
    beyond = int(np.searchsorted(lengths.lower, radius * (1 - 1e-9))) + _BEYOND
    last = max(beyond, int(visible[-1]) + 1 if visible.size else 0)
    share = float(lost[:last] @ counts[:last]) / float(counts.sum())
    return min(1.0, max(0.0, 1 - share))
