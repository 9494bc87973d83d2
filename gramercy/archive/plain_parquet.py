"""Parquet files of bundles without compression, which are read into memory as a whole.

An archive may be hostile. Texts stay dictionary-encoded, because a long one that is stored once
could be repeated in every row, and the footer must state a number of rows that the release can
have.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.archive.parquet_limits import (
    ENCODINGS,
    Budget,
    bounded_bytes,
    check_pages,
    open_checked,
)

_ROW_BYTES, _FOOTER_BYTES = 64, 1 << 20  # larger than what is written


def write_plain(path: Path, table: pa.Table) -> None:
    """Write a table without compression and without Arrow's own schema."""
    pq.write_table(table, path, store_schema=False, compression="none")


def read_plain(path: Path, schema: pa.Schema, texts: Sequence[str], most_rows: int) -> pa.Table:
    """Read a table that `write_plain` wrote.

    Parameters
    ----------
    path
        The file.
    schema
        Its columns.
    texts
        Names of the columns of text, which are dictionary-encoded in the result.
    most_rows
        Largest possible number of rows.

    Raises
    ------
    ValueError
        If the file is too large, compressed, or has other columns; Arrow may raise anything else.
    """
    if path.stat().st_size > _FOOTER_BYTES + most_rows * _ROW_BYTES:
        raise ValueError
    stream = io.BytesIO(path.read_bytes())
    with open_checked(stream, read_dictionary=texts) as file:
        if file.metadata.num_rows > most_rows or not _is_plain(file, schema, texts):
            raise ValueError
        check_pages(stream, file, Budget(bounded_bytes(most_rows)), ENCODINGS)
        return file.read(use_threads=False).combine_chunks()


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


def _is_plain(file: pq.ParquetFile, schema: pa.Schema, texts: Sequence[str]) -> bool:
    types = {name: pa.dictionary(pa.int32(), pa.string()) for name in texts}
    expected = [(field.name, types.get(field.name, field.type)) for field in schema]
    facts = file.metadata
    chunks = (
        facts.row_group(group).column(k)
        for group in range(facts.num_row_groups)
        for k in range(facts.num_columns)
    )
    return file.schema_arrow == pa.schema(expected) and all(
        chunk.compression == "UNCOMPRESSED" for chunk in chunks
    )
