"""Rounding errs on the side of less privacy, by at most one unit in the last place."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.mechanisms.accounting.gdp import UP, down, mp, subtract_down, up

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-30)


def exact(number: Any) -> Fraction:
    """An mpmath number as a fraction."""
    mantissa, exponent = mp.mpf(number).man_exp  # without the sign
    return (1 if number > 0 else -1) * Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


@given(NUMBERS, st.integers(-3, 3))
def test_up_and_down_are_the_doubles_on_either_side(base: float, halves: int) -> None:
    """Also for numbers that are doubles, and for those half-way between two doubles."""
    value = mp.mpf(base) + halves * mp.mpf(math.ulp(base)) / 2
    above, below = up(value), down(value)
    assert Fraction(math.nextafter(above, -math.inf)) < exact(value) <= Fraction(above)
    assert Fraction(below) <= exact(value) < Fraction(math.nextafter(below, math.inf))


@pytest.mark.parametrize("step", [-1, 1])
def test_the_last_of_sixty_digits_decides(step: int) -> None:
    value = 1 + step * mp.mpf(10) ** -58
    assert up(value) == (1.0 if step < 0 else math.nextafter(1.0, 2.0))
    assert down(value) == (1.0 if step > 0 else math.nextafter(1.0, 0.0))


@given(st.floats(1e-12, 1.0), st.floats(1e-12, 1.0))
def test_difference_of_deltas_is_rounded_down(delta: float, share: float) -> None:
    difference, rounded = Fraction(delta) - Fraction(share), subtract_down(delta, share)
    assert Fraction(rounded) <= difference < Fraction(math.nextafter(rounded, math.inf))


def test_factor_exceeds_the_error_of_a_product_of_three_operations() -> None:
    assert Fraction(UP) >= (1 + Fraction(1, 2**53)) ** 3 * (1 + Fraction(1, 2**51))
