"""Schemas: new ones match the queries, and older ledgers are migrated completely."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from gramercy.ledger import Ledger, schema_upgrade
from gramercy.ledger.database_tables import metadata
from gramercy.ledger.entry import Entry
from gramercy.ledger.journal import append
from gramercy.ledger.schema_upgrade import NEWEST
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.model import canonical_json
from gramercy.schemas.problems import budget as budget_problems
from gramercy.schemas.problems.ledger import ledger_unusable, schema_too_new
from tests.support import ledger_schema
from tests.support.ledger_schema import copy_or_migrate
from tests.support.ledger_writers import TENTH, charge, contract
from tests.support.problems import raises

# The first schema.
FIRST = """
CREATE TABLE datasets (id VARCHAR NOT NULL PRIMARY KEY, terms VARCHAR NOT NULL,
    "rows" INTEGER NOT NULL CHECK ("rows" > 0), at VARCHAR NOT NULL);
CREATE TABLE budgets (seq INTEGER NOT NULL PRIMARY KEY,
    dataset VARCHAR NOT NULL REFERENCES datasets (id), epsilon FLOAT NOT NULL,
    delta FLOAT NOT NULL, reason VARCHAR NOT NULL, at VARCHAR NOT NULL);
CREATE TABLE charges (seq INTEGER NOT NULL PRIMARY KEY,
    dataset VARCHAR NOT NULL REFERENCES datasets (id), release VARCHAR NOT NULL,
    version VARCHAR NOT NULL, request VARCHAR NOT NULL, mu FLOAT NOT NULL, delta0 FLOAT NOT NULL,
    pure FLOAT, fingerprint VARCHAR NOT NULL, at VARCHAR NOT NULL, UNIQUE (dataset, release));
CREATE TABLE marks (dataset VARCHAR NOT NULL, release VARCHAR NOT NULL, mark VARCHAR NOT NULL,
    detail VARCHAR NOT NULL, at VARCHAR NOT NULL, PRIMARY KEY (dataset, release, mark));
