"""The clipping radius grows as noise falls, and never depends on more than published counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramercy.scaling.clipping_radius import clipping_radius, length_edges
from gramercy.scaling.column_constants import LARGEST_WINSOR
from tests.support.histogram_tables import Array, Counts, noisy

N, Q = 20_000, 21
RNG = np.random.default_rng(2)
ONES = np.ones((N, 1))
NORMAL = np.linalg.norm(np.hstack([ONES, RNG.normal(size=(N, Q - 1))]), axis=1)
HEAVY = np.linalg.norm(np.hstack([ONES, RNG.standard_t(3, size=(N, Q - 1))]), axis=1)


def lengths(values: Array) -> Counts:
    edges = length_edges(Q)
    bins = np.maximum(np.searchsorted(edges, values, side="right") - 1, 0)
    return np.bincount(bins, minlength=len(edges)).astype(np.int64)


def test_edges_are_quarter_octaves_from_one() -> None:
    edges = length_edges(Q)
    assert edges[0] == 1
    assert edges[1:] / edges[:-1] == pytest.approx(np.full(len(edges) - 1, 2**0.25))
    assert np.array_equal(edges[4:], 2 * edges[:-4])
    for q in (2, 21, 1001):
        assert length_edges(q)[-1] > LARGEST_WINSOR * math.sqrt(q)


def test_radius_grows_as_noise_falls() -> None:
    counts = lengths(HEAVY)
    found = [clipping_radius(counts, 1.0, N, Q, noise) for noise in (3000, 300, 30, 3, 0.03)]
    assert found == sorted(found)
    assert found[0] < math.sqrt(Q)
    assert found[-1] > 4 * math.sqrt(Q)


def test_no_row_is_clipped_where_noise_is_negligible() -> None:
    assert clipping_radius(lengths(NORMAL), 1e-3, N, Q, 1e-6) >= 0.9 * NORMAL.max()


def test_radius_is_not_larger_than_rows_need() -> None:
    assert clipping_radius(lengths(NORMAL), 1e-3, N, Q, 100.0) < 1.2 * NORMAL.max()


def test_heavy_tails_get_a_larger_radius() -> None:
    assert clipping_radius(lengths(HEAVY), 5.0, N, Q, 3.0) > clipping_radius(
        lengths(NORMAL), 5.0, N, Q, 3.0
    )


def test_noise_of_the_histogram_changes_the_radius_little() -> None:
    exact = clipping_radius(lengths(NORMAL), 1e-3, N, Q, 30.0)
    for seed in range(20):
        counts = noisy(lengths(NORMAL), 100.0, np.random.default_rng(seed))
        assert 0.5 < clipping_radius(counts, 100.0, N, Q, 30.0) / exact < 2


def test_noise_of_bins_without_rows_hardly_ever_lengthens_the_radius() -> None:
    """An allowance of sqrt(K) standard deviations everywhere would do it three times as often."""
    q, n, sd, noise = 3, 20_000, 22.7, 1.74
    rng = np.random.default_rng(0)
    rows = np.hypot(1, rng.rayleigh(size=n))
    bins = np.searchsorted(length_edges(q), rows, side="right") - 1
    exact = np.bincount(bins, minlength=len(length_edges(q)))
    radii = (clipping_radius(noisy(exact, sd, rng), sd, n, q, noise) for _ in range(6_000))
    assert sum(radius > 1.2 * rows.max() for radius in radii) <= 3


def test_persons_with_many_rows() -> None:
    """The lengths of persons cover all their rows; the radius follows."""
    counts = lengths(10 * NORMAL)
    radius = clipping_radius(counts, 1.0, N, Q, 30.0)
    assert radius == pytest.approx(10 * clipping_radius(lengths(NORMAL), 1.0, N, Q, 30.0), rel=0.5)


@settings(max_examples=50, deadline=None)
@given(
    st.integers(2, 2000),
    st.integers(0, 2**32),
    st.floats(1e-3, 1e6),
    st.floats(1, 1e9),
    st.floats(1e-6, 1e9),
)
def test_any_counts_give_a_radius(q: int, seed: int, sd: float, n: float, noise: float) -> None:
    edges = length_edges(q)
    counts = np.random.default_rng(seed).integers(-1000, 1000, len(edges))
    radius = clipping_radius(counts, sd, n, q, noise)
    assert 1 <= radius <= 1.01 * edges[-1]
    assert radius == float(f"{radius:.2e}")
    assert clipping_radius(-np.abs(counts), sd, n, q, noise) >= 1
