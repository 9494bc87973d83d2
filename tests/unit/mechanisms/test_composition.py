"""Sums of charges are exact, however many there are."""

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
def test_the_sum_is_the_sum(charges: list[Guarantee], random: object) -> None:
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


def test_a_million_charges_do_not_drift() -> None:
    """Added one by one, they make what they make at once; a sum of doubles does not."""
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


def test_what_is_finer_than_the_units_is_rounded_up() -> None:
    tiny = Guarantee(1e-200, 1e-300, 1e-290)
    total = NOTHING.plus(tiny)
    assert (total.squares, total.failures, total.pure) == (1, 1, 1)


def test_one_charge_without_a_pure_epsilon_leaves_none() -> None:
    total = NOTHING.plus(Guarantee(0.1, pure=0.1)).plus(Guarantee(0.1))
    assert total.pure is None
    assert total.plus(Guarantee(0.1, pure=0.1)).guarantee.pure == math.inf
    assert not Filter(1e-3, 1e-9, 1e-10).admits(total.guarantee)


@pytest.mark.parametrize("text", ["", "1:2", "1:2:3:4", "x:0:0", "1:2:"])
def test_a_text_that_is_no_total(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid|unpack"):
        Total.parse(text)
