"""Copy the rows of a database's table into a Parquet file that only its owner may read.

One statement sees one snapshot of the database. Reading a changing table in several statements
could read a row twice that was moved in between, and the sensitivity would double. All
passes over the table, and all repetitions of them, read the copy.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from gramercy.schemas.database import CopiedTable, DatabaseTable
from gramercy.schemas.problems import source as problems
from gramercy.tables.database import cells as as_arrow
from gramercy.tables.database.connection import connected
from gramercy.tables.database.relation import WHOLE, stated_columns, statement
from gramercy.tables.passes import EXCESS_ROWS
from gramercy.tables.person_names import MAX_BYTES
from gramercy.tables.values import Levels, is_text, max_cell_bytes

_BATCH_CELLS = 1 << 16  # cells that are fetched at once
_GROUP_CELLS = 1 << 20  # cells of a row group
_BATCH_BYTES = 1 << 27  # of a batch, if every text were as long as it can be
_GROUP_BYTES = 1 << 26  # of a row group
_NUMBER_BYTES = 1024  # of text that is a number
_NAME_BYTES = 16 * MAX_BYTES  # of a person's name, before it has its canonical form


def copy_rows(
    table: DatabaseTable,
    columns: Mapping[str, Levels | None],
    texts: tuple[str, ...],
    path: Path,
    *,
    rows: int | None = None,
    on_rows: Callable[[int], None] = lambda _: None,
) -> CopiedTable:
    """Read the rows once, and write them to a new file.

    Parameters
    ----------
    table
        What to read.
    columns
        The columns to publish, with their levels; None for numbers. Numbers become doubles as
        those of a Parquet file would, and texts that are too long to be a level become missing.
    texts
        Other columns: of persons or of dates. Whole numbers stay such, and others become text.
    path
        The new file, which only its owner may read.
    rows
        The declared number of rows, if it is public: reading stops a million rows after it.
    on_rows
        Called with the number of rows of each batch.

    Raises
    ------
    TableError
        If the database cannot be read, or lacks a column.
    ContractError
        If the file cannot be written.
    """
    limit = math.inf if rows is None else rows + EXCESS_ROWS
    with connected(table) as connection:
        types = dict(stated_columns(connection, table))
        sqlite = connection.dialect.name == "sqlite"
        selected = {name: (types[name], _most_bytes(levels)) for name, levels in columns.items()}
        selected |= {name: (types[name], _NAME_BYTES) for name in texts if name not in selected}
        convert: dict[str, as_arrow.Convert] = {
            name: as_arrow.texts if is_text(columns[name]) else as_arrow.numbers for name in columns
        }
        for name in selected.keys() - convert.keys():
            enforced = types[name] == WHOLE and not sqlite
            convert[name] = as_arrow.whole_numbers if enforced else as_arrow.identifiers
        longest = sum(most_bytes for _, most_bytes in selected.values())
        batch = max(1, min(_BATCH_CELLS // len(selected), _BATCH_BYTES // longest))
        select = statement(table, selected, sqlite=sqlite)
        found = connection.execution_options(yield_per=batch).execute(select)
        schema = pa.schema([(name, as_arrow.TYPES[convert[name]]) for name in selected])
        with _Writer(path, schema) as writer:
            for fetched in found.partitions():
                cells = zip(*fetched, strict=True)
                writer.write(
                    [convert[name](column) for name, column in zip(selected, cells, strict=True)]
                )
                on_rows(len(fetched))
                if writer.rows > limit:  # the query may be endless
                    break
    return CopiedTable(**table.model_dump(), copied_to=str(path))


def _most_bytes(levels: Levels | None) -> int:
    """Bytes of the longest text that can be a level or a number."""
    return max_cell_bytes(levels) if levels is not None and is_text(levels) else _NUMBER_BYTES


class _Writer:
    """Writes batches of columns as row groups of a Parquet file that only its owner may read."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema = path, schema
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._pending_bytes = 0
        self.rows = 0

    def __enter__(self) -> Self:
        with self._errors():
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._file = os.fdopen(handle, "wb")
            texts = [field.name for field in self._schema if field.type == pa.string()]
            self._table = pq.ParquetWriter(
                self._file, self._schema, compression="lz4", use_dictionary=texts
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._errors() if kind is None else contextlib.suppress(Exception):
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
            with self._errors():
                self._flush()

    def _flush(self) -> None:
        if self._pending:
            self._table.write_table(pa.Table.from_batches(self._pending))
            self._pending, self._pending_rows, self._pending_bytes = [], 0, 0

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        reason = ""
        try:
            yield
        except OSError as caught:
            reason = os.strerror(caught.errno) if caught.errno else type(caught).__name__
        if reason:
            raise problems.copy_not_written(str(self._path.parent), reason)
