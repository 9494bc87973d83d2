"""The memory that the columns of a Parquet file need, from the headers of their pages."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import pyarrow.parquet as pq

from gramercy.common.parquet.page_headers import (
    DICTIONARY,
    PLAIN,
    VALUE_ENCODINGS,
    pages,
)
from gramercy.schemas.problems.table import page_too_large
from gramercy.tables.values import Coding

# Bytes of memory.
_PAGE = 64 << 20  # for one page of numbers
_TEXTS = 16 << 20  # for one page of text
_DELTAS = 2 << 20  # for one page of prefix-encoded text: few bytes may expand to many long texts
_PAGES = 128 << 20  # for the pages of all columns together
_LARGE_PAGES = 256 << 20  # the same for a file that is itself large
_EXPANSION = 2  # a file's compressed pages may need this multiple of their size
_BATCH = 64 << 20  # for the texts of a batch
_DICTIONARY_FACTOR = 4  # a decoded dictionary needs this multiple of its page


@dataclass(frozen=True)
class StoredColumn:
    """A declared column of a file, and the memory that reading it needs.

    Parameters
    ----------
    name, coding
        As declared.
    leaf
        Position in the file.
    is_bytes
        Whether cells have variable length.
    largest_page
        Bytes of the largest page, decompressed.
    largest_compressed
        Bytes of the largest page in the file.
    text_rows
        Number of successive rows whose texts fit into memory, wherever they begin.
    prefix_encoded
        Whether cells are stored as differences from the previous ones.
    """

    name: str
    coding: Coding
    leaf: int
    is_bytes: bool
    largest_page: int
    largest_compressed: int
    text_rows: float
    prefix_encoded: bool

    @property
    def limit(self) -> int:
        """Largest number of bytes that one of its pages may need."""
        text_limit = _DELTAS if self.prefix_encoded else _TEXTS
        return text_limit if self.is_bytes else _PAGE

    @property
    def weight(self) -> int:
        """Bytes of memory to read the column: one page, and a dictionary."""
        return self.largest_page * (_DICTIONARY_FACTOR if self.is_bytes else 1)

    def rows_at_once(self, rows: int) -> int:
        """Number of rows to read at once: `rows`, or fewer if long cells might not fit."""
        return int(min(rows, self.text_rows)) if self.is_bytes else rows


class _TextRows:
    """Finds how many successive rows of a column can be read at once.

    Attributes
    ----------
    fewest
        Number of rows that touch no pages of more than `_BATCH` bytes in total, wherever they
        begin. Texts need no more memory than the pages on which they are stored.
    """

    def __init__(self) -> None:
        self._pages: deque[tuple[int, int]] = deque()  # successive ones that fit into memory
        self._rows = self._size = 0
        self.fewest = math.inf

    def add(self, rows: int, size: int) -> None:
        """Add the next page, with its number of rows and the bytes of their texts."""
        self._pages.append((rows, size))
        self._rows += rows
        self._size += size
        while self._size > _BATCH:
            first_rows, first_size = self._pages.popleft()
            # Rows that touch the first page and this one include all rows between them.
            between = self._rows - first_rows - rows
            self.fewest = max(1, min(self.fewest, between + 1))
            self._rows -= first_rows
            self._size -= first_size


def stored_columns(
    stream: IO[bytes],
    table: pq.ParquetFile,
    file: str,
    columns: Mapping[str, Coding],
    groups: Sequence[int],
) -> list[StoredColumn]:
    """The declared columns, described by the headers of all their pages.

    Raises
    ------
    TableError
        If a page is too large.
    KeyError
        If a column is missing.
    """
    schema = [table.schema.column(leaf) for leaf in range(len(table.schema))]
    # The path of a column in a struct may equal the name of a column with a dot in it.
    leaves = {column.name: k for k, column in enumerate(schema) if column.name == column.path}
    stored = []
    for name, coding in columns.items():
        leaf = leaves[name]
        is_bytes = table.schema.column(leaf).physical_type == "BYTE_ARRAY"
        largest_page = largest_compressed = largest_values = 0
        prefix_encoded, text_rows = False, _TextRows()
        for group in groups:
            for page in pages(stream, table.metadata.row_group(group).column(leaf)):
                largest_page = max(largest_page, page.size, page.compressed_size)
                largest_compressed = max(largest_compressed, page.compressed_size)
                if page.kind == DICTIONARY:
                    continue
                size = page.size if page.encoding in VALUE_ENCODINGS else 0
                text_rows.add(page.values, size)
                if size:
                    largest_values = max(largest_values, size)
                    prefix_encoded = prefix_encoded or page.encoding != PLAIN
        column = StoredColumn(
            name,
            coding,
            leaf,
            is_bytes,
            largest_page,
            largest_compressed,
            # A prefix is stored once for many texts, so that each may be as long as the page.
            max(1, _BATCH // largest_values) if prefix_encoded else text_rows.fewest,
            prefix_encoded,
        )
        if largest_page > column.limit:
            raise page_too_large(file, name, column.limit >> 20)
        stored.append(column)
    return stored


def fits_in_memory(columns: Sequence[StoredColumn]) -> bool:
    """Whether one page of every column fits into memory at once."""
    return sum(column.weight for column in columns) <= memory_budget(columns)


def memory_budget(columns: Sequence[StoredColumn]) -> int:
    """Bytes for the pages of all columns; more for a file that is itself large."""
    compressed = sum(column.largest_compressed for column in columns)
    return max(_PAGES, min(_LARGE_PAGES, _EXPANSION * compressed))
