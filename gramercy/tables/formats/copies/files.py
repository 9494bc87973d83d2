"""The files of a private copy: one Parquet file, or a folder of them with constant columns.

The columns in which all rows of a file agree, such as those by which a Delta table is partitioned,
are in a file of their own, not in names of folders: a cell may be too long for a name.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from gramercy.common.disk import error_reason
from gramercy.schemas import families
from gramercy.tables.formats.source_file import SourceFile

Constants = Mapping[str, str | None]

_CONSTANTS = "constants.json"
_GROUP_CELLS = 1 << 20  # cells of a row group
_GROUP_BYTES = 1 << 26  # of a row group


def path_of_part(folder: Path, number: int) -> Path:
    """The path of one of the files."""
    return folder / f"{number:08d}.parquet"


def write_constants(folder: Path, constants: Sequence[Constants]) -> None:
    """Write the constant columns of all files, in their order."""
    with os.fdopen(new_private_file(folder / _CONSTANTS), "w", encoding="utf-8") as stream:
        json.dump(constants, stream)


def copied_files(path: str, display_name: str) -> Iterator[SourceFile]:
    """The files of a copy.

    Parameters
    ----------
    path
        A Parquet file, or a folder.
    display_name
        The name of the table in errors.
    """
    fs = LocalFileSystem()
    if not os.path.isdir(path):
        yield SourceFile(fs, path, "parquet", display_name, {})
        return
    constants: list[Constants] = json.loads(Path(path, _CONSTANTS).read_text(encoding="utf-8"))
    for number, values in enumerate(constants):
        part = str(path_of_part(Path(path), number))
        yield SourceFile(fs, part, "parquet", display_name, values)


class CopyWriter:
    """Writes batches of columns as row groups of a Parquet file that only its owner may read.

    Parameters
    ----------
    path
        The new file.
    schema
        Its columns.

    Attributes
    ----------
    rows
        Number of rows so far.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema = path, schema
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._pending_bytes = 0
        self.rows = 0

    def __enter__(self) -> Self:
        with written_to(self._path.parent):
            self._file = os.fdopen(new_private_file(self._path), "wb")
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


def new_private_file(path: Path) -> int:
    """The descriptor of a new file that only its owner may read."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


@contextlib.contextmanager
def written_to(folder: Path) -> Iterator[None]:
    """Report that a copy cannot be written to a folder.

    Raises
    ------
    ContractError
        In place of an error of the operating system.
    """
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
