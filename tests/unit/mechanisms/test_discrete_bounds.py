"""The bounds that certify draws of the discrete Gaussian hold at every precision.

At the precision in use, the bounds are so close that nearly every draw would be right without them.
So they are tested at a precision at which they are wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpmath import MPContext

from gramercy.mechanisms.sampling import discrete
from gramercy.mechanisms.sampling.inverse_cdf_table import inverse_cdf_table
from gramercy.mechanisms.sampling.rounding import LAPLACE, NORMAL, Law

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


@pytest.mark.slow
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


mp = MPContext()
mp.prec = 200
UNIT = 2.0**-64  # of a tail probability


def decision(law: Law, scale: float, k: int) -> int | None:
    """The integer that 63 bits determine, or None."""
    drawn = np.zeros(1, dtype=np.int64)
    left = inverse_cdf_table(law).resolve_certified(scale, np.array([k]), drawn)
    return None if left.size else int(drawn[0])


def reach(undecided: Callable[[int], bool], most: int) -> int:
    """The largest step that is undecided; steps up to it are, and `most` is not."""
    low, high = 0, most
    assert undecided(low)
    assert not undecided(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if undecided(middle) else (low, middle)
    return low


def stated_bound(scale: float, x: float, node: float, width: float) -> float:
    """The error bound of the module's docstring, at X = x, which is half an integer over scale.

    `width` is a unit of the tail probability over the density at the node.
    """
    mantissa, exponent = math.frexp(scale)
    upper_part = math.ldexp(math.floor(math.ldexp(mantissa, 26)), exponent - 26)
    from_node = scale * x + 0.5 - math.floor(upper_part * node)
    step = abs(scale * (x - node))
    tail = scale * (1.03 * width + 2.0**-59)
    return tail + step * 2.0**-49 + (abs(from_node) + 2) * 2.0**-50


@pytest.mark.parametrize("law", [NORMAL, LAPLACE], ids=["normal", "laplace"])
@pytest.mark.parametrize("near", [0.0017, 0.05, 0.3, 0.72, 1.9, 4.5])
@pytest.mark.parametrize("scale", [2.9, 70.3, 1234.5, 2.0**26 / 1.7, 2.0**40 / 1.7])
def test_draws_are_undecided_within_the_stated_bound(law: Law, near: float, scale: float) -> None:
    """The width of the bits, omitted terms, the polynomial and the sums dominate in turn."""
    j = math.floor(scale * near)
    x = (j + mp.mpf(0.5)) / mp.mpf(scale)
    k = int(mp.floor(mp.ldexp(law.upper(mp, x), 64)))
    octave = k.bit_length() - 1
    piece = (octave - 40) * 128 + (k >> octave - 7) - 128
    node, width = inverse_cdf_table(law).series[piece, :2].tolist()
    here = UNIT / float(law.density(mp, x))
    most = int(0.3 / (scale * here))
    above = reach(lambda m: decision(law, scale, k + m) is None, most)
    below = reach(lambda m: decision(law, scale, k - m) is None, most)
    assert decision(law, scale, k + above + 1) == j  # a larger tail probability, a smaller X
    assert decision(law, scale, k - below - 1) == j + 1
    expected = stated_bound(scale, float(x), node, width) / (scale * here)
    assert (above + below + 1) / 2 == pytest.approx(expected, rel=0.1, abs=0.6)


@pytest.mark.parametrize("law", [NORMAL, LAPLACE], ids=["normal", "laplace"])
def test_products_that_are_not_exact_are_undecided(law: Law) -> None:
    """From 2^52 on, a scaled node has no room for the bits after the point."""
    k = (1 << 61) + 987_654_321
    assert decision(law, 2.0**49 / 1.7, k) is not None
    assert decision(law, 2.0**55 / 1.7, k) is None
