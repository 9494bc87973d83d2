"""Copy a table, of any kind that is read once, to a place that only its owner may read.

All passes over the table, and all repetitions of them, read the copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gramercy.schemas.database import CopiedTable, DatabaseTable
from gramercy.schemas.source import AnySource, CopiedFiles, location
from gramercy.tables.batches import EXCESS_ROWS
from gramercy.tables.formats.copies.files import CopyWriter
from gramercy.tables.formats.source import open_source
from gramercy.tables.formats.values import Levels, is_text, max_cell_bytes
from gramercy.tables.persons.person_names import MAX_BYTES

_BATCH_CELLS = 1 << 16  # cells that are read at once
_BATCH_BYTES = 1 << 27  # of a batch, if every text were as long as it can be
_NUMBER_BYTES = 1024  # of text that is a number
_NAME_BYTES = 16 * MAX_BYTES  # of a person's name, before it has its canonical form


@dataclass(frozen=True)
class CopiedColumns:
    """What a copy holds of a table.

    Parameters
    ----------
    published
        The columns to publish, with their levels; None for numbers. Numbers become doubles as
        those of a Parquet file would, and texts that are too long to be a level become missing.
    others
        Other columns: of persons or of dates. Whole numbers stay such, and others become text.
    rows
        The declared number of rows, if it is public.
    """

    published: Mapping[str, Levels | None]
    others: Sequence[str] = ()
    rows: int | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns, each once."""
        return list(dict.fromkeys([*self.published, *self.others]))

    def is_number(self, name: str) -> bool:
        """Whether the cells of a column are numbers, or levels that are numbers."""
        return name in self.published and not is_text(self.published[name])

    def most_bytes(self, name: str) -> int:
        """Bytes of the longest text that can be a value of a column."""
        if name not in self.published:
            return _NAME_BYTES
        levels = self.published[name]
        return max_cell_bytes(levels) if levels is not None and is_text(levels) else _NUMBER_BYTES

    @property
    def rows_at_once(self) -> int:
        """Number of rows of a batch whose cells fit into memory."""
        names = self.names
        longest = sum(map(self.most_bytes, names))
        return max(1, min(_BATCH_CELLS // len(names), _BATCH_BYTES // longest))


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
        A source that `tables.formats.source.needs_copy`.
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
    from gramercy.tables.formats.delta import copy_files

    (file,) = open_source(source).files
    copy_files(file, columns.names, path, on_rows)
    return CopiedFiles(path=location(source), copied_to=str(path))


def _copy_batches(
    table: DatabaseTable, columns: CopiedColumns, path: Path, on_rows: Callable[[int], None]
) -> None:
    from gramercy.tables.formats.database.reading import open_rows  # SQLAlchemy

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
