"""Copy a table, of any kind that is read once, to a place that only its owner may read.

All passes over the table, and all repetitions of them, read the copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from gramercy.schemas.database import CopiedTable, DatabaseTable
from gramercy.schemas.source import AnySource, CopiedFiles, location
from gramercy.tables.copies.columns import CopiedColumns
from gramercy.tables.copies.writer import CopyWriter
from gramercy.tables.passes import EXCESS_ROWS
from gramercy.tables.source import open_source


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
    if isinstance(source, DatabaseTable):
        _copy_batches(source, columns, path, on_rows)
        return CopiedTable(**source.model_dump(), copied_to=str(path))
    from gramercy.tables.delta import copy_files

    (file,) = open_source(source).files
    copy_files(file, columns.names, path, on_rows)
    return CopiedFiles(path=location(source), copied_to=str(path))


def _copy_batches(
    table: DatabaseTable, columns: CopiedColumns, path: Path, on_rows: Callable[[int], None]
) -> None:
    from gramercy.tables.database.reading import open_rows  # SQLAlchemy

    limit = math.inf if columns.rows is None else columns.rows + EXCESS_ROWS
    with (
        open_rows(table, columns) as (schema, batches),
        CopyWriter(path, schema) as writer,
    ):
        for batch in batches:
            writer.write(batch)
            on_rows(len(batch[0]))
            if writer.rows > limit:  # a query may be endless
                break
