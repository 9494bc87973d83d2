"""Totals of charges are exact, however many there are, and a budget holds exactly at its limits."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.mechanisms.accounting.composition import (
    NO_CHARGES,
    Filter,
    Total,
    compose,
    composed_mu,
    remaining_mu,
    split_mu,
)
from gramercy.mechanisms.accounting.gdp import gdp_epsilon, gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from tests.support.problems import raises

CHARGES = st.builds(
    Guarantee,
    st.floats(1e-9, 1e6),
    st.floats(0, 1e-3).filter(lambda x: x == 0 or x > 1e-60),
    st.one_of(st.just(math.inf), st.floats(1e-6, 1e6)),
)


@pytest.mark.slow
@given(st.lists(CHARGES, max_size=12), st.randoms())
def test_total_is_exact_sum_of_charges(charges: list[Guarantee], random: object) -> None:
    total = NO_CHARGES
    for charge in charges:
        total = total.plus(charge)
    exact = sum((Fraction(each.mu) ** 2 for each in charges), Fraction(0))
    assert Fraction(total.squared_mu, 1 << 256) == exact
    assert Fraction(total.delta0, 1 << 256) == sum(Fraction(each.delta0) for each in charges)
    guarantee = total.guarantee
    assert Fraction(guarantee.mu) ** 2 >= exact
    assert exact == 0 or Fraction(math.nextafter(guarantee.mu, 0)) ** 2 < exact
    assert Total.parse(str(total)) == total
    assert guarantee == compose(reversed(charges))


@pytest.mark.slow
def test_many_charges_accumulate_without_drift() -> None:
    """Adding them one by one equals adding them at once, unlike a sum of doubles."""
    many, charge = 10**5, Guarantee(0.1, 1e-13, 0.1)
    total, in_doubles = NO_CHARGES, 0.0
    for _ in range(many):
        total = total.plus(charge)
        in_doubles += 0.1
    assert total == NO_CHARGES.plus(charge, many)
    assert Fraction(total.squared_mu, 1 << 256) == many * Fraction(0.1) ** 2
    assert Fraction(total.delta0, 1 << 256) == many * Fraction(1e-13)
    assert total.guarantee.pure == math.nextafter(10_000.0, math.inf)  # double 0.1 > 1/10
    assert abs(in_doubles - 10_000.0) > 1e-8


def test_values_below_the_unit_are_rounded_up() -> None:
    tiny = Guarantee(1e-200, 1e-300, 1e-290)
    total = NO_CHARGES.plus(tiny)
    assert (total.squared_mu, total.delta0, total.pure) == (1, 1, 1)


def test_root_is_rounded_up_where_its_last_unit_decides() -> None:
    """1 + 2^-256 is one unit more than the square of a double."""
    total = NO_CHARGES.plus(Guarantee(1.0)).plus(Guarantee(2.0**-128))
    assert total.guarantee.mu == math.nextafter(1.0, 2.0)


def test_one_approximate_charge_makes_the_total_approximate() -> None:
    total = NO_CHARGES.plus(Guarantee(0.1, pure=0.1)).plus(Guarantee(0.1))
    assert total.pure is None
    assert total.plus(Guarantee(0.1, pure=0.1)).guarantee.pure == math.inf
    assert not Filter(1e-3, 1e-9, 1e-10).admits(total.guarantee)


@pytest.mark.parametrize("text", ["", "1:2", "1:2:3:4", "x:0:0", "1:2:"])
def test_invalid_total_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- the reader of entries catches it
        Total.parse(text)


MUS = st.floats(1e-6, 1e3)


@given(st.lists(MUS, max_size=6))
def test_composed_mu_is_the_root_of_the_sum_of_squares_rounded_up(mus: list[float]) -> None:
    exact = sum((Fraction(mu) ** 2 for mu in mus), Fraction(0))
    composed = composed_mu(mus)
    assert Fraction(composed) ** 2 >= exact
    assert exact == 0 or Fraction(math.nextafter(composed, 0)) ** 2 < exact


@given(MUS, st.lists(st.floats(1e-9, 0.5), max_size=4))
def test_remaining_mu_uses_up_the_total_and_never_exceeds_it(
    total: float, shares: list[float]
) -> None:
    mus = [total * share for share in shares]
    remaining = remaining_mu(total, mus)
    exact = sum((Fraction(mu) ** 2 for mu in [*mus, remaining]), Fraction(0))
    assert exact <= Fraction(total) ** 2
    assert composed_mu([*mus, remaining]) <= total
    # What is lost by rounding is a few units in the last place of the total.
    assert exact >= Fraction(total) ** 2 * (1 - Fraction(2) ** -50)


def test_remaining_mu_of_an_exhausted_total_is_zero_and_of_an_exceeded_one_is_refused() -> None:
    assert remaining_mu(5.0, [3.0, 4.0]) == 0.0
    assert remaining_mu(5.0, []) == 5.0
    assert remaining_mu(math.inf, [1e9, 1e9]) == 0.0  # such mu count as 1e9
    for mus in ([3.0, math.nextafter(4.0, 5.0)], [math.inf]):
        with raises(families.ARGUMENT, argument="mus"):
            remaining_mu(5.0, mus)
    with raises(families.ARGUMENT, argument="mu"):
        remaining_mu(5.0, [math.nan])


@pytest.mark.slow
@given(MUS, st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6))
def test_split_mu_composes_to_at_most_the_total(total: float, shares: list[float]) -> None:
    mus = split_mu(total, shares)
    assert composed_mu(mus) <= total
    whole = math.fsum(shares)
    assert mus == pytest.approx([total * math.sqrt(s / whole) for s in shares], rel=1e-4)


def test_split_mu_leaves_a_rest_for_a_tiny_last_share() -> None:
    """Rounding must not give the others more than the total."""
    for count in range(1, 60):
        mus = split_mu(0.7, [1.0] * count + [1e-18])
        assert composed_mu(mus) <= 0.7


EPSILON, DELTA, SHARE = 1.0, 2.0**-10, 2.0**-13  # sums and differences of these are exact
MORE, LESS = math.inf, 0.0
BUDGET = Filter(EPSILON, DELTA, SHARE)


def test_failures_may_use_up_their_share_but_not_more() -> None:
    mu = gdp_mu(EPSILON, DELTA - SHARE)
    assert BUDGET.admits(Guarantee(mu, SHARE))
    assert not BUDGET.admits(Guarantee(mu, math.nextafter(SHARE, MORE)))
    assert not BUDGET.admits(Guarantee(mu / 9, math.nextafter(SHARE, MORE)))


def test_mu_may_use_up_the_rest_of_delta_but_not_more() -> None:
    mu = gdp_mu(EPSILON, DELTA - SHARE)
    assert BUDGET.admits(Guarantee(mu))
    assert not BUDGET.admits(Guarantee(mu * (1 + 1e-15)))
    # Unused failures are not left for mu.
    assert not BUDGET.admits(Guarantee(gdp_mu(EPSILON, DELTA)))


def test_pure_epsilons_may_use_up_epsilon_but_not_more() -> None:
    assert BUDGET.admits(Guarantee(9.0, SHARE, EPSILON))
    assert not BUDGET.admits(Guarantee(9.0, SHARE, math.nextafter(EPSILON, MORE)))


@pytest.mark.parametrize("failures", [0.0, SHARE / 2, SHARE])
def test_share_counts_as_spent_whether_it_is_used_or_not(failures: float) -> None:
    total = Guarantee(0.25, failures)
    assert BUDGET.epsilon_spent(total) == gdp_epsilon(0.25, DELTA - SHARE)
    left = BUDGET.remaining_mu(total)
    cap = gdp_mu(EPSILON, DELTA - SHARE)
    assert left == pytest.approx(math.sqrt(cap**2 - 0.25**2), rel=1e-14)
    assert left**2 + 0.25**2 < cap**2


def test_spent_epsilon_covers_failures_beyond_their_share() -> None:
    total = Guarantee(0.25, 2 * SHARE)
    assert BUDGET.epsilon_spent(total) == gdp_epsilon(0.25, DELTA - 2 * SHARE)
    assert BUDGET.epsilon_spent(Guarantee(0.25, DELTA)) == math.inf
    assert BUDGET.epsilon_spent(Guarantee(9.0, DELTA, pure=0.5)) == 0.5


def test_nothing_is_left_after_too_many_failures_or_without_a_delta() -> None:
    assert BUDGET.remaining_mu(Guarantee(0.25, math.nextafter(SHARE, MORE))) == 0.0
    assert Filter(EPSILON, SHARE, SHARE).remaining_mu(Guarantee(0.25)) == 0.0
    cap = gdp_mu(EPSILON, DELTA - SHARE)
    assert BUDGET.remaining_mu(Guarantee(cap)) == 0.0
    assert BUDGET.remaining_mu(Guarantee(2 * cap)) == 0.0
