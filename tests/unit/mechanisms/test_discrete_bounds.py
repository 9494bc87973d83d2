"""The bounds that certify draws of the discrete Gaussian hold at every precision.

At the precision in use, the bounds are so close that nearly every draw would be right without them.
So they are tested at a precision at which they are wide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpmath import MPContext

from gramercy.mechanisms.sampling import discrete

SIGMAS = [0.0625, 0.3, 1.0, 7.5, 120.0]


def exact_sums(sigma: float, reach: int, bits: int) -> tuple[list[Any], Any]:
    """2 (w_m + w_{m+1} + ...) for m = 1, ..., reach, and the total, in units of 2^-bits."""
    mp = MPContext()
    mp.prec = 2 * bits + 100
    last = reach + 2 + int(sigma * (3 * bits) ** 0.5)
    weights = [mp.exp(-(mp.mpf(j) ** 2) / (2 * mp.mpf(sigma) ** 2)) for j in range(1, last)]
    sums, total = [], mp.mpf(0)
    for weight in reversed(weights):
        total += 2 * weight
        sums.append(mp.ldexp(total, bits))
    return sums[::-1][:reach], mp.ldexp(1 + total, bits)


@pytest.mark.parametrize("bits", [50, 191])
@pytest.mark.parametrize("sigma", SIGMAS)
def test_slack_bounds_the_error_of_every_sum(sigma: float, bits: int) -> None:
    table = discrete._tail_sums(sigma, bits)
    exact, total = exact_sums(sigma, len(table.sums), bits)
    assert all(0 <= e - s <= table.slack for e, s in zip(exact, table.sums, strict=True))
    assert 0 <= total - table.total <= table.slack
    assert table.sums == sorted(table.sums, reverse=True)
    assert table.sums[-1] == 0


@pytest.mark.parametrize("guard", [-24, -12, 0])
@pytest.mark.parametrize("sigma", SIGMAS)
def test_tabulated_bounds_enclose_the_tail_probabilities(
    sigma: float, guard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discrete, "_GUARD_BITS", guard)
    table = discrete.tail_table.__wrapped__(sigma)
    lower, upper = table.lower[::-1].tolist(), table.upper.tolist()
    assert len(upper) == len(lower) + 1
    sums, total = exact_sums(sigma, len(upper), 63)
    tails = [s / total * 2**63 for s in sums]
    assert all(low <= tail for low, tail in zip(lower, tails[: len(lower)], strict=True))
    assert all(tail < high + 1 for high, tail in zip(upper, tails, strict=True))


@pytest.mark.parametrize("guard", [-12, 0])
@pytest.mark.parametrize("sigma", [0.3, 7.5])
def test_certified_draws_are_right_however_wide_the_bounds_are(
    sigma: float, guard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draws next to a tail probability: in doubt they are decided by more bits."""
    reference = discrete.tail_table(sigma)
    edges = reference.lower.astype(object)[-6:]  # of the smallest |X|
    tails = [int(edge) + step for edge in edges for step in (-(1 << 30), -1, 0, 1, 1 << 30)]
    tails = [tail for tail in tails if 0 <= tail < 1 << 63]
    words = [7, 11, 13]
    exact = [reference.resolve_exact(tail, [*words].pop) for tail in tails]
    monkeypatch.setattr(discrete, "_GUARD_BITS", guard)
    table = discrete.tail_table.__wrapped__(sigma)
    drawn, certified = table.resolve_certified(np.array(tails, dtype=np.uint64))
    for tail, j, is_certified, expected in zip(tails, drawn, certified, exact, strict=True):
        assert not is_certified or j == expected
        assert table.resolve_exact(tail, [*words].pop) == expected


@pytest.mark.parametrize("sigma", [1 / 16, 0.7, 3.0, 1000.0, 2.0**14])
def test_buckets_find_what_a_search_finds(sigma: float) -> None:
    """At every threshold and next to it, in the deepest tail, and at the ends of buckets."""
    table, stream = discrete.tail_table(sigma), np.random.default_rng(1)
    thresholds = np.concatenate(
        [table.lower, table.lower - np.uint64(1), table.lower + np.uint64(1)]
    )
    ends = (np.arange(1, 1 << 12, dtype=np.uint64) << np.uint64(47)) - np.uint64(1)
    drawn = [stream.integers(0, 1 << bits, 3000, dtype=np.uint64) for bits in (20, 40, 63)]
    tail = np.concatenate([thresholds, ends, ends + np.uint64(1), *drawn])
    tail = np.clip(tail, np.uint64(0), np.uint64((1 << 63) - 1))
    expected = table.lower.size - np.searchsorted(table.lower, tail, side="right")
    assert (table.resolve_certified(tail)[0] == expected).all()
    few = [table.resolve_certified(tail[k : k + 10])[0] for k in range(0, 200, 10)]
    assert (np.concatenate(few) == expected[:200]).all()
