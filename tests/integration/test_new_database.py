"""A new home of Prefect gets the tables that Prefect's own migrations make."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tools.prefect_tables import migrated_tables

pytestmark = pytest.mark.slow

_MAKE = "from gramercy.flows.new_database import make_tables; make_tables()"
_OTHER_VERSION = f"import prefect; prefect.__version__ = '3.8.7'; {_MAKE}"


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def prefect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "prefect"
    monkeypatch.setenv("PREFECT_HOME", str(folder))
    return folder


def test_tables_are_those_of_the_migrations() -> None:
    """After another version of Prefect was locked: run tools/prefect_tables.py."""
    from gramercy.flows.new_database import TABLES

    def lines(text: str) -> list[str]:
        """Sorted, because the migrations write constraints in any order."""
        return sorted(line.strip().rstrip(",") for line in text.splitlines())

    assert lines(TABLES.read_text(encoding="utf-8")) == lines(migrated_tables())


def test_tables_are_made_once(prefect: Path) -> None:
    run(_MAKE)
    (database,) = prefect.iterdir()
    made = database.read_bytes()
    assert database.name == "prefect.db"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM flow_run").fetchall() == [(0,)]
    run(_MAKE)
    assert [path.read_bytes() for path in prefect.iterdir()] == [made]


def test_other_databases_and_versions_are_left_to_prefect(
    prefect: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(_OTHER_VERSION)
    assert not (prefect / "prefect.db").exists()
    monkeypatch.setenv("PREFECT_API_DATABASE_CONNECTION_URL", "sqlite+aiosqlite:////other.db")
    run(_MAKE)
    assert not (prefect / "prefect.db").exists()
