"""The ledger of a cumulative series: one charge for its window, exact charges of redraws."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest

from gramercy.common.prefix_sums import PrefixSums
from gramercy.ledger import Ledger
from gramercy.ledger.entry import INCLUDED
from gramercy.ledger.series import SeriesAccount
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.ledger_history import ChargeState
from tests.support.databases import ledger_location
from tests.support.ledgers import charge, contract
from tests.support.problems import raises
from tests.support.series import (
    WINDOW,
    YEARLY,
    charge_step,
    moved,
    publish,
    publish_steps,
    spend,
    step_of,
)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return Ledger(ledger_location(request.param, tmp_path))


def test_first_step_is_charged_the_whole_window_and_later_steps_nothing(ledger: Ledger) -> None:
    charges = publish_steps(ledger, 3)
    assert [each.guarantee for each in charges] == [WINDOW, INCLUDED, INCLUDED]
    assert [(each.series.step, each.series.steps) for each in charges if each.series] == [
        (1, 12),
        (2, 12),
        (3, 12),
    ]
    assert ledger.statement("toy", "2026").total == WINDOW
    first, *later = (each for each in ledger.entries() if each.kind == "reserved")
    assert first.registered_series == step_of(1).terms
    assert [each.registered_series for each in later] == [None, None]
    assert ledger.find_inconsistencies([ledger.head()]) == []


def test_due_is_what_is_charged(ledger: Ledger) -> None:
    def due(step: int) -> Guarantee:
        return ledger.series("toy", "2026", step_of(step).series).due(step, WINDOW)

    assert due(1) == due(5) == WINDOW  # steps before it are drawn by the same run
    publish_steps(ledger, 2)
    assert due(3) == due(12) == INCLUDED
    spent = charge_step(ledger, step_of(3)).release
    spend(ledger, spent)
    redraw = due(3)
    assert redraw == charge_step(ledger, step_of(3), instead_of=spent).guarantee != INCLUDED


@pytest.mark.parametrize(("step", "squared"), [(1, 0.43), (39, 0.53), (52, 1.0)])
def test_redraw_is_charged_its_exact_growth(step: int, squared: float) -> None:
    prefixes = PrefixSums(52)
    account = SeriesAccount(WINDOW, (1,) * step + (0,) * (52 - step))
    price = account.price(step)
    assert (price.mu / WINDOW.mu) ** 2 == pytest.approx(squared, abs=0.01)
    draws = [1 + (t == step) for t in range(1, 53)]
    growth = Fraction(prefixes.squared_norm(draws), prefixes.squared_norm()) - 1
    exact = Fraction(WINDOW.mu) ** 2 * growth
    assert Fraction(price.mu) ** 2 >= exact > Fraction(math.nextafter(price.mu, 0)) ** 2


@pytest.mark.slow
def test_growths_add_up_to_the_guarantee_of_all_draws(ledger: Ledger) -> None:
    publish_steps(ledger, 2)
    for _ in range(3):
        release = charge_step(ledger, step_of(3), instead_of=_last_of_step(ledger, 3)).release
        spend(ledger, release)
    prefixes = PrefixSums(12)
    draws = [3 if t == 3 else 1 for t in range(1, 13)]
    exact = WINDOW.mu * math.sqrt(prefixes.squared_norm(draws) / prefixes.squared_norm())
    assert ledger.statement("toy", "2026").total.mu == pytest.approx(exact, rel=1e-14)
    assert ledger.find_inconsistencies([ledger.head()]) == []


def _last_of_step(ledger: Ledger, step: int) -> str | None:
    charges = ledger.charges("toy")
    return next((c.release for c in charges[::-1] if c.series and c.series.step == step), None)


@pytest.mark.parametrize("state", [*ChargeState])
def test_a_step_is_charged_once_under_any_version(ledger: Ledger, state: ChargeState) -> None:
    publish_steps(ledger, 1)
    release = charge_step(ledger, step_of(2)).release
    spend(ledger, release) if state is ChargeState.SPENT else publish(ledger, release, state)
    head = ledger.head()
    for version in ("2026-W02", "2026-W02.2"):
        with raises(families.SPENT, release=f"toy/{release}"):
            charge_step(ledger, step_of(2), version=version)
        if not state.is_closed:
            with raises(families.SPENT, release=f"toy/{release}"):
                charge_step(ledger, step_of(2), version=version, instead_of=release)
    assert ledger.head() == head


def test_steps_are_charged_in_order(ledger: Ledger) -> None:
    with raises(families.PERIOD, version="2026-W02"):
        charge_step(ledger, step_of(2))
    assert ledger.datasets() == []
    publish_steps(ledger, 1)
    with raises(families.PERIOD, version="2026-W03"):
        charge_step(ledger, step_of(3))


@pytest.mark.parametrize("state", sorted({*ChargeState} - {ChargeState.PUBLISHED}))
def test_a_step_needs_all_before_it_to_be_published(ledger: Ledger, state: ChargeState) -> None:
    publish_steps(ledger, 1)
    release = charge_step(ledger, step_of(2)).release
    spend(ledger, release) if state is ChargeState.SPENT else publish(ledger, release, state)
    with raises(families.SPENT, version="2026-W03", earlier="2026-W02", release=f"toy/{release}"):
        charge_step(ledger, step_of(3))
    if state.is_closed:
        again = charge_step(ledger, step_of(2), instead_of=release)
        assert again.guarantee != INCLUDED
        publish(ledger, again.release)
        assert charge_step(ledger, step_of(3)).guarantee == INCLUDED
        assert ledger.find_inconsistencies([ledger.head()]) == []


@pytest.mark.slow
def test_a_withdrawn_step_is_drawn_again_after_later_ones(ledger: Ledger) -> None:
    charges = publish_steps(ledger, 4)
    ledger.mark("toy", charges[1].release, ChargeState.WITHDRAWN, reason="wrong file")
    with raises(families.SPENT, version="2026-W05", earlier="2026-W02"):
        charge_step(ledger, step_of(5))
    again = charge_step(ledger, step_of(2), instead_of=charges[1].release)
    publish(ledger, again.release)
    assert charge_step(ledger, step_of(5)).guarantee == INCLUDED
    assert ledger.find_inconsistencies([ledger.head()]) == []


def test_a_series_keeps_the_facts_of_its_first_charge(ledger: Ledger) -> None:
    publish_steps(ledger, 1)
    head = ledger.head()
    for changed in (
        moved(step_of(2)),
        step_of(2, column="hour"),
        step_of(2, kind="timestamp"),
        step_of(2, kind=""),
    ):
        with raises(families.TERMS, release="toy/2026-W01-r1"):
            charge_step(ledger, changed)
    larger = Guarantee(WINDOW.mu * 2)
    with raises(families.TERMS, release="toy/2026-W01-r1", charged=WINDOW.mu):
        charge_step(ledger, step_of(2), guarantee=larger)
    assert ledger.head() == head


def test_a_window_is_charged_to_the_budget_whole(ledger: Ledger) -> None:
    """Also one that ends after its first step, and another series over the same window."""
    publish_steps(ledger, 1)
    other = charge_step(ledger, step_of(1, key="by region"), version="2026-W01")
    assert other.guarantee == WINDOW
    charge(ledger, "2026", WINDOW, contract(**YEARLY))
    assert ledger.statement("toy", "2026").total.mu == pytest.approx(WINDOW.mu * math.sqrt(3))
    with raises(families.EXCEEDED):
        charge_step(ledger, step_of(1, key="too much"), guarantee=Guarantee(WINDOW.mu * 1.01))
    next_year = step_of(1, key="visits of 2027")
    assert charge_step(ledger, next_year, version="2027-W01").guarantee == WINDOW
    assert charge_step(ledger, step_of(2)).guarantee == INCLUDED


def test_a_redraw_must_fit_the_budget(ledger: Ledger) -> None:
    release = charge_step(ledger, step_of(1), guarantee=Guarantee(WINDOW.mu * 1.9)).release
    spend(ledger, release)
    with raises(families.EXCEEDED):
        charge_step(ledger, step_of(1), guarantee=Guarantee(WINDOW.mu * 1.9), instead_of=release)


def test_included_steps_fit_a_budget_that_was_lowered(ledger: Ledger) -> None:
    publish_steps(ledger, 2)
    lowered = Budget(epsilon=0.1, delta=1e-6)
    ledger.change_budget("toy", lowered, "the table grows", lower=True)
    spent = charge_step(ledger, step_of(3)).release
    spend(ledger, spent)
    with raises(families.EXCEEDED):
        charge_step(ledger, step_of(3), instead_of=spent)
    assert ledger.find_inconsistencies([ledger.head()]) == []


@pytest.mark.parametrize("window", [Guarantee(0.1, 1e-7), Guarantee.from_pure(0.1)])
def test_a_series_has_a_gaussian_guarantee(ledger: Ledger, window: Guarantee) -> None:
    with raises(families.REQUEST_USE):
        charge_step(ledger, step_of(1), guarantee=window)
    assert ledger.datasets() == []
