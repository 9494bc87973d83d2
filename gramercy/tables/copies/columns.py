"""The columns of a table that are copied, and how much memory their cells may need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gramercy.tables.person_names import MAX_BYTES
from gramercy.tables.values import Levels, is_text, max_cell_bytes

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
    dates
        The column of dates, if there is one.
    rows
        The declared number of rows, if it is public.
    """

    published: Mapping[str, Levels | None]
    others: Sequence[str] = ()
    dates: str | None = None
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
