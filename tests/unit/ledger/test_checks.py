"""Checks before an entry is appended: each admits up to its limit, and refuses beyond it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gramercy.ledger import Ledger
from gramercy.ledger.checks import (
    check_budget,
    check_delta,
    check_direction,
    check_not_charged,
    check_transition,
    checked_reason,
)
from gramercy.ledger.statement import Charge, Statement
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.ledger_history import ChargeState
from tests.support.ledgers import TENTH, charge, contract
from tests.support.problems import raises

BUDGET = Budget(epsilon=2.0, delta=1e-5)
CAP = gdp_mu(2.0, 0.9e-5)
STATEMENT = Statement(BUDGET)
CHARGE = Charge("v1-r1", "v1", "", TENTH, "", "2026", ChargeState.RESERVED)
ALLOWED = {
    ("reserved", "drawn"),
    ("reserved", "spent"),
    ("drawn", "sealed"),
    ("drawn", "spent"),
    ("sealed", "published"),
    ("sealed", "spent"),
    ("published", "withdrawn"),
}


def new(epsilon: float, delta: float) -> Budget:
    return Budget(epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("delta", [0.5e-5, 1e-5, 2e-5])
def test_budget_changes_in_one_direction(epsilon: float, delta: float) -> None:
    up = epsilon >= 2 and delta >= 1e-5 and (epsilon, delta) != (2.0, 1e-5)
    down = epsilon <= 2 and delta <= 1e-5 and (epsilon, delta) != (2.0, 1e-5)
    for lower, allowed in ((False, up), (True, down)):
        if allowed:
            check_direction("toy", BUDGET, new(epsilon, delta), lower=lower)
        else:
            with raises(families.CHANGE, dataset="toy", epsilon=2.0, delta=1e-5):
                check_direction("toy", BUDGET, new(epsilon, delta), lower=lower)


def test_delta_stays_below_one_row() -> None:
    check_delta(new(1.0, 1 / 41), 40)
    with raises(families.BUDGET_DELTA, limit=1 / 40):
        check_delta(new(1.0, 1 / 40), 40)


def test_release_changes_between_these_states_only() -> None:
    for state in (*ChargeState, None):
        for new_state in ChargeState:
            if (state, new_state) in ALLOWED:
                check_transition("toy", "v1-r1", state, new_state)
            else:
                with raises(
                    families.SPENT,
                    release="toy/v1-r1",
                    state=state or "never charged",
                    new_state=new_state,
                ):
                    check_transition("toy", "v1-r1", state, new_state)


@pytest.mark.parametrize("state", ChargeState)
@pytest.mark.parametrize("instead_of", [None, "v1-r1", "v1-r2"])
def test_same_request_is_charged_again_only_in_place_of_a_closed_release(
    state: ChargeState, instead_of: str | None
) -> None:
    check_not_charged("toy", None, instead_of)
    earlier = replace(CHARGE, state=state, reason="wrong file.")
    if state in {"spent", "withdrawn"} and instead_of == "v1-r1":
        check_not_charged("toy", earlier, instead_of)
    elif state == "withdrawn":
        with raises(families.SPENT, release="toy/v1-r1", reason="wrong file"):
            check_not_charged("toy", earlier, instead_of)
    else:
        with raises(families.SPENT, release="toy/v1-r1", mu=TENTH.mu):
            check_not_charged("toy", earlier, instead_of)


def test_refused_gaussian_states_what_is_left_for_a_gaussian() -> None:
    half = STATEMENT.after(Guarantee(0.6 * CAP))
    check_budget("toy", half, half.left)
    with raises(
        families.EXCEEDED,
        budget="toy",
        needed=Guarantee(CAP).epsilon(1e-5),
        needed_mu=CAP,
        left=half.remaining_gaussian,
        left_mu=half.left.mu,
        epsilon=2.0,
        delta=1e-5,
        spent=half.spent,
        spent_mu=half.total.mu,
    ):
        check_budget("toy", half, Guarantee(CAP))


def test_refused_pure_charge_states_what_is_left_for_a_pure_one() -> None:
    tight = Statement(new(2.0, 1e-60), window="2026").after(Guarantee.from_pure(1.0))
    check_budget("toy", tight, Guarantee.from_pure(1.0))
    assert tight.remaining == 1.0 > tight.remaining_gaussian
    name = "toy, data of 2026"
    with raises(families.EXCEEDED, budget=name, needed=1.5, left=1.0):
        check_budget("toy", tight, Guarantee.from_pure(1.5))
    with raises(families.EXCEEDED, budget=name, left=tight.remaining_gaussian):
        check_budget("toy", tight, Guarantee(1.5))


def test_refusal_for_too_many_failures_is_of_charges_that_may_fail() -> None:
    full = STATEMENT.after(Guarantee(1e-3, 1e-6))
    with raises(families.EXCEEDED, budget="toy", needed=1e-9, spent=1e-6):
        check_budget("toy", full, Guarantee(1e-3, 1e-9))
    # Failures fit, mu does not.
    with raises(families.EXCEEDED, needed_mu=CAP):
        check_budget("toy", STATEMENT.after(Guarantee(CAP)), Guarantee(CAP, 1e-7))
    # Another rule overspent the share: a charge that adds nothing to it does not fit, either.
    over = STATEMENT.after(Guarantee(1e-3, 2e-6))
    with raises(families.EXCEEDED, needed_mu=1e-3):
        check_budget("toy", over, Guarantee(1e-3))


def test_facts_of_a_charge_leave_out_its_fingerprint() -> None:
    published = replace(CHARGE, fingerprint="private", state=ChargeState.PUBLISHED, sha256="0" * 64)
    assert published.is_published
    assert not CHARGE.is_published
    assert published.facts() == {
        "release": "v1-r1",
        "version": "v1",
        "mu": TENTH.mu,
        "delta0": 0.0,
        "pure": None,
        "at": "2026",
        "state": "published",
        "reason": "",
        "sha256": "0" * 64,
        "series": None,
    }


def test_reason_is_one_line_of_text() -> None:
    assert checked_reason("  board, 3 May ") == "board, 3 May"
    for reason in ("", " ", "\n", "one\ntwo", "tab\x00"):
        with raises(families.CHANGE):
            checked_reason(reason)


def test_anchor_is_needed_after_a_draw_until_the_ledger_moves(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    release = charge(ledger, "v1")
    ledger.verify_anchor(None)
    ledger.mark("toy", release, ChargeState.DRAWN)
    with raises(families.UNTRUSTED, witness="the archive"):
        ledger.verify_anchor(None)
    ledger.move("the archive is another")
    ledger.verify_anchor(None)
    ledger.mark("toy", charge(ledger, "v2"), ChargeState.DRAWN)
    with raises(families.UNTRUSTED):
        ledger.verify_anchor(None)
    ledger.verify_anchor(ledger.head())


def test_table_that_outgrew_its_delta_is_refused(tmp_path: Path) -> None:
    """The terms of a data set leave the number of rows open, but not up to 1/delta."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charge(ledger, "v1")
    charge(ledger, "v2", terms=contract(rows=99_999))
    ledger.change_budget("toy", new(3.0, 2e-5), "board")
    limit = 1 / 50_000
    with raises(families.TERMS, dataset="toy", delta=2e-5, count_key="rows", limit=limit):
        charge(ledger, "v3", terms=contract(rows=50_000))
    assert charge(ledger, "v3", terms=contract(rows=49_999)) == "v3-r1"


