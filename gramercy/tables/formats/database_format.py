"""Tables of databases: one statement reads all rows into a private copy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.source import AnySource, display_name
from gramercy.tables.batches import EXCESS_ROWS
from gramercy.tables.formats.private_copy import new_copy
from gramercy.tables.formats.table_format import (
    MOST_TEXT,
    CopiedColumns,
    CopiedFormat,
    SampledRows,
    SourceFile,
)


class DatabaseTables(CopiedFormat):
    """Tables, views and queries of a database. SQLAlchemy is imported where it is used."""

    title = "a table of a database"

    def table_of(self, source: AnySource) -> SourceFile | None:
        if not isinstance(source, DatabaseTable):
            return None
        return SourceFile(None, "", self, display_name(source), source=source)

    def columns(self, file: SourceFile) -> list[tuple[str, str]]:
        from gramercy.tables.formats.database_relation import columns_of

        return columns_of(_table(file))

    def copy(
        self, file: SourceFile, columns: CopiedColumns, folder: Path, on_rows: Callable[[int], None]
    ) -> None:
        """Copy the rows; of a declared number, reading stops a million rows after it."""
        from gramercy.tables.formats.database_relation import open_rows

        limit = math.inf if columns.rows is None else columns.rows + EXCESS_ROWS
        with (
            open_rows(_table(file), columns) as (schema, batches),
            new_copy(folder) as copy,
            copy.rows(schema) as writer,
        ):
            for batch in batches:
                writer.write(batch)
                on_rows(len(batch[0]))
                if writer.rows > limit:  # a query may be endless
                    break

    def sample(self, file: SourceFile, columns: Sequence[str], rows: int) -> SampledRows:
        """The rows that a bounded statement of its own finds first."""
        from gramercy.tables.formats.database_relation import first_rows

        cells = first_rows(_table(file), columns, rows + 1, MOST_TEXT)
        everything = cells.num_rows <= rows
        return SampledRows(cells.slice(0, rows), complete=everything)


def _table(file: SourceFile) -> DatabaseTable:
    return cast(DatabaseTable, file.source)