CREATE TRIGGER charges_no_update BEFORE UPDATE ON charges
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER charges_no_delete BEFORE DELETE ON charges
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A ledger of the first schema: two charges, one published and one spent; a raised budget."""
    terms = contract().terms()
    budget = terms.pop("budget")
    days = [f"2026-05-0{day}T10:00:00+00:00" for day in range(1, 10)]
    with sqlite3.connect(tmp_path / "ledger.sqlite") as db:
        db.executescript(FIRST)
        db.execute("INSERT INTO datasets VALUES ('toy', ?, 40, ?)", (json.dumps(terms), days[0]))
        rows = [(budget["epsilon"], "registered", days[0]), (4.0, "board", days[4])]
        for epsilon, reason, day in rows:
            values = (epsilon, budget["delta"], reason, day)
            db.execute("INSERT INTO budgets VALUES (NULL, 'toy', ?, ?, ?, ?)", values)
        for turn, (mu, pure) in enumerate([(0.5, 0.25), (0.25, None)], 1):
            names = (f"v{turn}-r{turn}", f"v{turn}", f"request v{turn}")
            values = (*names, mu, 0.0, pure, f"print {turn}", days[turn])
            db.execute("INSERT INTO charges VALUES (NULL, 'toy', ?, ?, ?, ?, ?, ?, ?, ?)", values)
        marks = [("v1-r1", "drawn", ""), ("v1-r1", "sealed", "ab" * 32), ("v1-r1", "published", "")]
        for release, mark, detail in [*marks, ("v2-r2", "spent", "found without a release")]:
            values = (release, mark, detail, days[3])
            db.execute("INSERT INTO marks VALUES ('toy', ?, ?, ?, ?)", values)
    db.close()
    return tmp_path / "ledger.sqlite"


def test_first_schema_is_migrated_completely(older: Path) -> None:
    ledger = Ledger(older)
    published, spent = ledger.charges("toy")
    assert published.guarantee == Guarantee(0.5, pure=0.25)
    assert (published.release, published.version, published.state, published.sha256) == (
        "v1-r1",
        "v1",
        "published",
        "ab" * 32,
    )
    assert (published.fingerprint, published.at) == ("print 1", "2026-05-02T10:00:00+00:00")
    assert (spent.state, spent.reason) == ("spent", "found without a release")
    statement = ledger.statement("toy")
    assert (statement.budget.epsilon, statement.total.mu) == (4.0, 0.3125**0.5)
    assert ledger.find_charge("toy", "request v1") == published
    assert ledger.find_inconsistencies([ledger.head()]) == []
    with sqlite3.connect(older) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    db.close()
    assert not tables & {"datasets", "budgets", "charges", "marks"}


def test_migrated_charges_still_count_against_the_budget(older: Path) -> None:
    ledger = Ledger(older)
    ledger.verify_anchor(None)  # its archive has no anchor yet
    with raises(budget_problems.terms_changed, terms=("neighbours",)):
        ledger.preview(contract(neighbours="add-remove"), "v3")
    most = ledger.statement("toy").left
    with raises(budget_problems.budget_exceeded):
        charge(ledger, "v3", Guarantee(most.mu * 1.001))
    assert charge(ledger, "v3", TENTH) == "v3-r3"
    assert Ledger(older).find_inconsistencies() == []


def test_failed_migration_changes_nothing(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError

    shutil.copy(older, older.with_suffix(".kept"))
    with monkeypatch.context() as half_way:
        half_way.setattr("gramercy.ledger.migrations.carry_over._charges", broken)
        with raises(ledger_unusable, ledger=str(older), reason="OSError"):
            Ledger(older)
    with sqlite3.connect(older) as db, sqlite3.connect(older.with_suffix(".kept")) as kept:
        assert list(db.iterdump()) == list(kept.iterdump())
    db.close()
    kept.close()
    assert len(Ledger(older).charges("toy")) == 2


def test_migrated_schema_matches_metadata(database: Path | str) -> None:
    engine = Ledger(database)._engine
    with engine.connect() as db:
        context = MigrationContext.configure(db, opts={"version_table": "gramercy_version"})
        assert context.get_current_revision() == NEWEST
        expected = [each for each in compare_metadata(context, metadata) if "index" not in each[0]]
    assert expected == []
    assert {t.name for t in metadata.sorted_tables} <= set(sa.inspect(engine).get_table_names())


def test_copied_schema_of_other_tests_is_the_migrated_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def contents(name: str) -> tuple[list[tuple[str, str]], list[str]]:
        Ledger(tmp_path / name)
        with sqlite3.connect(tmp_path / name) as db:
            schema = db.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
            rows = db.execute("SELECT facts, version_num FROM entries, head, gramercy_version")
            ((facts, version),) = rows
        db.close()
        return [*schema, ("", version)], list(json.loads(facts))

    migrated = contents("migrated.sqlite")
    monkeypatch.setattr(schema_upgrade, "_upgrade", copy_or_migrate)
    contents("first.sqlite")  # of this process, perhaps
    with monkeypatch.context() as patch:
        patch.setattr(ledger_schema, "migrate", None)  # would fail if it was called
        assert contents("copied.sqlite") == migrated


def test_newest_revision_is_that_of_the_migrations() -> None:
    folder = Path(__file__).parents[3] / "gramercy" / "ledger" / "migrations"
    assert ScriptDirectory(str(folder)).get_heads() == [NEWEST]


def test_ledger_with_newer_schema_is_refused(database: Path | str) -> None:
    ledger = Ledger(database)
    with ledger._writing() as db:
        db.execute(sa.text("UPDATE gramercy_version SET version_num = '99'"))
    with raises(schema_too_new, schema="99", newest=NEWEST):
        Ledger(database)


def test_charge_in_version_0_1_format_is_refused(database: Path | str) -> None:
    """A process of version 0.1 that opened the ledger before its upgrade states no source."""
    ledger = Ledger(database)
    charge(ledger, "v1")
    older = Entry("reserved", "toy", "v2-r2", window="", request="r", mu=0.1, delta0=0.0)
    facts = {"version": "v2", "turn": 2, "total": "0:0:-", "fingerprint": ""}
    with raises(ledger_unusable), ledger._writing() as db:
        append(db, replace(older, facts=canonical_json(facts)))
    assert len(ledger.charges("toy")) == 1
