"""Steps of one cumulative series, taken together: which have rows in common, and joint noise.

Sums over different steps of a series are decoded from the same published sums, so their noise is
correlated: of neighbouring weeks by about -0.6. A number that is, to first order, a linear function
of the noise of its matrix has that correlation with the same number of another window, if both
functions are the same. They are nearly, for tables of one population; where they differ, the
correlation is closer to zero. Those of disjoint windows are negative, so the error of a difference
is then too large, and never too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from gramercy.common.prefix_sums import PrefixSums
from gramercy.schemas import families
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence, SeriesSteps
from gramercy.schemas.manifest import ReleaseSpec

Array = NDArray[np.float64]


def noise_correlations(evidences: Sequence[Evidence]) -> Array | None:
    """Correlations of the noise of several tables; shape (k, k).

    None if all are independent. Raises RequestError if two are windows of one series with a common
    step, or were decoded from different draws of a step.
    """
    found, steps = np.eye(len(evidences)), [each.steps for each in evidences]
    for i, one in enumerate(steps):
        for j, other in enumerate(steps[:i]):
            if one is not None and other is not None:
                found[i, j] = found[j, i] = _correlation(one, other)
    return found if np.count_nonzero(found) > len(found) else None


def _correlation(one: SeriesSteps, other: SeriesSteps) -> float:
    if one.series != other.series or _are_other_groups(one, other):
        return 0.0
    if max(one.first, other.first) < min(one.last, other.last):
        raise _common_steps()
    common = min(len(one.draws), len(other.draws))
    if one.draws[:common] != other.draws[:common]:
        raise families.COMPARISON(
            "The two cannot be compared: a step of their series was drawn again between them.",
            "Take both windows from releases after that step.",
        )
    series, ranges = PrefixSums(one.total), [(each.first, each.last) for each in (one, other)]
    spreads = [series.spread(last, last - first) for first, last in ranges]
    return series.covariance(*ranges) / math.prod(spreads)


def _are_other_groups(one: SeriesSteps, other: SeriesSteps) -> bool:
    return None not in (one.group, other.group) and one.group != other.group


def _common_steps() -> RequestError:
    return families.COMPARISON(
        "The two cannot be compared: they are of one series, and have steps in common.",
        "Compare windows without a common step: release.last(13) of step 26 with release.last(13) "
        "of step 13, or both steps with 'gramercy compare ... --last 13'.",
    )


def check_disjoint(*tables: tuple[str, Sequence[ReleaseSpec]]) -> None:
    """Refuse to compare a table with itself, or a step of a series with some of its rows.

    `tables`: the name of each, and the facts of its release, or of all releases of a pool. Two
    windows of one series are left to `noise_correlations`. Raises RequestError.
    """
    for (first, ones), (second, others) in combinations(tables, 2):
        if first == second:
            raise families.COMPARISON(
                "'{name}' cannot be compared with itself.", "Name another release.", name=first
            )
        pools = len(ones) > 1 or len(others) > 1
        for one, other in product(ones, others):
            if may_share_rows(one, other) and (pools or not same_series(one, other)):
                raise families.COMPARISON(
                    "The two cannot be compared: one of them is a step of a cumulative series of "
                    "'{dataset}', and the other may have rows of the same steps.",
                    "Compare two windows of one series: release.last(13) of step 26 with "
                    "release.last(13) of step 13, or both with 'gramercy compare ... --last 13'.",
                    dataset=one.dataset.id,
                )


def may_share_rows(one: ReleaseSpec, other: ReleaseSpec) -> bool:
    """Whether one of two releases is of a series, and the other may be of some of its rows."""
    if one.cumulative is None and other.cumulative is None:
        return False
    a, b = (None if each.period is None else each.period.label for each in (one, other))
    same = (one.dataset.id, one.dataset.curator) == (other.dataset.id, other.dataset.curator)
    return same and (a is None or b is None or a == b)


def same_series(one: ReleaseSpec, other: ReleaseSpec) -> bool:
    """Whether two releases are steps of one series."""
    return one.series is not None and one.series == other.series


def same_rows(one: ReleaseSpec, other: ReleaseSpec) -> bool:
    """Whether two releases are of one version, or of one period, of a data set."""
    if (one.dataset.id, one.dataset.curator) != (other.dataset.id, other.dataset.curator):
        return False
    if one.period is None or other.period is None:
        return one.dataset.version == other.dataset.version
    return one.period.label == other.period.label
