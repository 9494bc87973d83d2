"""Protecting persons with ten rows each (two passes) against protecting rows (one pass)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs
from gramercy.schemas.normalisation import Unit
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.streaming import accumulate

_EACH = 10


@contextmanager
def job(cell: Cell, folder: Path) -> Iterator[dict[str, Contender]]:
    path, persons = folder / "table.parquet", cell.rows // _EACH
    who = [f"person-{k % persons:08d}" for k in range(cell.rows)]
    frame = inputs.arrow(inputs.table(cell.rows, cell.columns))
    pq.write_table(frame.append_column("who", pa.array(who)), path)
    of_rows = inputs.contract(str(path), cell.rows, cell.columns)
    of_persons = inputs.contract(
        str(path), cell.rows, cell.columns, privacy_unit="who", persons=persons
    )
    lattice = inputs.lattice(cell.columns)

    def run(terms: Any) -> Any:
        return accumulate(open_source(str(path)), terms, Unit(), lattice)

    yield {
        "Gramercy: persons": Contender(lambda: run(of_persons)),
        "Gramercy: rows": Contender(lambda: run(of_rows)),
    }
