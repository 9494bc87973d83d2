"""Tables of SQLite and PostgreSQL: one snapshot, exact integers, and no cell that refuses."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import traceback
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from gramercy.pipeline.plan.checking import check_table_header
from gramercy.schemas import families
from gramercy.schemas.database import ASSERTION
from gramercy.tables.formats import database_format, database_relation, private_copy, table_format
from gramercy.tables.formats.database_connection import connected
from gramercy.tables.formats.database_relation import columns_of, identifiers, numbers, texts
from gramercy.tables.formats.reader import schema_of
from gramercy.tables.formats.source import open_source
from tests.support.databases import KINDS
from tests.support.problems import raises
from tests.support.source_tables import (
    WIDE,
    cells,
    contract,
    copied,
    copy_of,
    database_table,
    engine_of,
    execute,
    frame,
    gram,
    new_url,
)

SECRET = "Rosalind-4711"
NAN = float("nan")
CREATE = (
    "CREATE TABLE visits (patient BIGINT, x DOUBLE PRECISION, n BIGINT, price NUMERIC(12, 4),"
    " flag BOOLEAN, ward VARCHAR(20), day DATE)"
)
INSERT = "INSERT INTO visits VALUES (:patient, :x, :n, :price, :flag, :ward, :day)"


def filled(url: str, table: pd.DataFrame) -> None:
    execute(url, CREATE, INSERT, rows=table.to_dict("records"))


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind."""
    return new_url(request.param, tmp_path)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return new_url("sqlite", tmp_path)


