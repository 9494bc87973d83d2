"""What the columns of a Parquet file take in memory, by the heads of their pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import pyarrow.parquet as pq

from gramercy.schemas.errors import TableError
from gramercy.tables.parquet_guard.page_heads import DICTIONARY, PLAIN, SPELLED, pages
from gramercy.tables.values import Reading

# Bytes of memory.
_PAGE = 64 << 20  # one page of numbers
_TEXTS = 16 << 20  # one page of texts
_DELTAS = 2 << 20  # one page of texts that each begin as the one before, and all may be long
_PAGES = 128 << 20  # the pages of all columns at once
_HONEST = 256 << 20  # those of a file that is not much smaller than what it unpacks to
_UNPACKED = 2  # times its size
_BATCH = 64 << 20  # texts at once
_ENTRY = 4  # times its page that a dictionary takes once it is read


@dataclass(frozen=True)
class StoredColumn:
    """A declared column of a file, and what it takes to read it.

    Parameters
    ----------
    name, levels
        As declared.
    leaf
        Its place in the file.
    of_bytes
        Whether its cells have any length.
    largest, packed, spelled
        Bytes of its largest page, of the largest as it lies in the file, and of the largest that
        spells its cells out.
    delta
        Whether cells are told by those before them.
    """

    name: str
    levels: Reading
    leaf: int
    of_bytes: bool
    largest: int
    packed: int
    spelled: int
    delta: bool

    @property
    def most(self) -> int:
        """Bytes that a page of it may take."""
        of_texts = _DELTAS if self.delta else _TEXTS
        return of_texts if self.of_bytes else _PAGE

    @property
    def weight(self) -> int:
        """Bytes of memory while it is read: a page, and a dictionary."""
        return self.largest * (_ENTRY if self.of_bytes else 1)

    def at_once(self, rows: int) -> int:
        """How many of its cells are read at once, each as long as its longest may be."""
        return max(1, min(rows, _BATCH // max(1, self.spelled))) if self.of_bytes else rows


def stored_columns(
    stream: IO[bytes],
    table: pq.ParquetFile,
    file: str,
    columns: Mapping[str, Reading],
    groups: Sequence[int],
) -> list[StoredColumn]:
    """What the heads of all pages say of the declared columns."""
    every = (table.schema.column(leaf) for leaf in range(len(table.schema)))
    # Inside another column, a path may read as a name with a point in it.
    leaves = {each.name: leaf for leaf, each in enumerate(every) if each.name == each.path}
    found = []
    for name, levels in columns.items():
        leaf = leaves[name]
        of_bytes = table.schema.column(leaf).physical_type == "BYTE_ARRAY"
        largest = packed = spelled = 0
        delta = False
        for group in groups:
            for page in pages(stream, table.metadata.row_group(group).column(leaf)):
                largest, packed = max(largest, page.size, page.packed), max(packed, page.packed)
                if page.kind != DICTIONARY and page.encoding in SPELLED:
                    spelled = max(spelled, page.size)
                    delta = delta or page.encoding != PLAIN
        column = StoredColumn(name, levels, leaf, of_bytes, largest, packed, spelled, delta)
        if largest > column.most:
            raise TableError(
                f"{file}: column '{name}' lies in pages of more than {column.most >> 20} MiB.",
                "Write it in smaller pages or row groups.",
            )
        found.append(column)
    return found


def fit(columns: Sequence[StoredColumn]) -> bool:
    """Whether pages of all of them can be in memory at once."""
    return sum(column.weight for column in columns) <= room(columns)


def room(columns: Sequence[StoredColumn]) -> int:
    """More where the file is large itself, so that nobody is surprised."""
    return max(_PAGES, min(_HONEST, _UNPACKED * sum(column.packed for column in columns)))
