"""Refuses Parquet files of a hostile archive, from their footers and page headers.

Arrow decompresses a page as a whole, and repeats a value as often as a page states. A few bytes in
a file can therefore need any amount of memory and time. Their headers state the sizes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from gramercy.common.parquet.page_headers import Page, check_footer, pages

_ROW_BYTES, _FIXED_BYTES = 64, 8 << 20  # larger than what is written, decompressed
_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY = 0, 2, 3, 8
# Encodings that repeat a part of a text would need more memory than their pages.
ENCODINGS = frozenset({_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY})


def bounded_bytes(rows: int) -> int:
    """Bytes, also decompressed, that a table of texts and numbers with this many rows may need."""
    return _FIXED_BYTES + rows * _ROW_BYTES


def read_bounded(path: Path, texts: Sequence[str], rows: int, size: int | None = None) -> pa.Table:
    """Read a Parquet file into memory, if it has this many rows.

    Parameters
    ----------
    path
        The file.
    texts
        Names of the columns of text, which are dictionary-encoded in the result: a long text that
        is stored once would otherwise be repeated in every row.
    rows
        Its number of rows.
    size
        Bytes that it may need; default: `bounded_bytes`.

    Raises
    ------
    ValueError
        If it has another number of rows, or needs more memory; Arrow may raise anything else.
    """
    size = bounded_bytes(rows) if size is None else size
    if path.stat().st_size > size:
        raise ValueError
    stream = io.BytesIO(path.read_bytes())
    # Without Arrow's threads, because a process that ends while they start is aborted.
    with open_checked(stream, read_dictionary=texts) as file:
        if file.metadata.num_rows != rows:
            raise ValueError
        check_pages(stream, file, Budget(size), ENCODINGS)
        return file.read(use_threads=False).combine_chunks()


def open_checked(stream: IO[bytes], read_dictionary: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a file whose footer needs little memory.

    Raises
    ------
    ValueError, IndexError
        If the footer is not valid, or too large.
    """
    check_footer(stream)
    stream.seek(0)
    return pq.ParquetFile(stream, read_dictionary=list(read_dictionary), pre_buffer=False)


class Budget:
    """Accepts pages until their decompressed sizes exceed a number of bytes."""

    def __init__(self, size: int) -> None:
        self._left = size

    def __call__(self, page: Page) -> bool:
        self._left -= max(page.size, page.compressed_size)
        return self._left >= 0


def check_pages(
    stream: IO[bytes],
    file: pq.ParquetFile,
    accepts: Callable[[Page], bool],
    encodings: Collection[int],
) -> None:
    """Check all pages of a file by their headers.

    Raises
    ------
    ValueError, IndexError
        If a page is not accepted, has another encoding, or a header is not valid.
    """
    facts = file.metadata
    for group in range(facts.num_row_groups):
        for k in range(facts.num_columns):
            for page in pages(stream, facts.row_group(group).column(k)):
                if page.encoding not in encodings or not accepts(page):
                    raise ValueError
    stream.seek(0)
