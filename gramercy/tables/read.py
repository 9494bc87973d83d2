"""Read CSV and Parquet as batches of cells in bounded memory.

Errors name the file and the column, and never repeat what a parser said: parsers quote values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gramercy.schemas.column import MISSING
from gramercy.schemas.errors import TableError
from gramercy.tables import csv_reader, parquet
from gramercy.tables.csv_reader import Malformed
from gramercy.tables.lines import valid_utf8
from gramercy.tables.parse_errors import parsing
from gramercy.tables.source import Source
from gramercy.tables.source_file import SourceFile
from gramercy.tables.values import Reading, converted, width


def pieces(source: Source, cells_each: int) -> list[Source]:
    """The table in pieces that follow each other: files, and of Parquet their row groups.

    Parameters
    ----------
    source
        The table.
    cells_each
        Row groups of fewer cells than that are taken together.

    Raises
    ------
    TableError
        If a file cannot be read, naming it.
    """
    found: list[Source] = []
    for file in source.files:
        if file.format == "csv":
            found.append(replace(source, files=(file,)))
            continue
        with parsing(file.shown, "Parquet"), parquet.opened(file) as (_, table):
            known = table.metadata
            sizes = [known.row_group(k).num_rows for k in range(known.num_row_groups)]
            wide = known.num_columns
        groups: list[int] = []
        for k in range(len(sizes)):
            groups.append(k)
            if sum(sizes[j] for j in groups) * wide >= cells_each or k == len(sizes) - 1:
                part = replace(file, groups=tuple(groups))
                found.append(replace(source, files=(part,)))
                groups = []
    return found or [source]


def cells(
    source: Source,
    columns: Mapping[str, Reading],
    malformed: Malformed,
    *,
    in_place: bool = False,
) -> Iterator[NDArray[np.float64]]:
    """Batches of cells, shape (columns, rows), NaN where missing or not a number.

    Parameters
    ----------
    source
        Where they lie.
    columns
        Names of the columns to read. Those with levels give the place of a cell's level, and NaN
        where it is none of them; the owners' that of a row's owner, and NaN where it is nobody.
    malformed
        Counts, added to in place.
    in_place
        Whether a malformed line of a CSV becomes a row of missing cells where it stands; otherwise
        it is left out.

    Raises
    ------
    TableError
        If a file cannot be read, naming it.
    """
    # Levels spread a column over many: what a batch becomes has to fit, not what it is.
    rows = max(1, parquet.BATCH_CELLS // sum(map(width, columns.values())))
    for file in source.files:
        keys = {name: value for name, value in file.keys.items() if name in columns}
        inside = {name: reading for name, reading in columns.items() if name not in keys}
        if not inside:
            raise TableError(
                f"{file.shown}: all declared columns are names of folders.",
                "Declare one of its own.",
            )
        if file.format == "csv":
            batches = csv_reader.cells(file, inside, rows, malformed, in_place)
        else:
            batches = _parquet_cells(file, inside, rows)
        yield from _with_keys(batches, columns, keys) if keys else batches


def _with_keys(
    batches: Iterator[NDArray[np.float64]],
    columns: Mapping[str, Reading],
    keys: Mapping[str, str | None],
) -> Iterator[NDArray[np.float64]]:
    """All columns in their order, with those that folders hold, the same in every row."""
    same = {name: converted(_folder_cell(value), columns[name]) for name, value in keys.items()}
    for batch in batches:
        others = iter(batch)
        each = (
            np.broadcast_to(same[name], batch.shape[1:]) if name in same else next(others)
            for name in columns
        )
        yield np.stack(list(each))


def _folder_cell(value: str | None) -> pa.Array:
    """A cell that a folder's name holds, which may have bytes that are not UTF-8."""
    if value is None or value in MISSING:
        return pa.nulls(1, pa.string())
    return pa.array([valid_utf8(value.encode("utf-8", "surrogateescape")).decode()])


def _parquet_cells(
    file: SourceFile, columns: Mapping[str, Reading], rows: int
) -> Iterator[NDArray[np.float64]]:
    with parsing(file.shown, "Parquet"):
        for batch in parquet.cells(file, columns, rows):
            for start in range(0, batch.shape[1], rows):
                yield batch[:, start : start + rows]
