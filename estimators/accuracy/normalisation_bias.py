"""What the normalisation of rows does to correlations, estimated from a release alone.

Rows that are clipped or divided by their length count for less than others, so correlations after
normalisation differ from those of the table. That difference does not shrink with the number of
rows, and is not part of the noise. It is estimated by simulation: rows of several laws whose
moments after normalisation are the released ones (see `row_simulation`). The laws have tails: with
``clip`` and an intercept, their weight follows from the released mean weight of the rows, which is
1 if no row was clipped.

Without an intercept, means cannot be distinguished from structure: a mean that is off its public
centre by m adds the matrix m m^T, one direction. See `CorrelationAccuracy.if_centres_are_off`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.accuracy.row_laws import (
    Law,
    Marginal,
    copula,
    gaussian,
    lognormal,
    some_lognormal,
    student,
    with_tails,
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
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.histogram import Histogram

Array = NDArray[np.float64]

_NOISE_OF_COUNT = 2.0  # standard deviations that the count of a bin must exceed
_NOISE_OF_WEIGHT = 2.0  # standard deviations by which the mean weight may be too large
_CORRELATION_STEPS = 2
_DEGREES = (100.0, 20.0, 10.0, 6.0, 4.5, 3.5, 3.0, 2.5)
_SKEWNESS = (0.1, 0.35, 0.6, 0.85, 1.1, 1.4, 1.8, 2.2)
_HEAVY_TAILS: Mapping[str, tuple[Callable[[float], Law], tuple[float, ...]]] = {
    "t": (student, _DEGREES),
    "lognormal": (lognormal, _SKEWNESS),
    "some-lognormal": (some_lognormal, _SKEWNESS),
}
# Shapes where nothing is known of the tails.
_ASSUMED = {"t": 4.5, "marginals-t": 4.5, "lognormal": 0.6, "some-lognormal": 0.85}


def normalisation_bias(
    evidence: Evidence,
    moments: ScaledMoments,
    known: NDArray[np.bool_],
    histograms: Sequence[Histogram],
    rows_per_person: int,
) -> dict[str, Array]:
    """By law of the rows, correlations after normalisation minus those before, shape (q, q)."""
    columns = np.flatnonzero(known)
    facts = [moments.facts[j] if moments.facts else None for j in columns.tolist()]
    is_level = np.array([isinstance(each, LevelsFacts) for each in facts]) & moments.intercept
    target = Target(
        moments.mean[columns],
        np.sqrt(moments.variance[columns]),
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
    cells = standard_rows(target.correlation)

    def mean_weight(law: Law) -> float:
        return simulate(cells, law, target, how).mean_weight

    least_weight = _least_weight(evidence, rows_per_person) if moments.intercept else None
    families = dict(_HEAVY_TAILS)
    marginals = _marginals(histograms, facts)
    laws: dict[str, Law]
    if any(each is not None for each in marginals):
        laws = {"marginals": copula(marginals)}
        families = {"marginals-t": (partial(copula, marginals), _DEGREES)}
    else:
        laws = {"gaussian": gaussian}
    for name, (family, shapes) in families.items():
        if least_weight is None:
            laws[name] = family(_ASSUMED[name])
        else:
            laws[name] = _lightest([family(shape) for shape in shapes], mean_weight, least_weight)
    bias = {}
    for name, law in laws.items():
        result = _fitted(law, target, how)
        bias[name] = np.zeros(moments.released.shape)
        bias[name][np.ix_(columns, columns)] = result.normalised - result.correlation
    return bias


def _fitted(law: Law, target: Target, how: Normalisation) -> Simulated:
    """Rows whose correlations after normalisation, too, are those of the target."""
    correlation = target.correlation
    result = simulate(standard_rows(correlation), law, target, how)
    for _ in range(_CORRELATION_STEPS):
        correlation = np.clip(correlation + target.correlation - result.normalised, -1.0, 1.0)
        result = simulate(standard_rows(correlation), law, target, how)
    return result


def _lightest(laws: Sequence[Law], mean_weight: Callable[[Law], float], weight: float) -> Law:
    """The law with the lightest tails whose mean weight is at most this; else the heaviest."""
    low, high = 0, len(laws) - 1
    while low < high:
        middle = (low + high) // 2
        if mean_weight(laws[middle]) <= weight:
            high = middle
        else:
            low = middle + 1
    return laws[low]


def _least_weight(evidence: Evidence, rows_per_person: int) -> float | None:
    """A lower bound of the mean weight of a row, allowing for noise; None for unit rows."""
    if evidence.radius is None:
        return None
    square = evidence.radius**2
    weight, sd = square * evidence.raw[0, 0], square * evidence.deviations[0, 0]
    return float(min(1.0, weight / rows_per_person) - _NOISE_OF_WEIGHT * sd / rows_per_person)


def _limits(facts: ColumnFacts | LevelsFacts | None) -> tuple[float, float]:
    """Bounds of a column in scaled units."""
    if not isinstance(facts, ColumnFacts):
        return -np.inf, np.inf
    return (facts.lower - facts.centre) / facts.scale, (facts.upper - facts.centre) / facts.scale


def _marginals(
    histograms: Sequence[Histogram], facts: Sequence[ColumnFacts | LevelsFacts | None]
) -> tuple[Marginal | None, ...]:
    """The histograms of the last stage, in scaled units; bins within the noise are extrapolated."""
    latest = {each.column: each for each in sorted(histograms, key=lambda each: each.stage)}
    marginals: list[Marginal | None] = []
    for column in facts:
        published = latest.get(column.name) if isinstance(column, ColumnFacts) else None
        if published is None or not isinstance(column, ColumnFacts):
            marginals.append(None)
            continue
        inside = np.isfinite(published.lower) & np.isfinite(published.upper)
        count = published.count[inside].astype(np.float64)
        hidden = _NOISE_OF_COUNT * published.sd
        weights = np.where(count > hidden, count, 0.0)
        edges = np.append(published.lower[inside], published.upper[inside][-1:])
        scaled = (edges - column.centre) / column.scale
        marginals.append(
            Marginal(scaled, with_tails(scaled, weights, hidden)) if weights.any() else None
        )
    return tuple(marginals)
