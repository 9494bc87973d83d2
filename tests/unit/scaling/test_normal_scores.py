"""Normal scores follow from any noisy counts: a draw must not be able to stop a release."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.scaling.column_scan import ColumnScan
from gramercy.scaling.normal_scores import with_scores
from gramercy.schemas.derived import DerivedFacts, Rank
from gramercy.schemas.evidence import Histogram, as_published
from gramercy.schemas.facts import ColumnFacts

FACTS = ColumnFacts(
    name="x",
    lower=0.0,
    upper=1.0,
    centre=0.0,
    scale=1.0,
    derived=DerivedFacts(inputs=("y",), transform="rank"),
)


def function_of(facts: ColumnFacts) -> Rank:
    assert facts.derived is not None
    function = DerivedFacts.model_validate(facts.derived.model_dump()).function
    assert isinstance(function, Rank)
    return function


def histogram(stage: int, edges: Any, counts: Any) -> Histogram:
    lower, upper = np.append(edges[:-1], np.nan), np.append(edges[1:], np.nan)
    return Histogram(stage, "x", lower, upper, (None,) * len(edges), counts, 1.0)


@pytest.mark.slow
@given(
    st.sampled_from(
        [(None, None), (0.0, 1.0), (-3.0, 1e6), (1013.0, 1014.0), (-1e100, 1e100), (0.0, 1e-100)]
    ),
    st.integers(0, 2**32),
    st.sampled_from([0, 1, 100, 10**6, 10**15]),
    st.floats(1e-6, 1e6),
    st.sampled_from([1.0, 1e3, 1e9]),
    st.booleans(),
)
def test_any_counts_give_scores(
    bounds: tuple[float | None, float | None],
    seed: int,
    size: int,
    sd: float,
    n: float,
    has_atom: bool,
) -> None:
    rng, scan, histograms = np.random.default_rng(seed), ColumnScan(*bounds), list[Histogram]()
    for stage in range(3):
        edges = scan.grid.edges
        counts = rng.integers(-size, size + 1, len(edges))
        if has_atom:
            counts[rng.integers(len(edges))] += int(n)
        histograms.append(histogram(stage + 1, edges, counts))
        scan = scan.after(counts, sd, n)
    facts = with_scores(FACTS, scan, n)
    assert facts == with_scores(FACTS, scan, n)
    assert facts.lower <= facts.centre <= facts.upper
    assert 0 < facts.scale < math.inf
    assert -4 < facts.lower < facts.upper < 4
    function = function_of(facts)
    lower, upper = scan.reach
    assert (function.knots[0], function.knots[-1]) == (lower, upper)
    cells = np.concatenate([rng.uniform(0, 1, 50) * upper, rng.normal(size=50) * facts.scale])
    scores = function.apply(np.sort(np.clip(cells, lower, upper)))
    assert (np.diff(scores) >= 0).all()
    assert function.limits((-math.inf, math.inf)) == (facts.lower, facts.upper)
    for each in as_published(histograms, [facts]):
        assert (each.lower[:-1] < each.upper[:-1]).all()
        assert facts.lower == each.lower[0]
        assert facts.upper <= each.upper[-2] <= facts.upper + 1e-6


def test_equal_cells_have_the_middle_of_their_scores() -> None:
    """Half of the cells are 0, at the lower bound, and an eighth are 3."""
    scan, rng = ColumnScan(0.0, 10.0), np.random.default_rng(1)
    cells = np.concatenate([np.zeros(8000), np.full(2000, 3.0), rng.uniform(3.5, 9.5, 6000)])
    for _ in range(3):
        edges = scan.grid.edges
        counts = np.append(np.histogram(cells, edges)[0], 0)
        scan = scan.after(counts, 1.0, len(cells))
    function = function_of(with_scores(FACTS, scan, len(cells)))
    (zero,) = function.apply(np.zeros(1))
    assert zero == pytest.approx(-0.6745, abs=0.01)  # the score of a quarter
    (middle,) = function.apply(np.array([6.5]))
    assert middle == pytest.approx(0.887, abs=0.02)  # of 13 of 16
