"""Tables in files and in real databases, with the same rows as a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import sqlalchemy as sa

from gramercy.common.lattice import Lattice
from gramercy.schemas.contract import Contract
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.normalisation import Unit
from gramercy.schemas.source import AnySource
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.lines import Records
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import copy_rows, open_source
from gramercy.tables.formats.table_format import CopiedColumns
from gramercy.tables.formats.values import Levels
from gramercy.tables.sums import streaming
from tests.support.databases import ledger_location
from tests.support.factories import contract_facts

Rows = Sequence[Mapping[str, Any]]


def new_url(kind: str, folder: Path) -> str:
    """The URL of a new, empty database."""
    if kind == "sqlite":
        return f"sqlite:///{folder / 'clinic.db'}"
    return str(ledger_location(kind, folder))


def engine_of(url: str) -> sa.Engine:
    parsed, settings = sa.engine.make_url(url), {}
    if parsed.get_backend_name() == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
        settings = {"client_encoding": "utf8"}
    return sa.create_engine(parsed, poolclass=sa.NullPool, connect_args=settings)


def execute(url: str, *statements: str, rows: Rows = ()) -> None:
    """Execute statements in one transaction, the last one for each row if there are rows."""
    engine = engine_of(url)
    with engine.begin() as connection:
        for number, each in enumerate(statements, start=1):
            parameters = list(rows) if rows and number == len(statements) else None
            connection.execute(sa.text(each), parameters)


def database_table(url: str, monkeypatch: Any, **keys: Any) -> DatabaseTable:
    """A table of a database, whose URL is in an environment variable."""
    monkeypatch.setenv("CLINIC_DB", url)
    return DatabaseTable.model_validate({"url": "env:CLINIC_DB", **keys})


def copied(table: AnySource, contract: Contract, path: Path, **options: Any) -> AnySource:
    """A copy of the columns of a contract."""
    levels = {name: contract.levels(name) for name in contract.names}
    others = () if contract.person_column is None else (contract.person_column,)
    return copy_of(table, levels, others, path, **options)


def copy_of(
    table: AnySource,
    columns: Mapping[str, Levels | None],
    others: Sequence[str],
    path: Path,
    *,
    rows: int | None = None,
    **options: Any,
) -> AnySource:
    """A copy of columns to publish, and of others."""
    return copy_rows(table, CopiedColumns(columns, others, rows=rows), path, **options)


def cells(source: AnySource, columns: Mapping[str, Any]) -> list[list[float]]:
    """The rows of a copy, as numbers and indices of levels."""
    rows: list[list[float]] = []
    for batch in cell_batches(open_source(source), columns, MalformedLines()):
        rows += batch.T.tolist()
    return rows


WIDE = {"lower": -100.0, "upper": 100.0}
COLUMNS: dict[str, Any] = {
    "x": WIDE,
    "n": {"lower": -1e18, "upper": 1e18},
    "price": WIDE,
    "flag": {"levels": [0, 1]},
    "ward": {"levels": ["A", "B", "Ä"]},
}


def frame(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "patient": rng.integers(0, rows // 2, rows),
            "x": rng.normal(size=rows) * 30,
            "n": rng.integers(-(2**62), 2**62, rows),
            "price": rng.integers(-(10**7), 10**7, rows) / 10**4,
            "flag": rng.random(rows) < 0.5,
            "ward": rng.choice(["A", "B", "Ä", "C"], rows),
            "day": "2026-11-23",
        }
    )


def contract(source: Any, rows: int = 4, **facts: Any) -> Contract:
    declared = {"source": source, "rows": rows, "columns": COLUMNS} | facts
    return Contract.model_validate(contract_facts() | declared)


def gram(declared: Contract) -> Any:
    columns = sum(len(getattr(each, "levels", [0])) for each in declared.columns.values())
    lattice = Lattice.fitting(columns + declared.intercept, declared.count, 1.0)
    return streaming.accumulate(open_source(declared.source), declared, Unit(), lattice).gram


def records_of(records: Records, stream: IO[bytes]) -> list[bytes]:
    """All records of a stream, without their ends."""
    pieces = [piece for block in records.blocks(stream) for piece in records.of_block(block)[0]]
    return b"".join(pieces).split(b"\n")[:-1]


def read(path: Path, *names: str) -> tuple[list[list[float]], int]:
    """Return the rows of these columns, and the number of dropped lines."""
    source, malformed = open_source(str(path)), MalformedLines()
    batches = list(cell_batches(source, dict.fromkeys(names), malformed))
    rows = np.concatenate(batches, axis=1).T.tolist() if batches else []
    return rows, malformed.dropped