def test_contract_states_any_budget_that_the_data_set_has_had(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charge(ledger, "v1")
    ledger.change_budget("toy", new(4.0, 1e-5), "board")
    ledger.change_budget("toy", new(5.0, 1e-5), "board")
    for epsilon in (3.0, 4.0, 5.0):
        terms = contract(budget={"epsilon": epsilon, "delta": 1e-5})
        assert ledger.preview(terms, "v2").budget == new(5.0, 1e-5)
    with raises(families.TERMS, terms=("budget.epsilon",)):
        ledger.preview(contract(budget={"epsilon": 4.5, "delta": 1e-5}), "v2")
    with raises(families.TERMS, terms=("neighbours",)):
        ledger.preview(contract(neighbours="add-remove"), "v2")


def test_digests_of_derived_files_are_recorded_of_published_releases(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    release = charge(ledger, "v1")
    first, second = "1" * 64, "2" * 64

    def record(digest: str, *, replace: bool) -> bool:
        return ledger.record_derived("toy", release, "report", "r", digest, replace=replace)

    for state in (ChargeState.DRAWN, ChargeState.SEALED, ChargeState.PUBLISHED):
        assert not record(first, replace=True)
        ledger.mark("toy", release, state, sha256="0" * 64)
    assert ledger.derived("toy", release) == {}
    assert record(first, replace=False)
    assert not record(first, replace=False)
    assert not record(second, replace=False)
    assert not record(first, replace=True)
    assert ledger.derived("toy", release) == {("report", "r"): first}
    assert record(second, replace=True)
    assert ledger.derived("toy", release) == {("report", "r"): second}
    ledger.mark("toy", release, ChargeState.WITHDRAWN, reason="wrong file")
    assert record(first, replace=True)
    assert ledger.find_inconsistencies([ledger.head()]) == []


def test_new_budget_is_compared_with_the_present_one(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charge(ledger, "v1")
    ledger.change_budget("toy", new(5.0, 1e-5), "board")
    with raises(families.CHANGE, epsilon=5.0):
        ledger.change_budget("toy", new(4.0, 1e-5), "board")
    ledger.change_budget("toy", new(4.0, 1e-5), "board", lower=True)


def test_changed_terms_state_what_to_write(tmp_path: Path) -> None:
    """Written as the message says, the contract is accepted."""
    ledger, registered = Ledger(tmp_path / "ledger.sqlite"), contract()
    charge(ledger, "v1")
    named = {name: column.model_dump() for name, column in registered.columns.items()}
    first, *others = named
    line = f"{first}: {{lower: -5, upper: 5}}"
    for changed, term, restored in (
        ({**named, first: named[first] | {"upper": 1.0}}, f"columns.{first}.upper", line),
        ({x: named[x] for x in others}, f"columns.{first}", line),
        ({x: named[x] for x in (*others, first)}, "columns", ", ".join(named)),
        ({**named, f"{first}.b": named[first]}, f"columns.{first}.b", f"'columns': {first}.b."),
    ):
        with raises(families.TERMS) as refused:
            ledger.preview(contract(columns=changed), "v2")
        assert term in refused.value.facts["terms"]
        assert restored in refused.value.facts["remedy"]
    # A column that a pattern matches in a new file can only be excluded.
    wide = contract(columns={"c*": {"lower": -5.0, "upper": 5.0}})
    matched = wide.with_columns({"c*": (*named, "c9")})
    with raises(families.TERMS, exclude=("c9",), terms=("columns.c9",)):
        ledger.preview(matched, "v2")
    # One name may be the beginning of another, and a column that lacks a fact is not missing.
    dotted = {"c": {"lower": -5.0, "upper": 5.0}, "c.d": {"lower": 0.0, "upper": 1.0}}
    coded = {**dotted, "c.d": {**dotted["c.d"], "missing": [-9.0]}}
    charge(ledger, "v1", terms=contract(id="dotted", columns=coded))
    with raises(families.TERMS, terms=("columns.c.d.missing",)) as refused:
        ledger.preview(contract(id="dotted", columns=dotted), "v2")
    remedy = refused.value.facts["remedy"]
    assert remedy == "Write c.d: {lower: 0, missing: [-9], upper: 1} in 'columns'."