def test_integers_equal_those_of_the_same_table_in_parquet(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of persons, and where missing cells and whole numbers beyond 2^53 are among them."""
    table = frame(300)
    table.loc[7, ["x", "price", "ward"]] = None
    table.to_parquet(tmp_path / "t.parquet")
    filled(url, table.astype(object).where(table.notna(), None))
    source = database_table(url, monkeypatch, table="visits")
    monkeypatch.setattr(table_format, "_BATCH_CELLS", 500)
    monkeypatch.setattr(private_copy, "_GROUP_CELLS", 700)
    for facts in ({}, {"privacy_unit": "patient", "persons": 150}):
        in_parquet = contract(str(tmp_path / "t.parquet"), 300, **facts)
        path = tmp_path / f"copy-{len(facts)}.parquet"
        copy = copied(source, contract(source, 300, **facts), path)
        np.testing.assert_array_equal(gram(in_parquet), gram(contract(copy, 300, **facts)))
        modes = {stat.S_IMODE(each.stat().st_mode) for each in (path, *path.iterdir())}
        assert modes == {0o700, 0o600}


def test_copy_is_one_snapshot_while_rows_change_and_move(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first batch, another connection changes, moves, adds and removes rows."""
    table = frame(400)
    if url.startswith("sqlite"):
        execute(url, "PRAGMA journal_mode = WAL")  # as of a database that is written while read
    filled(url, table)
    source = database_table(url, monkeypatch, table="visits")
    monkeypatch.setattr(table_format, "_BATCH_CELLS", 200)
    first, batches = table.iloc[0].to_dict(), list[int]()

    def change(rows: int) -> None:
        if not batches:
            execute(url, "UPDATE visits SET x = x + 50, n = 0")
            execute(url, "DELETE FROM visits WHERE ward = 'A'", INSERT, rows=[first] * 50)
        batches.append(rows)

    declared = contract(source, 400)
    copy = copied(source, declared, tmp_path / "c.parquet", on_rows=change)
    assert len(batches) > 3
    columns = {name: declared.levels(name) for name in declared.names}
    read = np.array(cells(copy, columns))
    np.testing.assert_array_equal(np.sort(read[:, 0]), np.sort(table["x"]))
    assert len(cells(copied(source, declared, tmp_path / "d.parquet"), columns)) != 400


def test_no_cell_refuses_a_table_of_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers beyond double precision, infinite dates, and text that is far too long."""
    url = new_url("postgresql", tmp_path)
    execute(
        url,
        "CREATE TYPE ward AS ENUM ('A', 'B')",
        "CREATE TABLE t (x DOUBLE PRECISION, n NUMERIC, price REAL, flag BOOLEAN, ward ward,"
        " patient TEXT, day TIMESTAMPTZ, other DATE)",
        "INSERT INTO t VALUES ('NaN', 'NaN', 'Infinity', NULL, 'A', repeat('x', 50000000),"
        " 'infinity', '-infinity'), ('-Infinity', 1e-400 + 10.0 ^ 400, 1, true, 'B', 'p',"
        " '2026-11-23 08:30+01', '4713-01-01 BC'), (5e-324, 0.1, 0.1, false, NULL, '', NULL, NULL),"
        " (0, repeat('9', 100000)::numeric, 0, NULL, NULL, NULL, NULL, NULL)",
    )
    source = database_table(url, monkeypatch, table="t")
    types = dict(columns_of(source))
    assert [types[name] for name in ("x", "n", "flag", "ward", "patient")] == [
        *("double", "double", "bool", "text", "text")
    ]
    assert (types["day"], types["other"]) == ("timestamp with time zone", "date")
    levels = {"x": None, "n": None, "price": None, "flag": (0.0, 1.0), "ward": ("A", "B")}
    path = tmp_path / "c.parquet"
    copy = copy_of(source, levels, ("patient", "day", "other"), path)
    np.testing.assert_array_equal(
        cells(copy, levels),
        [
            [NAN, NAN, np.inf, NAN, 0],
            [-np.inf, np.inf, 1, 1, 1],
            [5e-324, 0.1, np.float32(0.1), 0, NAN],  # as in a Parquet file of single precision
            [0, NAN, 0, NAN, NAN],
        ],
    )
    # A number of more than a thousand digits counts as missing.
    texts = pd.read_parquet(path)[["patient", "day", "other"]]
    assert texts["patient"].isna().tolist() == [True, False, False, True]
    assert texts["day"][1] == "2026-11-23T07:30:00+00"
    assert path.stat().st_size < 10_000


def url_of_encoding(encoding: str, folder: Path) -> str:
    """A new database of PostgreSQL with another encoding."""
    url, name = new_url("postgresql", folder), f"in_{encoding.lower()}"
    execution = engine_of(url).execution_options(isolation_level="AUTOCOMMIT")
    with execution.connect() as connection:
        connection.exec_driver_sql(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
            " TEMPLATE template0"
        )
    return str(engine_of(url).url.set(database=name).render_as_string(hide_password=False))


def test_versions_that_do_not_state_generated_columns_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_relation, "_OLDEST", (99,))
    source = database_table(new_url("postgresql", tmp_path), monkeypatch, table="t")
    with raises(families.DATABASE_READ, source=source.display_name):
        columns_of(source)


def test_encodings_that_the_server_would_have_to_convert_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not all bytes of Windows-1252 are characters, and any of them can be stored."""
    url = url_of_encoding("WIN1252", tmp_path)
    execute(url, "CREATE TABLE t (x INTEGER)")
    source = database_table(url, monkeypatch, table="t", where="x = 1")
    with raises(families.DATABASE_READ, encoding="WIN1252"):
        columns_of(source)


def test_condition_needs_columns_whose_comparisons_cannot_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_url("postgresql", tmp_path)
    execute(
        url,
        "CREATE TYPE ward AS ENUM ('A', 'B')",
        "CREATE DOMAIN age AS INTEGER",
        "CREATE TABLE t (n NUMERIC, ward ward, age age, note JSONB,"
        " g NUMERIC GENERATED ALWAYS AS (1 / n) VIRTUAL)",
        "INSERT INTO t VALUES (10.0 ^ 400, 'A', 1, '{}'), (1, 'A', 1, '{}')",
    )
    for where, rows in (("n < 2", 1), ("ward = 'A'", 2), ("ward < 'B' AND n IS NOT NULL", 2)):
        source = database_table(url, monkeypatch, table="t", where=where)
        path = tmp_path / f"{len(where)}.parquet"
        assert len(cells(copy_of(source, {"n": None}, (), path), {"n": None})) == rows
    for where, column in (("age = 1", "age"), ("n = 1 OR note = '{}'", "note"), ("g > 1", "g")):
        source = database_table(url, monkeypatch, table="t", where=where)
        with raises(families.DATABASE_READ, column=column):
            columns_of(source)


def test_sessions_of_postgresql_depend_on_no_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Policies may read other rows, and how long reading takes depends on cells."""
    url = new_url("postgresql", tmp_path)
    name = engine_of(url).url.database
    execute(
        url,
        "CREATE TABLE t (x INTEGER)",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE t FORCE ROW LEVEL SECURITY",
        "CREATE POLICY few ON t USING (x < 3)",
        f"CREATE ROLE {name} LOGIN",
        f"GRANT SELECT ON t TO {name}",
        f"ALTER DATABASE {name} SET statement_timeout = '7s'",
        f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = '7s'",
    )
    url = engine_of(url).url.set(username=name, drivername="postgresql").render_as_string(False)
    source = database_table(url, monkeypatch, table="t")
    with connected(source) as connection:
        for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
            assert connection.exec_driver_sql(f"SHOW {setting}").scalar() == "0"
    with raises(families.DATABASE_READ):
        columns_of(source)


def test_virtual_tables_and_columns_of_sqlite_are_refused(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are computed when they are read, and a function may fail on a cell."""
    execute(
        sqlite_url,
        "CREATE VIRTUAL TABLE v USING fts5(x)",
        "CREATE TABLE t (x REAL, note TEXT, s GENERATED ALWAYS AS (x + 1) STORED)",
        "INSERT INTO t (x, note) VALUES (1, 'not JSON')",
        "ALTER TABLE t ADD COLUMN g GENERATED ALWAYS AS (json_extract(note, '$.x')) VIRTUAL",
    )
    with raises(families.DATABASE_READ):
        columns_of(database_table(sqlite_url, monkeypatch, table="v"))
    for where in ("g > 1", "x = 1 AND g IS NULL"):
        with raises(families.DATABASE_READ, column="g", kind="computed when read"):
            columns_of(database_table(sqlite_url, monkeypatch, table="t", where=where))
    source = database_table(sqlite_url, monkeypatch, table="t", where="s = 2")
    assert dict(columns_of(source)) == {
        **{"x": "double", "note": "text", "s": "any", "g": "computed when read"}
    }
    with raises(families.TABLE_COLUMNS):
        check_table_header(contract(source, columns={"g": WIDE}))
    copy = copy_of(source, {"x": None, "s": None}, (), tmp_path / "c.parquet")
    assert cells(copy, {"x": None, "s": None}) == [[1, 2]]


def test_a_number_is_one_name_of_a_person_in_sqlite(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large numbers that were inserted as doubles would be other names of the same persons."""
    execute(
        sqlite_url,
        "CREATE TABLE t (x REAL, patient)",
        "INSERT INTO t VALUES (1, 12345678901234567), (2, 12345678901234567.0), (3, 7), (4, 7.0),"
        " (5, 0.5), (6, 9e999), (7, '7.0'), (8, NULL), (9, x'ff')",
    )
    source = database_table(sqlite_url, monkeypatch, table="t")
    path = tmp_path / "c.parquet"
    copy_of(source, {"x": None}, ("patient",), path)
    assert pq.read_table(path)["patient"].to_pylist() == [
        *("12345678901234567", None, "7", "7", None, None, "7.0", None, None)
    ]


def test_no_cell_of_a_driver_raises_an_error() -> None:
    found = [Decimal("sNaN"), 10**400, -(10**400), 10**5000, "1\ud800", float("nan"), 2]
    np.testing.assert_array_equal(
        numbers(found).to_numpy(zero_copy_only=False), [NAN, np.inf, -np.inf, np.inf, NAN, NAN, 2]
    )
    assert texts(found[3:5] + found[-1:]).to_pylist() == [None, "1?", "2"]
    assert identifiers(found[3:]).to_pylist() == [None, "1?", None, "2"]


def test_long_texts_are_written_and_fetched_in_small_parts(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(
        sqlite_url,
        "CREATE TABLE t (x REAL, patient TEXT)",
        "INSERT INTO t VALUES (:x, :patient)",
        rows=[{"x": k, "patient": f"{k:04000d}"} for k in range(40)],
    )
    source = database_table(sqlite_url, monkeypatch, table="t")
    monkeypatch.setattr(table_format, "_BATCH_BYTES", 60_000)
    monkeypatch.setattr(private_copy, "_GROUP_BYTES", 80_000)
    fetched: list[int] = []
    path = tmp_path / "c.parquet"
    copy_of(source, {"x": None}, ("patient",), path, on_rows=fetched.append)
    assert max(fetched) * (4096 + 1024) <= 60_000
    file = pq.ParquetFile(path / "00000000.parquet")
    sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    assert sum(sizes) == 40
    assert max(sizes) <= 80_000 // 4000 + max(fetched)


def test_text_that_is_not_utf8_refuses_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PostgreSQL database may store any bytes."""
    url = url_of_encoding("SQL_ASCII", tmp_path)
    execute(url, "CREATE TABLE t (x INTEGER, ward TEXT)")
    execute(url, "INSERT INTO t VALUES (1, 'A'), (2, convert_from('\\xff41', 'SQL_ASCII'))")
    source = database_table(url, monkeypatch, table="t")
    levels = {"x": None, "ward": ("A",)}
    copy = copy_of(source, levels, (), tmp_path / "c.parquet")
    np.testing.assert_array_equal(cells(copy, levels), [[1, 0], [2, NAN]])


@pytest.mark.slow
def test_no_cell_refuses_a_table_of_sqlite(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite stores anything in any column."""
    execute(
        sqlite_url,
        "CREATE TABLE t (x INTEGER, n REAL, price NUMERIC, flag, ward TEXT, patient INTEGER)",
        "INSERT INTO t VALUES ('text', 9e999, x'ff', '1', cast(x'ff41' AS TEXT), 'p')",
        "INSERT INTO t VALUES (9007199254740993, 1, ' 2.5 ', 1.0, 7, 7)",
        "INSERT INTO t VALUES (1, zeroblob(50000000), 3, x'31', 'A', '7')",
        "INSERT INTO t VALUES (1, 2, 3, cast(x'3100' AS TEXT), 'A' || char(0), zeroblob(50000000))",
    )
    source = database_table(sqlite_url, monkeypatch, table="t")
    levels = {"x": None, "n": None, "price": None, "flag": (0.0, 1.0), "ward": ("A", "7")}
    path = tmp_path / "c.parquet"
    copy = copy_of(source, levels, ("patient",), path)
    np.testing.assert_array_equal(
        cells(copy, levels),
        [
            [NAN, np.inf, NAN, 1, NAN],
            [9007199254740992, 1, 2.5, 1, 1],
            [1, NAN, 3, NAN, 0],
            [1, 2, 3, NAN, NAN],
        ],
    )
    assert pd.read_parquet(path)["patient"].tolist()[:3] == ["p", "7", "7"]


@pytest.mark.parametrize("first", [1, 2**60, "text", b"\xff", Decimal("0.1"), True, 0.5, None])
def test_a_cell_never_affects_how_others_are_read(first: Any) -> None:
    others = [0.25, 3, 2**53 + 1, None, True, "1.5", "x", b"1", Decimal("0.3")]
    for convert in (numbers, texts):
        alone = [convert([other])[0].as_py() for other in others]
        together = convert([first, *others]).to_pylist()[1:]
        np.testing.assert_array_equal(
            pd.Series(alone, dtype=object).fillna("-"),
            pd.Series(together, dtype=object).fillna("-"),
        )


def test_condition_selects_rows_and_names_only_columns(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = frame(60)
    filled(url, table)
    where = (
        "(ward IN ('A', ':x', '%(y)s') OR ward LIKE 'B%')"
        " AND NOT (x < -10 OR x BETWEEN 0 AND 1) AND day = '2026-11-23'"
    )
    source = database_table(url, monkeypatch, table="visits", where=where)
    copy = copy_of(source, {"x": None}, (), tmp_path / "c.parquet")
    expected = table.query("ward in ['A', 'B'] and not (x < -10 or 0 <= x <= 1)")["x"]
    assert sorted(row[0] for row in cells(copy, {"x": None})) == sorted(expected)
    unknown = database_table(url, monkeypatch, table="visits", where="wards = 'A'")
    with raises(families.DATABASE_READ, column="wards"):
        copy_of(unknown, {"x": None}, (), tmp_path / "d.parquet")


def test_views_and_asserted_queries(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(url, frame(20))
    execute(url, "CREATE VIEW halves AS SELECT x / 2 AS half, ward FROM visits")
    view = database_table(url, monkeypatch, view="halves")
    query = "SELECT x / 2 AS half, 'a:b' AS ward FROM visits WHERE ward <> ':ward' -- all"
    asserted = database_table(url, monkeypatch, query=query, assertion=ASSERTION)
    for number, source in enumerate((view, asserted)):
        assert list(schema_of(open_source(source))) == ["half", "ward"]
        path = tmp_path / f"{number}.parquet"
        copy = copy_of(source, {"half": None, "ward": ("a:b",)}, (), path)
        rows = np.array(cells(copy, {"half": None, "ward": ("a:b",)}))
        np.testing.assert_array_equal(np.sort(rows[:, 0]), np.sort(frame(20)["x"] / 2))
        assert np.isnan(rows[:, 1]).all() == (source is view)
    for kind, name in (("table", "halves"), ("view", "visits"), ("table", "absent")):
        with raises(families.DATABASE_READ, kind=kind):
            columns_of(database_table(url, monkeypatch, **{kind: name}))


def test_errors_and_logs_show_no_cell(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The query of a curator may fail on a cell, and databases quote the cell."""
    filled(url, frame(5).assign(ward=SECRET))
    caplog.set_level(logging.DEBUG)
    query = "SELECT CAST(ward AS INTEGER) AS x FROM visits"
    if url.startswith("sqlite"):  # whose casts never fail
        query = "SELECT json_extract(ward, '$.x') AS x FROM visits"
    source = database_table(url, monkeypatch, query=query, assertion=ASSERTION)
    with raises(families.DATABASE_READ, source=source.display_name) as caught:
        copy_of(source, {"x": None}, (), tmp_path / "c.parquet")
    text = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert SECRET not in text
    assert caught.value.__context__ is None
    assert url not in text
    plain = database_table(url, monkeypatch, table="visits")
    copy_of(plain, {"x": None}, ("ward",), tmp_path / "d.parquet")
    assert SECRET not in caplog.text


def test_damaged_database_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "clinic.db"
    url = f"sqlite:///{path}"
    filled(url, frame(2000))
    source = database_table(url, monkeypatch, table="visits")
    columns_of(source)
    os.truncate(path, path.stat().st_size // 2)
    with raises(families.DATABASE_READ, source=source.display_name, reason="SQLITE_CORRUPT"):
        copy_of(source, {"x": None}, (), tmp_path / "copy.parquet")
    failure = sqlite3.OperationalError("disk I/O error")
    failure.sqlite_errorname = "SQLITE_IOERR_READ"
    with raises(families.DATABASE_READ, reason="SQLITE_IOERR_READ"), connected(source):
        raise failure


def test_databases_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in (
        *("mysql://host/db", "sqlite://", "not a url", f"sqlite:///{tmp_path}/absent.db"),
        "postgresql://user:hunter2@127.0.0.1:1/db",
    ):
        with raises(families.DATABASE_READ) as caught:
            columns_of(database_table(url, monkeypatch, table="t"))
        assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    assert not (tmp_path / "absent.db").exists()
    source = database_table("", monkeypatch, table="t")
    with raises(families.DATABASE_READ, variable="CLINIC_DB"):
        columns_of(source)
    with raises(families.DATABASE_READ):
        gram(contract(source))


@pytest.mark.slow
def test_reading_stops_a_million_rows_after_the_declared_number(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    execute(sqlite_url, "CREATE TABLE t (x)")
    source = database_table(sqlite_url, monkeypatch, query=endless, assertion=ASSERTION)
    monkeypatch.setattr(database_format, "EXCESS_ROWS", 100_000)
    copy = copy_of(source, {"x": None}, (), tmp_path / "c.parquet", rows=5)
    assert 100_000 < len(cells(copy, {"x": None})) < 300_000


def test_copy_that_cannot_be_written_and_driver_that_is_missing(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(sqlite_url, "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
    source = database_table(sqlite_url, monkeypatch, table="t")
    for path in (tmp_path / "absent" / "c.parquet", tmp_path / "clinic.db"):  # one exists
        with raises(families.COPY, folder=str(path.parent)):
            copy_of(source, {"x": None}, (), path)
    assert columns_of(source) == [("x", "any")]
    monkeypatch.setattr("gramercy.tables.formats.database_connection.is_installed", lambda _: False)
    with raises(families.DATABASE_READ):
        columns_of(database_table("postgresql://host/db", monkeypatch, table="t"))
