"""Copy a table, of any kind that is read once, to a place that only its owner may read.

All passes over the table, and all repetitions of them, read the copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa

from gramercy.schemas.database import CopiedTable, DatabaseTable
from gramercy.schemas.source import AnySource, CopiedFiles, location
from gramercy.tables.copies.columns import CopiedColumns
from gramercy.tables.copies.writer import CopyWriter
from gramercy.tables.passes import EXCESS_ROWS
from gramercy.tables.source import open_source
from gramercy.tables.source_file import SourceFile

Batches = tuple[pa.Schema, Iterator[list[pa.Array]]]


def copy_rows(
    source: AnySource,
    columns: CopiedColumns,
    path: Path,
    *,
    on_rows: Callable[[int], None] = lambda _: None,
) -> CopiedTable | CopiedFiles:
    """Read the rows once, and write them to a new file, or to a new folder of files.

    Parameters
    ----------
    source
        A source that `tables.source.needs_copy`.
    columns
        What to copy. Of a declared number of rows, reading stops a million rows after it.
    path
        The new file or folder, which only its owner may read.
    on_rows
        Called with the number of rows of each batch.

    Raises
    ------
    TableError
        If the table cannot be read, or lacks a column.
    ContractError
        If the copy cannot be written.
    """
    (file,) = open_source(source).files
    if file.format == "delta":
        from gramercy.tables.delta import copy_files

        copy_files(file, columns.names, path, on_rows)
    else:
        _copy_batches(file, columns, path, on_rows)
    if isinstance(source, DatabaseTable):
        return CopiedTable(**source.model_dump(), copied_to=str(path))
    return CopiedFiles(path=location(source), copied_to=str(path))


def _copy_batches(
    file: SourceFile, columns: CopiedColumns, path: Path, on_rows: Callable[[int], None]
) -> None:
    limit = math.inf if columns.rows is None else columns.rows + EXCESS_ROWS
    with (
        _opened(file, columns) as (schema, batches),
        CopyWriter(path, schema) as writer,
    ):
        for batch in batches:
            writer.write(batch)
            on_rows(len(batch[0]))
            if writer.rows > limit:  # a query may be endless
                break


def _opened(file: SourceFile, columns: CopiedColumns) -> AbstractContextManager[Batches]:
    """The columns of a copy, and the batches of its rows."""
    if file.table is not None:
        from gramercy.tables.database.reading import open_rows as rows_of_database  # SQLAlchemy

        return rows_of_database(file.table, columns)
    from gramercy.tables.excel.reading import open_rows as rows_of_sheet

    return rows_of_sheet(file, columns)
