"""The ledger: admission, fixed terms, append-only rows, and many writers at once."""

from __future__ import annotations

import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from ledger import Ledger
from mechanisms.guarantee import Guarantee, gdp_mu
from schemas.contract import Budget, Contract
from schemas.errors import (
    BudgetRefused,
    LedgerError,
    RequestError,
    SpentFailure,
    TermsChanged,
)
from tests.making import at_scale, contract_facts

SMALL = Guarantee(gdp_mu(3.0, 1e-5) / 10)  # a hundred of these fill the budget exactly


def contract(**changes: object) -> Contract:
    return Contract.model_validate(contract_facts() | changes)


def opened(folder: Path) -> Ledger:
    return Ledger(folder / "ledger.sqlite")


def charge(
    ledger: Ledger, name: str, guarantee: Guarantee = SMALL, under: Contract | None = None
) -> str:
    chosen = under or contract()
    return ledger.charge(chosen, name, f"request {name}", guarantee, "").release


def test_a_charge_stays(tmp_path: Path) -> None:
    assert charge(opened(tmp_path), "v1") == "v1-r1"
    assert charge(opened(tmp_path), "v2") == "v2-r2"
    statement = opened(tmp_path).statement("toy")
    assert [(c.release, c.state, c.guarantee) for c in statement.charges] == [
        ("v1-r1", "charged", SMALL),
        ("v2-r2", "charged", SMALL),
    ]
    assert statement.total.mu == pytest.approx(SMALL.mu * math.sqrt(2), rel=1e-15)
    assert 0 < statement.spent < 3
    assert statement.remaining + statement.spent > 3  # composition is kinder than addition
    left = Guarantee(statement.left.mu * (1 - 1e-12))
    assert statement.admits(left)
    assert not statement.admits(Guarantee(statement.left.mu * (1 + 1e-9)))


def test_refusals_show_the_sums_and_change_nothing(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    charge(ledger, "v1", Guarantee(gdp_mu(2.9, 1e-5)))
    with pytest.raises(BudgetRefused, match=r"asked epsilon 1\.3.*spent 2\.9.*remaining 0\.\d+"):
        charge(ledger, "v2", Guarantee(gdp_mu(1.3, 1e-5)))
    assert len(ledger.statement("toy").charges) == 1


def test_pure_charges_add_up(tmp_path: Path) -> None:
    ledger, tight = opened(tmp_path), contract(budget={"epsilon": 1.0, "delta": 1e-9})
    charge(ledger, "v1", Guarantee.of_pure(0.5), tight)
    charge(ledger, "v2", Guarantee.of_pure(0.5), tight)
    with pytest.raises(BudgetRefused):
        charge(ledger, "v3", Guarantee.of_pure(1e-3), tight)


def one_of_many(path: str, turn: int) -> str:
    try:
        return charge(Ledger(Path(path)), f"v{turn}")
    except BudgetRefused:
        return "refused"


def test_how_many_more_fit(tmp_path: Path) -> None:
    one = Guarantee(gdp_mu(0.4, 1e-6))
    statement = opened(tmp_path).preview(contract())
    fit = statement.times(one)
    for _ in range(fit):
        assert statement.admits(one)
        statement = statement.after(one)
    assert fit > 3
    assert statement.times(one) == 0
    assert not statement.admits(one)


def test_many_writers_never_overspend(tmp_path: Path) -> None:
    opened(tmp_path)
    turns = at_scale(120, 200)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(4, mp_context=context) as pool:
        paths = [str(tmp_path / "ledger.sqlite")] * turns
        answers = list(pool.map(one_of_many, paths, range(turns)))
    granted = [a for a in answers if a != "refused"]
    statement = opened(tmp_path).statement("toy")
    # A hundred fit to within rounding: the sum of squares is rounded against us, never for us.
    assert len(granted) == len(set(granted)) == len(statement.charges)
    assert 99 <= len(granted) <= 100
    assert statement.spent <= 3.0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"neighbours": "add-remove"}, "neighbours"),
        ({"budget": {"epsilon": 5.0, "delta": 1e-5}}, r"budget\.epsilon"),
        ({"budget": {"epsilon": 3.0, "delta": 1e-4}}, r"budget\.delta"),
        ({"columns": {"c0": {"lower": -5.0, "upper": 5.0}}}, "columns"),
        (
            {"columns": contract_facts()["columns"] | {"c1": {"lower": -9.0, "upper": 5.0}}},
            r"columns\.c1\.lower",
        ),
    ],
    ids=str,
)
def test_terms_are_fixed(tmp_path: Path, changes: dict, named: str) -> None:
    ledger = opened(tmp_path)
    assert ledger.preview(contract(**changes)).charges == ()  # not before the first charge
    charge(ledger, "v1")
    free = contract(title="Another title", source="elsewhere.csv", rows=99)
    assert len(ledger.preview(free).charges) == 1
    with pytest.raises(TermsChanged, match=named):
        ledger.preview(contract(**changes))
    with pytest.raises(TermsChanged, match=named):
        charge(ledger, "v2", under=contract(**changes))
    assert len(ledger.statement("toy").charges) == 1


def test_the_order_of_columns_is_fixed(tmp_path: Path) -> None:
    turned = dict(reversed(contract_facts()["columns"].items()))
    charge(opened(tmp_path), "v1")
    with pytest.raises(TermsChanged, match="columns"):
        opened(tmp_path).preview(contract(columns=turned))


def test_budgets_are_only_raised(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    charge(ledger, "v1")
    for bad in ({"epsilon": 3.0, "delta": 1e-5}, {"epsilon": 2.0, "delta": 1e-4}):
        with pytest.raises(RequestError, match="only be raised"):
            ledger.raise_budget("toy", Budget(**bad), "because")
    with pytest.raises(RequestError, match="reason"):
        ledger.raise_budget("toy", Budget(epsilon=4.0, delta=1e-5), "  ")
    with pytest.raises(RequestError, match="1/rows"):
        ledger.raise_budget("toy", Budget(epsilon=4.0, delta=0.5), "because")
    ledger.raise_budget("toy", Budget(epsilon=4.0, delta=1e-5), "board, 3 May")
    assert ledger.statement("toy").budget == Budget(epsilon=4.0, delta=1e-5)


def test_marks_are_made_once(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    release = charge(ledger, "v1")
    ledger.mark("toy", release, "drawn")
    with pytest.raises(SpentFailure, match="already drawn"):
        ledger.mark("toy", release, "drawn")


@pytest.mark.parametrize("table", ["datasets", "budgets", "charges", "marks"])
def test_rows_are_never_changed(tmp_path: Path, table: str) -> None:
    ledger = opened(tmp_path)
    ledger.mark("toy", charge(ledger, "v1"), "drawn")
    for verb in (f"DELETE FROM {table}", f"UPDATE {table} SET at = 'then'"):
        with pytest.raises(IntegrityError, match="append-only"), ledger._transaction() as db:
            db.execute(text(verb))


def test_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    opened(tmp_path)
    assert (tmp_path / "ledger.sqlite").stat().st_mode & 0o077 == 0


def test_a_ledger_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("not a database, and longer than a header of one" * 9)
    with pytest.raises(LedgerError, match=r"ledger\.sqlite"):
        Ledger(tmp_path / "ledger.sqlite")
