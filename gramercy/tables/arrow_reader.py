"""Read Arrow IPC files (Feather, version 2) as batches of numbers, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem
from numpy.typing import NDArray

from gramercy.schemas.problems.source import batch_too_large
from gramercy.tables.arrow_footer import buffers_of, memory_needed
from gramercy.tables.source_file import SourceFile
from gramercy.tables.values import Coding, to_floats

_MAX_MEMORY = 256 << 20  # bytes


@contextmanager
def open_arrow(file: SourceFile, columns: list[str] | None = None) -> Iterator[Any]:
    """Open a file, after a check that what Arrow loads at once fits into memory.

    Parameters
    ----------
    file
        The file.
    columns
        The columns to read; None for the schema only.

    Raises
    ------
    TableError
        If a batch is too large, or the dictionaries.
    KeyError
        If a column is missing, or there are two of its name.
    """
    with _open_bytes(file) as stream:
        if columns is None:
            yield pa.ipc.open_file(stream)
            return
        schema = pa.ipc.open_file(stream).schema
        if memory_needed(stream, buffers_of(schema, columns)) > _MAX_MEMORY:
            raise batch_too_large(file.display_name, _MAX_MEMORY >> 20)
        positions = [schema.get_field_index(name) for name in columns]
        if min(positions) < 0:
            raise KeyError
        options = pa.ipc.IpcReadOptions(included_fields=positions, use_threads=False)
        yield pa.ipc.open_file(stream, options=options)


def _open_bytes(file: SourceFile) -> Any:
    fs, path = file.fs, file.path
    local = isinstance(fs, LocalFileSystem) and path.isprintable()  # Arrow needs UTF-8 paths
    return pa.OSFile(path) if local else fs.open(path, "rb")


def cell_batches(
    file: SourceFile, columns: Mapping[str, Coding], rows: int
) -> Iterator[NDArray[np.float64]]:
    """Batches of at most `rows` rows; see `tables.reader.cell_batches`."""
    with open_arrow(file, list(columns)) as table:
        for index in range(table.num_record_batches):
            batch = table.get_batch(index)
            batch.validate()
            cells = [batch.column(name) for name in columns]
            for column in cells:
                _check_offsets(column)
            for start in range(0, batch.num_rows, rows):
                pairs = zip(cells, columns.values(), strict=True)
                yield np.stack([to_floats(cell.slice(start, rows), x) for cell, x in pairs])


def _check_offsets(column: pa.Array) -> None:
    """Refuse offsets and indices out of their buffers, which Arrow trusts.

    Raises
    ------
    ValueError
        If there are any.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        _check_offsets(column.dictionary)
        indices = column.indices.drop_null().to_numpy()
        if indices.size and not 0 <= indices.min() <= indices.max() < len(column.dictionary):
            raise ValueError
    width = 8 if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) else 4
    if width == 8 or pa.types.is_string(kind) or pa.types.is_binary(kind):
        _, offsets, data = column.buffers()
        if not len(column):
            return
        numbers = np.frombuffer(offsets, np.dtype(f"<i{width}"), len(column) + 1, 0)
        most = 0 if data is None else data.size
        if numbers[0] < 0 or (np.diff(numbers) < 0).any() or numbers[-1] > most:
            raise ValueError
