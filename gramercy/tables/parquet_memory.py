"""The memory that the columns of a Parquet file need, from the headers of their pages."""

from __future__ import annotations

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
    largest_values
        Bytes of the largest page that has values rather than dictionary indices.
    prefix_encoded
        Whether cells are stored as differences from the previous ones.
    """

    name: str
    coding: Coding
    leaf: int
    is_bytes: bool
    largest_page: int
    largest_compressed: int
    largest_values: int
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
        if not self.is_bytes:
            return rows
        return max(1, min(rows, _BATCH // max(1, self.largest_values)))


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
        prefix_encoded = False
        for group in groups:
            for page in pages(stream, table.metadata.row_group(group).column(leaf)):
                largest_page = max(largest_page, page.size, page.compressed_size)
                largest_compressed = max(largest_compressed, page.compressed_size)
                if page.kind != DICTIONARY and page.encoding in VALUE_ENCODINGS:
                    largest_values = max(largest_values, page.size)
                    prefix_encoded = prefix_encoded or page.encoding != PLAIN
        column = StoredColumn(
            name,
            coding,
            leaf,
            is_bytes,
            largest_page,
            largest_compressed,
            largest_values,
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
