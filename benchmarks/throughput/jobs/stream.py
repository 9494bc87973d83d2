"""Memory for a table of any length, which is generated while it is read."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq

from benchmarks.throughput.cells import Cell, Contender
from benchmarks.throughput.jobs import inputs
from gramercy.schemas.normalisation import Unit
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.streaming import accumulate

_ROWS = 100_000  # rows per file


class GeneratedFiles(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """File system of Parquet files written when opened, ``made://COLUMNS/FILES/k.parquet``."""

    protocol = "made"

    def glob(self, path: str, **_: Any) -> list[str]:
        columns, files, _pattern = self._strip_protocol(path).split("/")
        return [f"{columns}/{files}/{k:05d}.parquet" for k in range(int(files))]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        kind = "file" if path.endswith(".parquet") and "*" not in path else "directory"
        return {"name": path, "type": kind, "size": None}

    def isfile(self, path: str) -> bool:
        return bool(self.info(path)["type"] == "file")

    def _open(self, path: str, *_: Any, **__: Any) -> io.BytesIO:
        columns, _files, name = path.split("/")
        written = io.BytesIO()
        frame = inputs.arrow(inputs.table(_ROWS, int(columns), seed=int(name.split(".")[0])))
        pq.write_table(frame, written, use_dictionary=False, compression="none")
        written.seek(0)
        return written


@contextmanager
def job(cell: Cell, _: Path) -> Iterator[dict[str, Contender]]:
    fsspec.register_implementation("made", GeneratedFiles, clobber=True)
    url = f"made://{cell.columns}/{cell.rows // _ROWS}/*.parquet"
    terms = inputs.contract(url, cell.rows, cell.columns)

    def ours() -> Any:
        return accumulate(open_source(url), terms, Unit(), inputs.lattice(cell.columns))

    yield {"Gramercy": Contender(ours)}
