"""The ledger, on both databases: admission, fixed terms, states, and location."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from gramercy.ledger import Charge, Ledger
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.budget import Budget
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import (
    BudgetRefused,
    ContractError,
    LedgerError,
    RequestError,
    SpentFailure,
    TermsChanged,
    UntrustedLedger,
)
from gramercy.schemas.model import parse
from tests.support.ledger_writers import FACTS, TENTH, charge, contract

YEARLY = {"source": "visits-{year}.csv", "budget": {"epsilon": 3.0, "delta": 1e-5, "per": "year"}}


def publish(ledger: Ledger, release: str) -> None:
    ledger.mark("toy", release, "drawn")
    ledger.mark("toy", release, "sealed", sha256="0" * 64)
    ledger.mark("toy", release, "published")


def test_charges_persist_across_connections(database: Path | str) -> None:
    assert charge(Ledger(database), "v1") == "v1-r1"
    assert charge(Ledger(database), "v2") == "v2-r2"
    ledger = Ledger(database)
    assert [(c.release, c.state, c.guarantee) for c in ledger.charges("toy")] == [
        ("v1-r1", "reserved", TENTH),
        ("v2-r2", "reserved", TENTH),
    ]
    statement = ledger.statement("toy")
    assert statement.total.mu == pytest.approx(TENTH.mu * math.sqrt(2), rel=1e-15)
    assert 0 < statement.spent < 3
    assert statement.remaining + statement.spent > 3  # composition is kinder than addition
    left = Guarantee(statement.left.mu * (1 - 1e-12))
    assert statement.admits(left)
    assert not statement.admits(Guarantee(statement.left.mu * (1 + 1e-9)))
    before, after = ledger.around("toy", "v2-r2")
    assert (before.total.mu, after) == (TENTH.mu, statement)


def test_refused_charge_states_sums_and_writes_nothing(database: Path | str) -> None:
    ledger = Ledger(database)
    charge(ledger, "v1", Guarantee(gdp_mu(2.9, 1e-5)))
    head = ledger.head()
    with pytest.raises(BudgetRefused, match=r"asked epsilon 1\.3.*spent 2\.9.*remaining 0\.\d+"):
        charge(ledger, "v2", Guarantee(gdp_mu(1.3, 1e-5)))
    assert ledger.head() == head


def test_pure_epsilons_add_up(database: Path | str) -> None:
    ledger, tight = Ledger(database), contract(budget={"epsilon": 1.0, "delta": 1e-9})
    charge(ledger, "v1", Guarantee.of_pure(0.5), tight)
    charge(ledger, "v2", Guarantee.of_pure(0.5), tight)
    with pytest.raises(BudgetRefused):
        charge(ledger, "v3", Guarantee.of_pure(1e-3), tight)


def test_statement_counts_how_many_more_charges_fit(tmp_path: Path) -> None:
    one = Guarantee(gdp_mu(0.4, 1e-6))
    statement = Ledger(tmp_path / "ledger.sqlite").preview(contract(), "v1")
    fit = statement.times(one)
    for _ in range(fit):
        assert statement.admits(one)
        statement = statement.after(one)
    assert fit > 3
    assert statement.times(one) == 0
    assert not statement.admits(one)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"neighbours": "add-remove"}, "neighbours"),
        ({"unit": "cell"}, "unit"),
        ({"budget": {"epsilon": 5.0, "delta": 1e-5}}, r"budget\.epsilon"),
        ({"budget": {"epsilon": 3.0, "delta": 1e-4}}, r"budget\.delta"),
        (YEARLY, r"budget\.per"),
        ({"columns": {"c0": {"lower": -5.0, "upper": 5.0}}}, "columns"),
        (
            {"columns": FACTS["columns"] | {"c1": {"lower": -9.0, "upper": 5.0}}},
            r"columns\.c1\.lower",
        ),
    ],
    ids=str,
)
def test_terms_are_fixed_by_first_charge(database: Path | str, changes: dict, named: str) -> None:
    ledger = Ledger(database)
    assert ledger.datasets() == []
    ledger.preview(contract(**changes), "2026")  # anything, before the first charge
    charge(ledger, "v1")
    free = contract(title="Another title", source="elsewhere.csv", rows=99)
    assert ledger.preview(free, "v2").total == TENTH
    with pytest.raises(TermsChanged, match=named):
        ledger.preview(contract(**changes), "2026")
    with pytest.raises(TermsChanged, match=named):
        charge(ledger, "2026", under=contract(**changes))
    assert len(ledger.charges("toy")) == 1


def test_column_order_is_fixed_by_first_charge(database: Path | str) -> None:
    turned = dict(reversed(FACTS["columns"].items()))
    charge(Ledger(database), "v1")
    with pytest.raises(TermsChanged, match="columns"):
        Ledger(database).preview(contract(columns=turned), "v2")


def test_budget_change_needs_a_reason_and_may_only_raise(database: Path | str) -> None:
    ledger = Ledger(database)
    charge(ledger, "v1")
    for bad in ({"epsilon": 3.0, "delta": 1e-5}, {"epsilon": 2.0, "delta": 1e-4}):
        with pytest.raises(RequestError, match="only be raised"):
            ledger.change_budget("toy", Budget(**bad), "because")
    with pytest.raises(RequestError, match="reason"):
        ledger.change_budget("toy", Budget(epsilon=4.0, delta=1e-5), "  ")
    with pytest.raises(RequestError, match="1/rows"):
        ledger.change_budget("toy", Budget(epsilon=4.0, delta=0.5), "because")
    ledger.change_budget("toy", Budget(epsilon=4.0, delta=1e-5), "board, 3 May")
    assert ledger.statement("toy").budget == Budget(epsilon=4.0, delta=1e-5)
    assert [each.reason for each in ledger.raises("toy")] == ["registered", "board, 3 May"]
    assert ledger.examine([ledger.head()]) == []


def test_each_year_of_data_has_its_own_budget(database: Path | str) -> None:
    ledger, yearly = Ledger(database), contract(**YEARLY)
    most = Guarantee(gdp_mu(2.9, 1e-5))
    assert charge(ledger, "2025", most, yearly) == "2025-r1"
    with pytest.raises(BudgetRefused, match="for the data of 2025"):
        charge(ledger, "2025-W40", most, yearly)
    assert charge(ledger, "2026-W01", most, yearly) == "2026-W01-r2"
    with pytest.raises(BudgetRefused, match="for the data of 2026"):
        charge(ledger, "2026", most, yearly)
    with pytest.raises(RequestError, match="does not begin with a year"):
        charge(ledger, "week-1", most, yearly)
    assert [s.window for s in ledger.statements("toy")] == ["2025", "2026"]
    assert {s.total.mu for s in ledger.statements("toy")} == {most.mu}
    assert ledger.preview(yearly, "2027").total.mu == 0
    assert yearly.of_version("2026-W01").source == "visits-2026.csv"
    assert ledger.examine([ledger.head()]) == []


@pytest.mark.parametrize("changes", [{"source": "t-{year}.csv"}, {"budget": YEARLY["budget"]}])
def test_year_placeholder_and_yearly_budget_require_each_other(changes: dict) -> None:
    with pytest.raises(ContractError, match=r"'source' holds '\{year\}' if, and only if"):
        parse(Contract, FACTS | changes, "contract.yaml", ContractError)


def test_release_states_never_repeat_or_go_back(database: Path | str) -> None:
    ledger = Ledger(database)
    release = charge(ledger, "v1")
    with pytest.raises(SpentFailure, match="already reserved"):
        ledger.mark("toy", release, "published")
    publish(ledger, release)
    for state in ("drawn", "sealed", "published", "spent"):
        with pytest.raises(SpentFailure, match="already published"):
            ledger.mark("toy", release, state)
    ledger.mark("toy", release, "withdrawn", reason="wrong file")
    with pytest.raises(SpentFailure, match="already withdrawn"):
        ledger.mark("toy", release, "withdrawn", reason="again")
    with pytest.raises(SpentFailure, match="never charged"):
        ledger.mark("toy", "v9-r9", "drawn")
    spent = charge(ledger, "v2")
    ledger.mark("toy", spent, "spent", reason="interrupted")
    with pytest.raises(SpentFailure, match="already spent"):
        ledger.mark("toy", spent, "drawn")
    assert [(c.state, c.reason) for c in ledger.charges("toy")] == [
        ("withdrawn", "wrong file"),
        ("spent", "interrupted"),
    ]
    assert ledger.statement("toy").total.mu > TENTH.mu  # nothing is refunded
    assert ledger.examine([ledger.head()]) == []


def test_spent_or_withdrawn_release_is_recharged_at_most_once(database: Path | str) -> None:
    ledger = Ledger(database)

    def again(instead_of: str | None = None) -> Charge:
        return ledger.charge(contract(), "v1", "same", TENTH, "", instead_of=instead_of)

    first = again()
    with pytest.raises(SpentFailure, match=r"interrupted: the charge is spent.*--new-charge"):
        again(first.release)  # not before it is known to be spent
    ledger.mark("toy", first.release, "spent", reason="interrupted")
    with pytest.raises(SpentFailure):
        again("v1-r9")
    second = again(first.release)
    with pytest.raises(SpentFailure):
        again(first.release)
    publish(ledger, second.release)
    assert ledger.find("toy", "same") == ledger.charges("toy")[1]
    ledger.mark("toy", second.release, "withdrawn", reason="wrong file.")
    with pytest.raises(SpentFailure, match=r"withdrawn: wrong file\. Its charge is spent"):
        again()
    assert again(second.release).release == "v1-r3"


@pytest.mark.parametrize("verb", ["DELETE FROM entries", "UPDATE entries SET at = 'then'"])
def test_database_rejects_changes_to_entries(database: Path | str, verb: str) -> None:
    ledger = Ledger(database)
    charge(ledger, "v1")
    with pytest.raises(IntegrityError, match="append-only"), ledger._engine.begin() as db:
        db.execute(text(verb))


def test_ledger_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    Ledger(tmp_path / "new" / "ledger.sqlite")
    assert (tmp_path / "new" / "ledger.sqlite").stat().st_mode & 0o077 == 0


def test_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("not a database, and longer than a header of one" * 9)
    with pytest.raises(LedgerError, match=r"ledger\.sqlite"):
        Ledger(tmp_path / "ledger.sqlite")


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://u:secret@host/db", "names no database"),
        ("nonsense", "names no database"),
        ("sqlite://", "names no database"),
        ("sqlite:///relative.sqlite", "names no database"),
        ("sqlite:///:memory:", "names no database"),
        ("postgresql://u:secret@host:port/db", "names no database"),
        ("postgresql://127.0.0.1:1/db?password=secret", r"//127\.0\.0\.1:1/db: "),
        ("postgresql://u:secret@127.0.0.1:1/db", r"//127\.0\.0\.1:1/db: .*OperationalError"),
    ],
)
def test_unusable_database_is_refused_without_showing_its_password(url: str, told: str) -> None:
    with pytest.raises(LedgerError, match=told) as refused:
        Ledger(url)
    assert "secret" not in str(refused.value)


def test_copied_ledger_refuses_charges_until_moved(tmp_path: Path) -> None:
    """Otherwise both copies would spend the same budget."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charge(ledger, "v1")
    (tmp_path / "copy").mkdir()
    copy = Ledger(shutil.copy(tmp_path / "ledger.sqlite", tmp_path / "copy" / "ledger.sqlite"))
    assert copy.statement("toy").total == TENTH  # an auditor may read
    for step in (lambda: copy.preview(contract(), "v2"), lambda: charge(copy, "v2")):
        with pytest.raises(UntrustedLedger, match=r"belongs at .*ledger\.sqlite.*--moved"):
            step()
    with pytest.raises(RequestError, match="reason"):
        copy.move(" ")
    copy.move("the old disk is gone")
    assert charge(copy, "v2") == "v2-r2"
    assert copy.examine([ledger.head()]) == []


