"""The tables are created at once or not at all, and those of another version are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from gramercy.ledger import Ledger
from gramercy.ledger.database import SCHEMA
from gramercy.schemas import families
from tests.support.ledgers import charge
from tests.support.problems import raises


@pytest.mark.slow
def test_ledger_of_another_schema_is_refused(database: Path | str) -> None:
    ledger = Ledger(database)
    charge(ledger, "v1")
    for change, stated in (
        (f"UPDATE gramercy_schema SET number = {SCHEMA + 1}", f"{SCHEMA + 1}"),
        ("DELETE FROM gramercy_schema", "None"),
        ("DROP TABLE gramercy_schema", "None"),
    ):
        with ledger._writing() as db:
            db.execute(sa.text(change))
        with raises(families.LEDGER, schema=stated, known=SCHEMA):
            Ledger(database)


def test_interrupted_creation_leaves_no_tables(
    database: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise OSError

    with monkeypatch.context() as half_way:
        half_way.setattr("gramercy.ledger.entry.Entry.opened", broken)
        with raises(families.LEDGER, reason="OSError"):
            Ledger(database)
    assert Ledger(database).find_inconsistencies() == []
