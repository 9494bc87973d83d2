"""The memory that the columns of a Parquet file need, from the headers of their pages."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import pyarrow.parquet as pq

from gramercy.common.parquet.dictionary_pages import longest_text
from gramercy.common.parquet.page_headers import (
    DICTIONARY,
    PLAIN,
    VALUE_ENCODINGS,
    Page,
    pages,
)
from gramercy.schemas.problems.table import page_too_large
from gramercy.tables.values import Coding, is_text

# Bytes of memory.
_PAGE = 64 << 20  # for one page of numbers
_TEXTS = 16 << 20  # for one page of text
_DELTAS = 2 << 20  # for one page of prefix-encoded text: few bytes may expand to many long texts
_PAGES = 128 << 20  # for the pages of all columns together
_LARGE_PAGES = 256 << 20  # the same for a file that is itself large
_EXPANSION = 2  # a file's compressed pages may need this multiple of their size
_BATCH = 64 << 20  # for the texts of a batch
_DICTIONARY_FACTOR = 4  # a decoded dictionary needs this multiple of its page


@dataclass(frozen=True, repr=False)
class StoredColumn:
    """A declared column of a file, and the memory that reading it needs.

    Parameters
    ----------
    name, coding
        As declared.
    is_bytes
        Whether cells have variable length.
    largest_page
        Bytes of the largest page, decompressed.
    largest_compressed
        Bytes of the largest page in the file.
    text_rows
        Number of successive rows whose texts fit into memory, wherever they begin, except for
        texts in dictionaries.
    fully_encoded
        Whether all texts are in dictionaries.
    longest_repeated
        Bytes of the longest text in a dictionary; 0 without one, or if it stays encoded.
    prefix_encoded
        Whether cells are stored as differences from the previous ones.
    """

    name: str
    coding: Coding
    is_bytes: bool
    largest_page: int
    largest_compressed: int
    text_rows: float
    fully_encoded: bool
    longest_repeated: int
    prefix_encoded: bool

    @property
    def weight(self) -> int:
        """Bytes of memory to read the column: one page, and a dictionary."""
        return self.largest_page * (_DICTIONARY_FACTOR if self.is_bytes else 1)

    def stays_encoded(self, rows: int) -> bool:
        """Whether to read dictionary-encoded text, so that no text is repeated in memory.

        Arrow then also encodes texts that are stored as they are, which is slow: so not where the
        texts of this many rows fit into memory. It cannot encode differences.
        """
        if not self.is_bytes or not is_text(self.coding) or self.prefix_encoded:
            return False
        return self.fully_encoded or self.longest_repeated * rows > _BATCH

    def rows_at_once(self, rows: int) -> int:
        """Number of rows to read at once: `rows`, or fewer if long cells might not fit."""
        if not self.is_bytes:
            return rows
        if not self.stays_encoded(rows) and self.longest_repeated:
            rows = max(1, min(rows, _BATCH // self.longest_repeated))
        return int(min(rows, self.text_rows))


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
        chunks = [table.metadata.row_group(group).column(leaves[name]) for group in groups]
        is_bytes = schema[leaves[name]].physical_type == "BYTE_ARRAY"
        stored.append(_stored_column(stream, file, name, coding, is_bytes, chunks))
    return stored


def _stored_column(
    stream: IO[bytes],
    file: str,
    name: str,
    coding: Coding,
    is_bytes: bool,
    chunks: Sequence[Any],
) -> StoredColumn:
    largest_page = largest_compressed = largest_values = 0
    fully_encoded, prefix_encoded, text_rows = True, False, _TextRows()
    dictionaries: list[tuple[Page, str]] = []
    for chunk in chunks:
        for page in pages(stream, chunk):
            largest_page = max(largest_page, page.size, page.compressed_size)
            largest_compressed = max(largest_compressed, page.compressed_size)
            if page.kind == DICTIONARY:
                dictionaries.append((page, chunk.compression))
            elif page.encoding in VALUE_ENCODINGS:
                text_rows.add(page.values, page.size)
                largest_values = max(largest_values, page.size)
                fully_encoded = False
                prefix_encoded = prefix_encoded or page.encoding != PLAIN
            else:
                text_rows.add(page.values, 0)
    limit = (_DELTAS if prefix_encoded else _TEXTS) if is_bytes else _PAGE
    if largest_page > limit:
        raise page_too_large(file, name, limit >> 20)
    is_repeated = not (is_text(coding) and fully_encoded)
    longest = [longest_text(stream, *each) for each in dictionaries if is_bytes and is_repeated]
    return StoredColumn(
        name,
        coding,
        is_bytes,
        largest_page,
        largest_compressed,
        # A prefix is stored once for many texts, so that each may be as long as the page.
        max(1, _BATCH // max(1, largest_values)) if prefix_encoded else text_rows.fewest,
        fully_encoded,
        max(longest, default=0),
        prefix_encoded,
    )


def fits_in_memory(columns: Sequence[StoredColumn]) -> bool:
    """Whether one page of every column fits into memory at once."""
    return sum(column.weight for column in columns) <= memory_budget(columns)


def memory_budget(columns: Sequence[StoredColumn]) -> int:
    """Bytes for the pages of all columns; more for a file that is itself large."""
    compressed = sum(column.largest_compressed for column in columns)
    return max(_PAGES, min(_LARGE_PAGES, _EXPANSION * compressed))
