"""Totals of charges are exact, however many there are."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.mechanisms.accounting.composition import NOTHING, Filter, Total, compose
from gramercy.mechanisms.accounting.guarantee import Guarantee

CHARGES = st.builds(
    Guarantee,
    st.floats(1e-9, 1e6),
    st.floats(0, 1e-3).filter(lambda x: x == 0 or x > 1e-60),
    st.one_of(st.just(math.inf), st.floats(1e-6, 1e6)),
)


@given(st.lists(CHARGES, max_size=12), st.randoms())
def test_total_is_exact_sum_of_charges(charges: list[Guarantee], random: object) -> None:
    total = NOTHING
    for each in charges:
        total = total.plus(each)
    exact = sum((Fraction(each.mu) ** 2 for each in charges), Fraction(0))
    assert Fraction(total.squares, 1 << 256) == exact
    assert Fraction(total.failures, 1 << 256) == sum(Fraction(each.delta0) for each in charges)
    found = total.guarantee
    assert Fraction(found.mu) ** 2 >= exact
    assert exact == 0 or Fraction(math.nextafter(found.mu, 0)) ** 2 < exact
    assert Total.parse(str(total)) == total
    assert found == compose(reversed(charges))


@pytest.mark.slow
def test_a_million_charges_accumulate_without_drift() -> None:
    """Adding them one by one equals adding them at once, unlike a sum of doubles."""
    million, one = 10**6, Guarantee(0.1, 1e-13, 0.1)
    total = NOTHING
    for _ in range(million):
        total = total.plus(one)
    assert total == NOTHING.plus(one, million)
    assert Fraction(total.squares, 1 << 256) == million * Fraction(0.1) ** 2
    assert Fraction(total.failures, 1 << 256) == million * Fraction(1e-13)
    drifting = 0.0
    for _ in range(million):
        drifting += 0.1
    assert total.guarantee.pure == math.nextafter(100_000.0, math.inf)  # 0.1 is a little more
    assert abs(drifting - 100_000.0) > 1e-7


def test_values_below_the_unit_are_rounded_up() -> None:
    tiny = Guarantee(1e-200, 1e-300, 1e-290)
    total = NOTHING.plus(tiny)
    assert (total.squares, total.failures, total.pure) == (1, 1, 1)


def test_one_approximate_charge_makes_the_total_approximate() -> None:
    total = NOTHING.plus(Guarantee(0.1, pure=0.1)).plus(Guarantee(0.1))
    assert total.pure is None
    assert total.plus(Guarantee(0.1, pure=0.1)).guarantee.pure == math.inf
    assert not Filter(1e-3, 1e-9, 1e-10).admits(total.guarantee)


@pytest.mark.parametrize("text", ["", "1:2", "1:2:3:4", "x:0:0", "1:2:"])
def test_invalid_total_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid|unpack"):
        Total.parse(text)
