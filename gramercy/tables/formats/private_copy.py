"""The private copy of a table: a folder of Parquet files that only its owner may read.

All passes over the table, and all repetitions of them, read the copy. The columns in which all rows
of a file agree, such as those by which a Delta table is partitioned, are in a file of their own,
not in names of folders: a cell may be too long for a name.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from gramercy.common.disk import error_reason
from gramercy.schemas import families
from gramercy.schemas.model import nfc
from gramercy.schemas.source import Copied, display_name
from gramercy.tables.formats.parquet_format import ParquetTables, open_parquet
from gramercy.tables.formats.table_format import SourceFile

Constants = Mapping[str, str | None]

_CONSTANTS = "_constants.json"  # so that other readers of the folder skip it
_GROUP_CELLS = 1 << 20  # cells of a row group
_GROUP_BYTES = 1 << 26  # of a row group


def copied_files(source: Copied) -> Iterator[SourceFile]:
    """The files of a copy, under the name of the table in errors."""
    folder = Path(source.copied_to)
    constants: list[Constants] = json.loads((folder / _CONSTANTS).read_text(encoding="utf-8"))
    for number, values in enumerate(constants):
        part = _part(folder, number, display_name(source), values)
        yield replace(part, source=source)


def _part(folder: Path, number: int, name: str, constants: Constants) -> SourceFile:
    path = str(folder / f"{number:08d}.parquet")
    return SourceFile(LocalFileSystem(), path, ParquetTables(), name, constants)


@contextlib.contextmanager
def new_copy(folder: Path) -> Iterator[NewCopy]:
    """A copy in a new folder, complete after the block."""
    copy = NewCopy(folder)
    with written_to(folder.parent):
        folder.mkdir(mode=0o700)
    yield copy
    with (
        written_to(folder.parent),
        os.fdopen(_new_file(folder / _CONSTANTS), "w", encoding="utf-8") as stream,
    ):
        json.dump(copy.constants, stream)


class NewCopy:
    """A copy that is being written to a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.constants: list[Constants] = []  # of each file, the columns in which all rows agree

    def rows(self, schema: pa.Schema) -> CopyWriter:
        """A writer of one file of rows with these columns."""
        part = _part(self._folder, len(self.constants), "", {})
        self.constants.append({})
        return CopyWriter(Path(part.path), schema)

    def add_file(self, path: str, columns: Sequence[str], constants: Constants) -> int:
        """Copy a Parquet file, and return its number of rows.

        A column that will be read and that the file lacks is missing in all of its rows.
        """
        part = _part(self._folder, len(self.constants), "", {})
        with (
            open(path, "rb") as stream,
            written_to(self._folder),
            os.fdopen(_new_file(Path(part.path)), "wb") as copy,
        ):
            shutil.copyfileobj(stream, copy, 1 << 20)
        with open_parquet(part) as parquet:
            absent = set(columns).difference(map(nfc, parquet.schema_arrow.names))
            self.constants.append({**dict.fromkeys(absent), **constants})
            return int(parquet.metadata.num_rows)


class CopyWriter:
    """Writes batches of columns as row groups of a Parquet file that only its owner may read."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema = path, schema
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._pending_bytes = 0
        self.rows = 0  # so far

    def __enter__(self) -> Self:
        with written_to(self._path.parent):
            self._file = os.fdopen(_new_file(self._path), "wb")
            texts = [field.name for field in self._schema if field.type == pa.string()]
            self._table = pq.ParquetWriter(
                self._file, self._schema, compression="lz4", use_dictionary=texts
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        folder = self._path.parent
        with written_to(folder) if kind is None else contextlib.suppress(Exception):
            self._flush()
            self._table.close()
            self._file.close()

    def write(self, columns: list[pa.Array]) -> None:
        """Add rows."""
        batch = pa.record_batch(columns, schema=self._schema)
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._pending_bytes += batch.nbytes
        self.rows += batch.num_rows
        cells = self._pending_rows * batch.num_columns
        if cells >= _GROUP_CELLS or self._pending_bytes >= _GROUP_BYTES:
            with written_to(self._path.parent):
                self._flush()

    def _flush(self) -> None:
        if self._pending:
            self._table.write_table(pa.Table.from_batches(self._pending))
            self._pending, self._pending_rows, self._pending_bytes = [], 0, 0


def _new_file(path: Path) -> int:
    """The descriptor of a new file that only its owner may read."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


@contextlib.contextmanager
def written_to(folder: Path) -> Iterator[None]:
    """Report that a copy cannot be written to a folder."""
    reason = ""
    try:
        yield
    except OSError as caught:
        reason = error_reason(caught)
    if reason:
        raise families.COPY(
            "{folder}: the private copy of the table cannot be written here ({reason}).",
            "Free some space, or correct the permissions of the home.",
            folder=str(folder),
            reason=reason,
        )
