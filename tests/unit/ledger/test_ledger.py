"""The ledger, on both databases: admission, fixed terms, states, and location."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from gramercy.ledger import Charge, Ledger
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.ledger_history import ChargeState
from tests.support.databases import ledger_location
from tests.support.ledgers import FACTS, TENTH, charge, contract
from tests.support.problems import raises

YEARLY = {"source": "visits-{year}.csv", "budget": {"epsilon": 3.0, "delta": 1e-5, "per": "year"}}


# In `make quick`, test_schema.py uses both databases.
@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """The location of a new ledger, for every kind of database."""
    return ledger_location(request.param, tmp_path)


def publish(ledger: Ledger, release: str) -> None:
    ledger.mark("toy", release, ChargeState.DRAWN)
    ledger.mark("toy", release, ChargeState.SEALED, sha256="0" * 64)
    ledger.mark("toy", release, ChargeState.PUBLISHED)


def test_charges_persist_across_connections(database: Path | str) -> None:
    assert charge(Ledger(database), "v1") == "v1-r1"
    assert charge(Ledger(database), "v2") == "v2-r1"
    ledger = Ledger(database)
    assert [(c.release, c.state, c.guarantee) for c in ledger.charges("toy")] == [
        ("v1-r1", "reserved", TENTH),
        ("v2-r1", "reserved", TENTH),
    ]
    statement = ledger.statement("toy")
    assert statement.total.mu == pytest.approx(TENTH.mu * math.sqrt(2), rel=1e-15)
    assert 0 < statement.spent < 3
    assert statement.remaining + statement.spent > 3  # composition is kinder than addition
    left = Guarantee(statement.left.mu * (1 - 1e-12))
    assert statement.admits(left)
    assert not statement.admits(Guarantee(statement.left.mu * (1 + 1e-9)))
    before, after = ledger.statements_around("toy", "v2-r1")
    assert (before.total.mu, after) == (TENTH.mu, statement)


def test_refused_charge_states_sums_and_writes_nothing(database: Path | str) -> None:
    ledger = Ledger(database)
    charge(ledger, "v1", Guarantee(gdp_mu(2.9, 1e-5)))
    head = ledger.head()
    with raises(families.EXCEEDED, budget="toy", epsilon=3.0, delta=1e-5) as refused:
        charge(ledger, "v2", Guarantee(gdp_mu(1.3, 1e-5)))
    facts = refused.value.facts
    assert facts["needed"] == pytest.approx(1.3, rel=1e-3)
    assert facts["spent"] == pytest.approx(2.9, rel=0.05)
    assert 0 < facts["left"] < 1
    assert ledger.head() == head


def test_pure_epsilons_add_up(database: Path | str) -> None:
    ledger, tight = Ledger(database), contract(budget={"epsilon": 1.0, "delta": 1e-9})
    charge(ledger, "v1", Guarantee.from_pure(0.5), tight)
    charge(ledger, "v2", Guarantee.from_pure(0.5), tight)
    with raises(families.EXCEEDED):
        charge(ledger, "v3", Guarantee.from_pure(1e-3), tight)


def test_statement_counts_how_many_more_charges_fit(tmp_path: Path) -> None:
    guarantee = Guarantee(gdp_mu(0.4, 1e-6))
    statement = Ledger(tmp_path / "ledger.sqlite").preview(contract(), "v1")
    left = statement.charges_left(guarantee)
    for _ in range(left):
        assert statement.admits(guarantee)
        statement = statement.after(guarantee)
    assert left > 3
    assert statement.charges_left(guarantee) == 0
    assert not statement.admits(guarantee)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "term"),
    [
        ({"neighbours": "add-remove"}, "neighbours"),
        ({"privacy_unit": "cell"}, "privacy_unit"),
        ({"budget": {"epsilon": 5.0, "delta": 1e-5}}, "budget.epsilon"),
        ({"budget": {"epsilon": 3.0, "delta": 1e-4}}, "budget.delta"),
        (YEARLY, "budget.per"),
        ({"columns": {"c0": {"lower": -5.0, "upper": 5.0}}}, "columns.c1"),
        (
            {"columns": FACTS["columns"] | {"c1": {"lower": -9.0, "upper": 5.0}}},
            "columns.c1.lower",
        ),
    ],
    ids=str,
)
def test_terms_are_fixed_by_first_charge(database: Path | str, changes: dict, term: str) -> None:
    ledger = Ledger(database)
    assert ledger.datasets() == []
    ledger.preview(contract(**changes), "2026")  # anything, before the first charge
    charge(ledger, "v1")
    free = contract(title="Another title", source="elsewhere.csv", rows=99)
    assert ledger.preview(free, "v2").total == TENTH
    with raises(families.TERMS, dataset="toy") as refused:
        ledger.preview(contract(**changes), "2026")
    assert term in refused.value.facts["terms"]
    with raises(families.TERMS, terms=refused.value.facts["terms"]):
        charge(ledger, "2026", terms=contract(**changes))
    assert len(ledger.charges("toy")) == 1


def test_column_order_is_fixed_by_first_charge(database: Path | str) -> None:
    reordered = dict(reversed(FACTS["columns"].items()))
    charge(Ledger(database), "v1")
    with raises(families.TERMS, terms=("columns",)):
        Ledger(database).preview(contract(columns=reordered), "v2")


def test_budget_change_needs_a_reason_and_may_only_raise(database: Path | str) -> None:
    ledger = Ledger(database)
    charge(ledger, "v1")
    for bad in ({"epsilon": 3.0, "delta": 1e-5}, {"epsilon": 2.0, "delta": 1e-4}):
        with raises(families.CHANGE, epsilon=3.0, delta=1e-5):
            ledger.change_budget("toy", Budget(**bad), "because")
    with raises(families.CHANGE):
        ledger.change_budget("toy", Budget(epsilon=4.0, delta=1e-5), "  ")
    with raises(families.BUDGET_DELTA, limit=1 / 40):
        ledger.change_budget("toy", Budget(epsilon=4.0, delta=0.5), "because")
    ledger.change_budget("toy", Budget(epsilon=4.0, delta=1e-5), "board, 3 May")
    assert ledger.statement("toy").budget == Budget(epsilon=4.0, delta=1e-5)
    assert [each.reason for each in ledger.budget_history("toy")] == ["registered", "board, 3 May"]
    assert ledger.find_inconsistencies([ledger.head()]) == []


def test_each_year_of_data_has_its_own_budget(database: Path | str) -> None:
    ledger, yearly = Ledger(database), contract(**YEARLY)
    most = Guarantee(gdp_mu(2.9, 1e-5))
    assert charge(ledger, "2025", most, yearly) == "2025-r1"
    with raises(families.EXCEEDED, budget="toy, data of 2025"):
        charge(ledger, "2025-W40", most, yearly)
    assert charge(ledger, "2026-W01", most, yearly) == "2026-W01-r1"
    with raises(families.EXCEEDED, budget="toy, data of 2026"):
        charge(ledger, "2026", most, yearly)
    with raises(families.PERIOD, version="week-1"):
        charge(ledger, "week-1", most, yearly)
    assert [s.window for s in ledger.statements("toy")] == ["2025", "2026"]
    assert {s.total.mu for s in ledger.statements("toy")} == {most.mu}
    assert ledger.preview(yearly, "2027").total.mu == 0
    assert yearly.for_version("2026-W01").source == "visits-2026.csv"
    assert ledger.find_inconsistencies([ledger.head()]) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("per", "source", "versions", "windows"),
    [
        ("quarter", "{year}Q{quarter}.csv", ["2026-Q3", "2026-Q4.b"], ["2026-Q3", "2026-Q4"]),
        ("month", "{year}-{month}.csv", ["2026-11", "2026-12-01"], ["2026-11", "2026-12"]),
        ("week", "{year}W{week}.csv", ["2026-W53", "2027-W01"], ["2026-W53", "2027-W01"]),
        (
            "day",
            "{year}{month}{day}.csv",
            ["2026-11-30", "2026-12-01"],
            ["2026-11-30", "2026-12-01"],
        ),
    ],
)
def test_each_period_has_its_own_budget(
    database: Path | str, per: str, source: str, versions: list[str], windows: list[str]
) -> None:
    ledger, most = Ledger(database), Guarantee(gdp_mu(2.9, 1e-5))
    terms = contract(source=source, budget=YEARLY["budget"] | {"per": per})
    for version, window in zip(versions, windows, strict=True):
        charge(ledger, version, most, terms)
        with raises(families.EXCEEDED, budget=f"toy, data of {window}"):
            charge(ledger, window + ".again", most, terms)
    with raises(families.PERIOD, version="2026-", per=per):
        charge(ledger, "2026-", most, terms)
    assert [s.window for s in ledger.statements("toy")] == windows
    assert {s.total.mu for s in ledger.statements("toy")} == {most.mu}
    assert ledger.find_inconsistencies([ledger.head()]) == []


def test_release_states_never_repeat_or_go_back(database: Path | str) -> None:
    ledger = Ledger(database)
    release = charge(ledger, "v1")
    with raises(families.SPENT, release=f"toy/{release}", state="reserved"):
        ledger.mark("toy", release, ChargeState.PUBLISHED)
    publish(ledger, release)
    for state in set(ChargeState) - {ChargeState.WITHDRAWN}:
        with raises(families.SPENT, state="published", new_state=state):
            ledger.mark("toy", release, state)
    ledger.mark("toy", release, ChargeState.WITHDRAWN, reason="wrong file")
    with raises(families.SPENT, state="withdrawn"):
        ledger.mark("toy", release, ChargeState.WITHDRAWN, reason="again")
    with raises(families.SPENT, release="toy/v9-r1", state="never charged"):
        ledger.mark("toy", "v9-r1", ChargeState.DRAWN)
    spent = charge(ledger, "v2")
    ledger.mark("toy", spent, ChargeState.SPENT, reason="interrupted")
    with raises(families.SPENT, state="spent"):
        ledger.mark("toy", spent, ChargeState.DRAWN)
    assert [(c.state, c.reason) for c in ledger.charges("toy")] == [
        ("withdrawn", "wrong file"),
        ("spent", "interrupted"),
    ]
    assert ledger.statement("toy").total.mu > TENTH.mu  # nothing is refunded
    assert ledger.find_inconsistencies([ledger.head()]) == []


def test_spent_or_withdrawn_release_is_recharged_at_most_once(database: Path | str) -> None:
    ledger = Ledger(database)

    def charge_again(instead_of: str | None = None) -> Charge:
        return ledger.charge(contract(), "v1", "same", TENTH, "", instead_of=instead_of)

    first = charge_again()
    with raises(families.SPENT, release="toy/v1-r1", mu=TENTH.mu):
        charge_again(first.release)  # not before it is recorded as spent
    ledger.mark("toy", first.release, ChargeState.SPENT, reason="interrupted")
    with raises(families.SPENT, release="toy/v1-r1"):
        charge_again("v1-r9")
    second = charge_again(first.release)
    with raises(families.SPENT, release="toy/v1-r2"):
        charge_again(first.release)
    publish(ledger, second.release)
    assert ledger.find_charge("toy", "same") == ledger.charges("toy")[1]
    ledger.mark("toy", second.release, ChargeState.WITHDRAWN, reason="wrong file.")
    with raises(families.SPENT, release="toy/v1-r2", reason="wrong file"):
        charge_again()
    assert charge_again(second.release).release == "v1-r3"


@pytest.mark.parametrize("verb", ["DELETE FROM entries", "UPDATE entries SET at = 'then'"])
def test_database_rejects_changes_to_entries(database: Path | str, verb: str) -> None:
    ledger = Ledger(database)
    charge(ledger, "v1")
    with pytest.raises(IntegrityError) as refused, ledger._engine.begin() as db:
        db.execute(text(verb))
    assert "append-only" in str(refused.value)  # the text of the database's trigger


def test_ledger_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    Ledger(tmp_path / "new" / "ledger.sqlite")
    assert (tmp_path / "new" / "ledger.sqlite").stat().st_mode & 0o077 == 0


def test_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("not a database, and longer than a header of one" * 9)
    path = tmp_path / "ledger.sqlite"
    with raises(families.UNTRUSTED, ledger=str(path)):
        Ledger(path)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9])
def test_truncated_file_is_damaged_and_not_a_full_disk(share: float, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    for number in range(30):
        charge(ledger, f"v{number}")
    os.truncate(path, int(share * path.stat().st_size))
    with raises(families.UNTRUSTED, ledger=str(path)) as damaged:
        Ledger(path)
    assert damaged.value.exit_code == 2
    with raises(families.UNTRUSTED):
        ledger.find_inconsistencies()


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:secret@host/db",
        "nonsense",
        "sqlite://",
        "sqlite:///relative.sqlite",
        "sqlite:///:memory:",
        "postgresql://u:secret@host:port/db",
    ],
)
def test_unsupported_database_is_refused_without_showing_its_password(url: str) -> None:
    with raises(families.LEDGER) as refused:
        Ledger(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["postgresql://127.0.0.1:1/db?password=secret", "postgresql://u:secret@127.0.0.1:1/db"],
)
def test_unreachable_database_is_refused_without_showing_its_password(url: str) -> None:
    with raises(
        families.LEDGER,
        ledger="postgresql://127.0.0.1:1/db",
        reason="OperationalError",
    ) as refused:
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
        with raises(families.UNTRUSTED) as refused:
            step()
        assert refused.value.facts["location"].startswith(f"{tmp_path / 'ledger.sqlite'} ")
    with raises(families.CHANGE):
        copy.move(" ")
    copy.move("the old disk is gone")
    assert charge(copy, "v2") == "v2-r1"
    assert copy.find_inconsistencies([ledger.head()]) == []


def test_rolled_back_ledger_is_refused_by_its_anchor(database: Path | str) -> None:
    ledger = Ledger(database)
    ledger.verify_anchor(None)
    charge(ledger, "v1")
    ledger.verify_anchor(None)  # nothing was drawn, so no anchor is needed
    anchor = ledger.head()
    ledger.verify_anchor(anchor)
    publish(ledger, "v1-r1")
    ledger.verify_anchor(anchor)
    with raises(families.UNTRUSTED, witness="the archive"):
        ledger.verify_anchor(None)
    with raises(families.UNTRUSTED, last=6, anchored=99):
        ledger.verify_anchor(anchor.model_copy(update={"seq": 99}))
    with raises(families.UNTRUSTED, entry=3):
        ledger.verify_anchor(anchor.model_copy(update={"hash": "0" * 64}))
    with raises(families.UNTRUSTED, witness="the archive"):
        ledger.verify_anchor(anchor.model_copy(update={"ledger": "0" * 32}))


def test_entries_have_distinct_random_salts(database: Path | str) -> None:
    """Equal charges have different hashes, so that a guess cannot be confirmed."""
    ledger = Ledger(database)
    for release in (charge(ledger, "v1"), charge(ledger, "v2")):
        ledger.mark("toy", release, ChargeState.SPENT, reason="interrupted")
    salts = {entry.salt for entry in ledger.entries()}
    assert len(salts) == len(ledger.entries())
    assert all(len(salt) == 32 for salt in salts)
