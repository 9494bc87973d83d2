"""Bins: one partition, fixed by public facts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.scaling.column_constants import (
    Constants,
    LevelGrid,
    first_grid,
    zoomed_grid,
)
from gramercy.schemas.column import UNBOUNDED

BOUNDS = [(0.0, 1.0), (-5.0, 500.0), (1013.0, 1014.0), (-1e308, 1e308), (-1e-300, 0.0)]
numbers = st.floats(-1e300, 1e300)


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_edges_increase_from_bound_to_bound(lower: float, upper: float) -> None:
    edges = first_grid(lower, upper).edges
    assert np.isfinite(edges).all()
    assert (np.diff(edges) > 0).all()
    assert (edges[0], edges[-1]) == (lower, upper)
    assert len(edges) >= 17


def test_bins_are_narrow_around_zero() -> None:
    edges = first_grid(-1.0, 1e6).edges
    inside = np.diff(edges)[np.searchsorted(edges, 0.0) - 1]
    assert inside < 0.01
    assert np.sum((edges > 0) & (edges < 1e6 / 16)) >= 14
    assert np.sum((edges < 0) & (edges >= -1)) >= 3


def test_bounds_off_zero_give_equal_bins() -> None:
    edges = first_grid(10.0, 20.0).edges
    assert np.diff(edges) == pytest.approx([1e-8, *np.full(16, 10 / 16), 1e-8], abs=2e-8)


def test_without_bounds_bins_are_octaves() -> None:
    edges = first_grid(None, None).edges
    assert (edges[0], edges[-1]) == (-UNBOUNDED, UNBOUNDED)
    assert np.array_equal(edges, -edges[::-1])
    positive = edges[edges > 0]
    assert np.array_equal(positive[1:], 2 * positive[:-1])


def test_zoom_has_equal_bins_around_the_centre() -> None:
    edges = zoomed_grid(Constants(100.0, 2.0, 1.0, bins=32), 0.0, 1e4).edges
    near = edges[(edges >= 92) & (edges <= 108)]
    assert np.diff(near) == pytest.approx(np.full(32, 0.5))
    assert {0.0, 84.0, 116.0, 1e4} <= set(edges.tolist())
    assert len(edges) < 60


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1e4), (-5.0, 1e6), (None, None)])
def test_bins_far_out_are_those_of_the_first_stage(
    lower: float | None, upper: float | None
) -> None:
    """Whatever the constants are nearly, so that the counts of all stages can be pooled."""
    first = set(first_grid(lower, upper).edges.tolist())
    far = []
    for centre, scale in ((100.0, 2.0), (101.0, 2.3)):
        edges = zoomed_grid(Constants(centre, scale, 1.0, bins=32), lower, upper).edges
        far.append(set(edges[np.abs(edges - centre) > 200].tolist()))
    assert far[0] == far[1] <= first
    assert len(far[0]) >= 5


def test_bins_far_out_are_about_octaves_where_the_first_stage_is_coarser() -> None:
    edges = zoomed_grid(Constants(5.0, 1.0, 1.0), 1.0, 1e6).edges
    assert {13.0, 21.0, 37.0, 69.0} <= set(edges.tolist())
    distances = edges[edges > 13] - 5.0
    assert (distances[1:] / distances[:-1] < 4).all()


def test_zoom_separates_zero() -> None:
    edges = zoomed_grid(Constants(0.3, 1.0, 1.0), -5.0, 5.0).edges
    at = np.searchsorted(edges, 0.0)
    assert edges[at] - edges[at - 1] < 1e-8


@pytest.mark.slow
@given(
    st.tuples(numbers, numbers).filter(lambda each: each[0] < each[1]) | st.just((None, None)),
    st.floats(0, 1),
    st.floats(1e-12, 1e300),
    st.sampled_from([16, 32, 64, 128]),
)
def test_zoom_is_a_partition(
    bounds: tuple[float | None, float | None], share: float, scale: float, bins: int
) -> None:
    lower, upper = bounds
    least, largest = (-UNBOUNDED, UNBOUNDED) if lower is None or upper is None else (lower, upper)
    centre = min(max(least * (1 - share) + largest * share, least), largest)
    edges = zoomed_grid(Constants(centre, scale, 1.0, bins=bins), lower, upper).edges
    assert np.isfinite(edges).all()
    assert (np.diff(edges) > 0).all()
    assert (edges[0], edges[-1]) == (least, largest)


def test_sizes_include_the_bin_of_other_cells() -> None:
    assert LevelGrid(3).size == 4
    assert first_grid(10.0, 20.0).size == 19
