"""Where what rows lose by clipping is cut off, from their published lengths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gramercy.scaling.clipping_radius import RowLengths, length_edges, lost_cut

Q, ROWS = 9, 20_000
RADIUS = 2 * math.sqrt(Q)
CUTS = [2.0**k for k in range(-3, 4)]


def lengths(df: float, sd: float = 0.0, seed: int = 0) -> RowLengths:
    """Published lengths of rows whose cells have a t distribution."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_t(df, size=(ROWS, Q - 1))
    edges = length_edges(Q)
    found = np.searchsorted(edges, np.sqrt(1 + (rows**2).sum(axis=1)), side="right") - 1
    counts = np.bincount(found, minlength=edges.size)
    noisy = counts + np.rint(sd * rng.normal(size=edges.size)).astype(np.int64)
    return RowLengths(noisy, max(sd, 1e-3), edges, ROWS)


@pytest.mark.parametrize("df", [1.2, 2.0, 4.0])
@pytest.mark.parametrize("noise", [0.1, 10.0, 1000.0])
def test_cut_has_the_least_error(df: float, noise: float) -> None:
    seen = lengths(df)

    def error(cut: float) -> float:
        beyond = seen.weights() @ seen.lost(RADIUS * math.sqrt(1 + cut)) / (Q - 1)
        return float(beyond**2 + 2 * (cut * RADIUS**2 * noise / ROWS) ** 2)

    chosen = lost_cut(seen, RADIUS, Q - 1, noise)
    assert chosen in CUTS
    assert error(chosen) == pytest.approx(min(map(error, CUTS)), rel=1e-12)


def test_more_noise_or_lighter_tails_lower_the_cut() -> None:
    for df in (1.2, 2.0, 4.0):
        cuts = [lost_cut(lengths(df), RADIUS, Q - 1, noise) for noise in (0.01, 1.0, 100.0, 1e4)]
        assert cuts == sorted(cuts, reverse=True)
    cuts = [lost_cut(lengths(df), RADIUS, Q - 1, 10.0) for df in (1.2, 3.0, 1000.0)]
    assert cuts[0] > cuts[-1]
    assert cuts == sorted(cuts, reverse=True)


def test_any_counts_give_a_cut() -> None:
    edges = length_edges(Q)
    for counts in (np.zeros(edges.size), -np.arange(edges.size), np.full(edges.size, 1e9)):
        seen = RowLengths(counts.astype(np.int64), 100.0, edges, ROWS)
        assert lost_cut(seen, RADIUS, Q - 1, 1.0) in CUTS
