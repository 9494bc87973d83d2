"""The clipping radius grows as noise falls, and never depends on more than published counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.scaling.clipping_radius import RowLengths, clipping_radius, length_edges
from tests.support.histogram_tables import Array, noisy

N, Q = 20_000, 21
RNG = np.random.default_rng(2)
ONES = np.ones((N, 1))
NORMAL = np.linalg.norm(np.hstack([ONES, RNG.normal(size=(N, Q - 1))]), axis=1)
HEAVY = np.linalg.norm(np.hstack([ONES, RNG.standard_t(3, size=(N, Q - 1))]), axis=1)


def lengths(values: Array, sd: float = 1e-3, seed: int | None = None) -> RowLengths:
    """The histogram of lengths; with noise, if there is a seed."""
    edges = length_edges(Q)
    bins = np.searchsorted(edges, values, side="right") - 1
    counts = np.bincount(bins, minlength=len(edges)).astype(np.int64)
    if seed is not None:
        counts = noisy(counts, sd, np.random.default_rng(seed))
    return RowLengths(counts, sd, edges, N)


def radius_of(seen: RowLengths, noise: float) -> float:
    return clipping_radius(seen, Q, Q - 1, noise)


def test_edges_are_quarter_octaves_where_a_radius_may_be() -> None:
    edges = length_edges(Q) / math.sqrt(Q)
    assert edges[0] == 0
    assert edges[4:9] == pytest.approx(2.0 ** (np.arange(5) / 4))
    assert edges[10:] == pytest.approx(2.0 ** np.arange(2, 2 + len(edges[10:])))
    for q in (2, 21, 1001):
        assert 2**12 <= length_edges(q)[-1] < 2**13  # see `counting.count_lengths`


def test_radius_grows_as_noise_falls() -> None:
    found = [radius_of(lengths(HEAVY, 1.0), noise) for noise in (3000, 300, 30, 3, 0.03)]
    assert found == sorted(found)
    assert found[0] < 1.2 * math.sqrt(Q)
    assert found[-1] > 4 * math.sqrt(Q)


def test_no_row_is_clipped_where_noise_is_negligible() -> None:
    assert radius_of(lengths(NORMAL), 1e-6) >= 0.9 * NORMAL.max()


def test_radius_is_not_larger_than_rows_need() -> None:
    assert radius_of(lengths(NORMAL), 100.0) < 1.2 * NORMAL.max()


def test_heavy_tails_get_a_larger_radius() -> None:
    assert radius_of(lengths(HEAVY, 5.0), 3.0) > radius_of(lengths(NORMAL, 5.0), 3.0)


def test_noise_of_the_histogram_changes_the_radius_little() -> None:
    exact = radius_of(lengths(NORMAL), 30.0)
    for seed in range(20):
        assert 0.5 < radius_of(lengths(NORMAL, 100.0, seed), 30.0) / exact < 2


@pytest.mark.slow
def test_noise_of_bins_without_rows_hardly_ever_lengthens_rows() -> None:
    """A gap costs evidence: else a strong bin carries weak ones, fifteen octaves beyond."""
    seen = [lengths(NORMAL, 22.7, seed).weights() for seed in range(300)]
    longest = int(np.flatnonzero(lengths(NORMAL).counts)[-1])
    assert sum(weights[longest + 2 :].any() for weights in seen) <= 6
    assert all(weights.sum() == pytest.approx(1) for weights in seen)


def test_what_clipping_takes_away_is_known_from_lengths() -> None:
    seen, radius = lengths(HEAVY), 1.5 * math.sqrt(Q)
    exact = np.maximum(HEAVY**2 - radius**2, 0).mean()
    assert float(seen.weights() @ seen.lost(radius)) == pytest.approx(exact, rel=0.2)
    assert seen.power == pytest.approx((HEAVY**2).mean(), rel=0.1)


def test_persons_with_many_rows() -> None:
    """The lengths of persons cover all their rows; the radius follows, farther than for rows."""
    many, one = (radius_of(lengths(times * NORMAL, 1.0), 30.0) for times in (10, 1))
    assert many == pytest.approx(10 * one, rel=0.5)


@pytest.mark.slow
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
    for some in (counts, -np.abs(counts)):
        radius = clipping_radius(RowLengths(some, sd, edges, n), q, q - 1, noise)
        assert 0.99 * math.sqrt(q) <= radius <= 129 * math.sqrt(q)
        assert radius == float(f"{radius:.2e}")


def test_a_few_weak_bins_together_do_not_say_that_the_last_has_rows() -> None:
    seen = lengths(NORMAL)
    counts, most = seen.counts.copy(), int(np.argmax(seen.counts))
    counts[most + 1 :] = 0
    counts[most + 1 : most + 6] = 250, 160, 40, 150, 140
    weak = RowLengths(counts, 100.0, seen.edges, float(counts.sum()))
    assert weak.weights(2.3)[most + 5] > 0
    ends = weak.weights(2.3, 2.0)
    assert ends[most + 1] > 0
    assert not ends[most + 2 :].any()
