"""Refuses Parquet files of a hostile archive, from their footers and page headers.

Arrow decompresses a page as a whole, and repeats a value as often as a page states. A few bytes in
a file can therefore need any amount of memory and time. Their headers state the sizes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.archive.bundles.parquet_headers import Page, check_footer, pages

_ROW_BYTES, _FIXED_BYTES = 64, 8 << 20  # larger than what is written, decompressed
_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY = 0, 2, 3, 8
# Encodings that repeat a part of a text would need more memory than their pages.
ENCODINGS = frozenset({_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY})


def bounded_bytes(rows: int) -> int:
    """Bytes, also decompressed, that a table of texts and numbers with this many rows may need."""
    return _FIXED_BYTES + rows * _ROW_BYTES


def read_bounded(path: Path, most_rows: int, size: int | None = None) -> pa.Table:
    """Read a Parquet file into memory, if it has at most this many rows.

    Columns of text are dictionary-encoded in the result: a long text that is stored once would
    otherwise be repeated in every row.

    Parameters
    ----------
    path
        The file.
    most_rows
        Largest possible number of rows.
    size
        Bytes that it may need; default: `bounded_bytes`.

    Raises
    ------
    ValueError
        If it has more rows, or needs more memory; Arrow may raise anything else.
    """
    size = bounded_bytes(most_rows) if size is None else size
    if path.stat().st_size > size:
        raise ValueError
    stream = io.BytesIO(path.read_bytes())
    with open_checked(stream) as file:
        texts = [x.name for x in file.schema_arrow if pa.types.is_string(x.type)]
        if file.metadata.num_rows > most_rows:
            raise ValueError
        check_pages(stream, file, Budget(size), ENCODINGS)
    # Without Arrow's threads, because a process that ends while they start is aborted.
    with pq.ParquetFile(stream, read_dictionary=texts, pre_buffer=False) as file:
        return file.read(use_threads=False).combine_chunks()


def open_checked(stream: IO[bytes]) -> pq.ParquetFile:
    """Open a file whose footer needs little memory.

    Raises
    ------
    ValueError, IndexError
        If the footer is not valid, or too large.
    """
    check_footer(stream)
    stream.seek(0)
    return pq.ParquetFile(stream, pre_buffer=False)


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


def texts_of(cells: pa.ChunkedArray) -> tuple[str | None, ...]:
    """Texts of a dictionary-encoded column; equal ones share their memory."""
    texts: list[str | None] = []
    for chunk in cells.chunks:
        words = chunk.dictionary.to_pylist()
        texts += [None if k is None else words[k] for k in chunk.indices.to_pylist()]
    return tuple(texts)


def codes_of(cells: pa.ChunkedArray, words: Sequence[str]) -> NDArray[np.int64]:
    """The index among `words` of each cell of a dictionary-encoded column; -1 for another text."""
    index = {word: k for k, word in enumerate(words)}
    parts = [np.zeros(0, np.int64)]
    for chunk in cells.chunks:
        codes = np.array([index.get(word, -1) for word in chunk.dictionary.to_pylist()], np.int64)
        parts.append(codes[chunk.indices.to_numpy()])
    return np.concatenate(parts)


def has_schema(table: pa.Table, schema: pa.Schema) -> bool:
    """Whether a table from `read_bounded` has these columns."""
    encoded = pa.dictionary(pa.int32(), pa.string())
    types = [encoded if pa.types.is_string(field.type) else field.type for field in schema]
    return bool(table.schema.names == schema.names and table.schema.types == types)
