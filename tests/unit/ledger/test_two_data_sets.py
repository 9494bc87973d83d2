"""Data sets that share a ledger are accounted for separately, however releases are called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gramercy.ledger import Charge, Ledger
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.ledger_history import ChargeState
from tests.support.ledgers import TENTH, contract
from tests.support.problems import raises

Steps = list[Callable[[Ledger], object]]


def with_budget(dataset: str, epsilon: float, per: str) -> dict[str, Any]:
    source = "{year}.csv" if per == "year" else "table.csv"
    budget = {"epsilon": epsilon, "delta": 1e-5, "per": per}
    return {"id": dataset, "source": source, "budget": budget, "intercept": dataset == "toy"}


def life(dataset: str, epsilon: float, guarantee: Guarantee, per: str) -> Steps:
    """What happens to a data set; all names are the same for every data set."""
    terms = contract(**with_budget(dataset, epsilon, per))

    def charge(version: str, request: str) -> Callable[[Ledger], object]:
        return lambda ledger: ledger.charge(terms, version, request, guarantee, "")

    def mark(release: str, state: str, **facts: str) -> Callable[[Ledger], object]:
        return lambda ledger: ledger.mark(dataset, release, ChargeState(state), **facts)

    def derive(release: str, name: str) -> Callable[[Ledger], object]:
        digest = f"{len(dataset)}".rjust(64, "0")
        return lambda ledger: ledger.record_derived(
            dataset, release, "estimate", name, digest, replace=False
        )

    larger = Budget(epsilon=epsilon + 1, delta=1e-5)
    return [
        charge("2025", "first"),
        mark("2025-r1", "drawn"),
        mark("2025-r1", "sealed", sha256=dataset),
        mark("2025-r1", "published"),
        derive("2025-r1", "graph"),
        charge("2026", "second"),
        mark("2026-r1", "spent", reason=f"of {dataset}"),
        lambda ledger: ledger.change_budget(dataset, larger, f"for {dataset}"),
        charge("2026", "third"),
        mark("2026-r2", "drawn"),
        mark("2026-r2", "sealed", sha256=dataset),
        derive("2026-r2", "graph"),  # not published: recorded nowhere
    ]


def seen(ledger: Ledger, dataset: str) -> dict[str, Any]:
    """All that a reader learns of a data set, without times."""

    def timeless(charge: Charge | None) -> Charge | None:
        return charge and replace(charge, at="")

    return {
        "history": [(each.budget, each.reason) for each in ledger.budget_history(dataset)],
        "statements": ledger.statements(dataset),
        "around": [
            ledger.statements_around(dataset, each) for each in sorted(ledger.releases(dataset))
        ],
        "charges": [timeless(each) for each in ledger.charges(dataset)],
        "found": [timeless(ledger.find_charge(dataset, f"{n}")) for n in ("first", "second")],
        "one": timeless(ledger.charge_of(dataset, "2026-r1")),
        "sealed": [timeless(each) for each in ledger.sealed_charges(dataset)],
        "derived": [ledger.derived(dataset, each) for each in ("2025-r1", "2026-r2")],
        "sources": ledger.sources()[dataset],
        "budget": ledger.budget_at(dataset, 10**6),
        "timelines": [(each.window, len(each.events)) for each in ledger.timelines(dataset)],
    }


TOY = life("toy", 3.0, TENTH, "lifetime")
OTHER = life("others", 2.0, Guarantee(TENTH.mu / 2, 1e-8, 0.25), "year")


@pytest.mark.slow
def test_data_sets_are_as_if_each_had_its_own_ledger(tmp_path: Path) -> None:
    together = Ledger(tmp_path / "together.sqlite")
    alone = {name: Ledger(tmp_path / f"{name}.sqlite") for name in ("toy", "others")}
    for of_toy, of_other in zip(TOY, OTHER, strict=True):
        of_other(together)
        of_toy(together)
        of_toy(alone["toy"])
        of_other(alone["others"])
    for name, ledger in alone.items():
        expected = seen(ledger, name)
        assert seen(together, name) == expected
        assert len(expected["charges"]) == 3
        assert [each.release for each in expected["sealed"]] == ["2026-r2"]
        assert [len(each) for each in expected["derived"]] == [1, 0]
        assert ledger.datasets() == [name]
    assert together.datasets() == ["others", "toy"]
    assert together.find_inconsistencies([together.head()]) == []


def test_charge_of_one_data_set_leaves_the_budget_of_the_other(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    toy, other = contract(), contract(id="others")
    most = Guarantee(TENTH.mu * 9.9)
    assert ledger.charge(toy, "v1", "same", most, "").release == "v1-r1"
    assert ledger.charge(other, "v1", "same", most, "").release == "v1-r1"
    for terms in (toy, other):
        with raises(families.EXCEEDED, budget=terms.id):
            ledger.charge(terms, "v2", "another", most, "")
    with raises(families.CHANGE, dataset="third"):
        ledger.statement("third")


def test_new_budget_keeps_its_period(tmp_path: Path) -> None:
    """A lifetime's budget for every year, or one for every year for a lifetime, was never meant."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for step in OTHER[:6]:
        step(ledger)
    ledger.change_budget("others", Budget(epsilon=4.0, delta=1e-5), "board")
    assert ledger.statement("others").budget == Budget(epsilon=4.0, delta=1e-5, per="year")
    ledger.change_budget("others", Budget(epsilon=1.0, delta=1e-5), "board", lower=True)
    assert ledger.statement("others").budget == Budget(epsilon=1.0, delta=1e-5, per="year")
    assert ledger.find_inconsistencies([ledger.head()]) == []


@pytest.mark.slow
def test_overview_of_all_data_sets_agrees_with_each_of_them(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for of_toy, of_other in zip(TOY, OTHER, strict=True):
        of_toy(ledger)
        of_other(ledger)
    ledger.mark("toy", "2026-r2", ChargeState.SPENT, reason="of toy")
    assert ledger.sealed_charges("toy") == []
    accounts, names = ledger.accounts(), ["others", "toy"]
    assert list(accounts) == names
    assert ledger.statements_by_dataset() == {name: ledger.statements(name) for name in names}
    for name, account in accounts.items():
        assert account.statements == ledger.statements(name)
        assert account.changes == ledger.budget_history(name)
    assert {name: each.charged for name, each in accounts.items()} == {
        "toy": {"": 3},
        "others": {"2025": 1, "2026": 2},
    }
    assert ledger.published() == {("toy", "2025-r1"), ("others", "2025-r1")}
    (toy,) = ledger.timelines("toy")
    kinds = [event.what for event in toy.events]
    assert kinds == ["registered", "charged", "charged", "raised", "charged"]


def test_budget_at_an_entry_is_the_last_one_before_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for step in TOY[:8]:
        step(ledger)
    (raised,) = (each for each in ledger.entries() if each.kind == "raised")
    (first,) = (each for each in ledger.entries() if each.kind == "registered")
    assert ledger.budget_at("toy", first.seq - 1) is None
    assert ledger.budget_at("toy", raised.seq - 1) == Budget(epsilon=3.0, delta=1e-5)
    assert ledger.budget_at("toy", raised.seq) == Budget(epsilon=4.0, delta=1e-5)
