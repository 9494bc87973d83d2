"""What a statement says of its budget: spent, left, the share, and how many charges fit."""

from __future__ import annotations

import math

import pytest

from gramercy.ledger.statement import Statement
from gramercy.ledger.timelines import approximate_epsilons_of, approximate_spent
from gramercy.mechanisms.accounting.composition import NO_CHARGES
from gramercy.mechanisms.accounting.gdp import gdp_epsilon, gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.budget import Budget

BUDGET = Budget(epsilon=2.0, delta=1e-5)
CAP = gdp_mu(2.0, 0.9e-5)  # a tenth of delta is for failures
GAUSSIAN, PURE = Guarantee(0.6 * CAP, 1e-7), Guarantee.from_pure(0.5)


def after(*charges: Guarantee) -> Statement:
    statement = Statement(BUDGET, window="2026")
    for charge in charges:
        statement = statement.after(charge)
    return statement


def test_unused_budget_is_all_left() -> None:
    assert after().facts() == {
        "period": "2026",
        "epsilon": 2.0,
        "delta": 1e-5,
        "spent_epsilon": 0.0,
        "spent_mu": 0.0,
        "remaining_epsilon": 2.0,  # of a pure release; a Gaussian one does not have all of delta
        "remaining_mu": pytest.approx(CAP, rel=1e-14),
        "spent_failures": 0.0,
        "failures": 1e-5 / 10,
        "share": 0.0,
    }
    assert Statement(BUDGET).facts()["period"] is None


def test_gaussian_charges_take_their_squares() -> None:
    statement = after(GAUSSIAN)
    assert statement.facts() == {
        "period": "2026",
        "epsilon": 2.0,
        "delta": 1e-5,
        "spent_epsilon": gdp_epsilon(0.6 * CAP, 1e-5 - 1e-6),
        "spent_mu": 0.6 * CAP,
        "remaining_epsilon": pytest.approx(gdp_epsilon(0.8 * CAP, 1e-5), rel=1e-12),
        "remaining_mu": pytest.approx(0.8 * CAP, rel=1e-12),
        "spent_failures": 1e-7,
        "failures": 1e-5 / 10,
        "share": pytest.approx(0.36, rel=1e-12),
    }
    assert statement.left.mu <= math.sqrt(CAP**2 - GAUSSIAN.mu**2)
    assert statement.admits(statement.left)
    assert not statement.admits(Guarantee(statement.left.mu * (1 + 1e-12)))
    assert statement.remaining == statement.remaining_gaussian


def test_pure_charges_take_their_epsilons() -> None:
    statement = after(PURE, PURE, PURE)
    assert statement.total.pure == 1.5
    assert statement.admits(PURE)
    assert not statement.admits(Guarantee.from_pure(math.nextafter(0.5, 1)))
    # After pure charges either composition may leave more.
    assert statement.remaining == max(0.5, statement.remaining_gaussian)
    assert statement.spent == min(1.5, gdp_epsilon(statement.total.mu, 0.9e-5))
    assert after(Guarantee.from_pure(2.0)).remaining == 0.0
    assert after(Guarantee.from_pure(2.0)).facts()["remaining_epsilon"] == 0.0
    tight = Statement(Budget(epsilon=2.0, delta=1e-60)).after(PURE)
    assert tight.remaining == 1.5
    assert tight.share == 0.25


def test_share_is_one_when_nothing_is_left() -> None:
    assert after(Guarantee(CAP)).share == pytest.approx(1.0, rel=1e-12)
    assert after(Guarantee(2 * CAP)).share == 1.0
    assert after(Guarantee(1e-3, 1e-5)).share == 1.0  # failures beyond their share
    assert after(PURE).share == pytest.approx(min(0.25, (PURE.mu / CAP) ** 2))


@pytest.mark.parametrize(
    ("cost", "fitting"), [(1.01, 0), (1.0, 1), (0.75, 1), (0.5, 4), (0.2, 25), (1e-2, 10**4)]
)
def test_number_of_charges_that_fit(cost: float, fitting: int) -> None:
    one = Guarantee(cost * CAP * (1 - 1e-15))
    assert after().charges_left(one) == fitting
    assert after().admits(one, fitting)
    assert not after().admits(one, fitting + 1)


@pytest.mark.parametrize(("cost", "fitting"), [(0.9e-3, 10**6), (1.001e-3, 998002)])
def test_number_of_charges_is_given_up_to_a_million(cost: float, fitting: int) -> None:
    assert after().charges_left(Guarantee(cost * CAP)) == fitting


def test_approximate_epsilons_are_not_below_the_exact_ones() -> None:
    statements = [after(), after(GAUSSIAN), after(GAUSSIAN, PURE), after(PURE, PURE)]
    statements.append(Statement(BUDGET, NO_CHARGES.plus(Guarantee(0.1, 4e-6))))
    statements.append(Statement(BUDGET, NO_CHARGES.plus(Guarantee(0.1, 1e-5))))
    for rough, statement in zip(approximate_spent(statements), statements, strict=True):
        assert statement.spent <= rough <= statement.spent * (1 + 1e-7) + 1e-7
    charges = [GAUSSIAN, PURE, Guarantee(0.1, 1e-5), Guarantee(0.3, 0.0, 0.2)]
    rough_ones = approximate_epsilons_of([(charge, 1e-5) for charge in charges])
    for rough, charge in zip(rough_ones, charges, strict=True):
        assert charge.epsilon(1e-5) <= rough <= charge.epsilon(1e-5) * (1 + 1e-7) + 1e-7
