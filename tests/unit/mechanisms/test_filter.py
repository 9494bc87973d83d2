"""The limits of a budget, and of its share for mechanisms that may fail, exactly at the limit."""

from __future__ import annotations

import math

import pytest

from gramercy.mechanisms.accounting.composition import Filter
from gramercy.mechanisms.accounting.gdp import gdp_epsilon, gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee

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
