"""Draws near a boundary between two integers stay undecided exactly as far as the bound reaches."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from mpmath import MPContext

from gramercy.mechanisms.sampling.inverse_cdf_table import inverse_cdf_table
from gramercy.mechanisms.sampling.rounding import LAPLACE, NORMAL, Law

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