def test_rolled_back_ledger_is_refused_by_its_anchor(database: Path | str) -> None:
    ledger = Ledger(database)
    ledger.hold_to(None)
    charge(ledger, "v1")
    ledger.hold_to(None)  # nothing was drawn, so no anchor is needed
    seen = ledger.head()
    ledger.hold_to(seen)
    publish(ledger, "v1-r1")
    ledger.hold_to(seen)
    for anchor, told in (
        (None, "never heard of it"),
        (seen.model_copy(update={"seq": 99}), "ends at entry 6, and the archive has seen entry 99"),
        (seen.model_copy(update={"hash": "0" * 64}), "entry 3 is not the one"),
        (seen.model_copy(update={"ledger": "0" * 32}), "another ledger"),
    ):
        with pytest.raises(UntrustedLedger, match=told):
            ledger.hold_to(anchor)


def test_entries_have_distinct_random_salts(database: Path | str) -> None:
    """Equal charges have different hashes, so that nobody can confirm a guess."""
    ledger = Ledger(database)
    for release in (charge(ledger, "v1"), charge(ledger, "v2")):
        ledger.mark("toy", release, "spent", reason="interrupted")
    salts = {entry.salt for entry in ledger.entries()}
    assert len(salts) == len(ledger.entries())
    assert all(len(salt) == 32 for salt in salts)
