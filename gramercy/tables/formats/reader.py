"""Read CSV and Parquet as batches of cells in bounded memory.

Errors name the file and the column, and never quote a parser's message: parsers quote values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gramercy.schemas import families, wordings
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats import csv_reader, parquet_reader
from gramercy.tables.formats.lines import replace_invalid_utf8
from gramercy.tables.formats.parse_errors import redact_parser_errors
from gramercy.tables.formats.source import Source
from gramercy.tables.formats.source_file import COPIED, SourceFile
from gramercy.tables.formats.values import Coding, matrix_width, to_floats


def partitions(source: Source, min_cells: int) -> list[Source]:
    """Split a table into partitions, in order: files, and row groups of Parquet files.

    Parameters
    ----------
    source
        The table.
    min_cells
        Successive row groups of a file are combined until they have this many cells.

    Raises
    ------
    TableError
        If a file cannot be read.
    """
    parts: list[Source] = []
    for file in source.files:
        if file.format in COPIED:
            raise wordings.table_not_copied(file.display_name)
        if file.format == "csv":
            parts.append(replace(source, files=(file,)))
            continue
        with (
            redact_parser_errors(file.display_name, "Parquet"),
            parquet_reader.open_parquet(file) as table,
        ):
            metadata = table.metadata
            sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
            columns = metadata.num_columns
        groups: list[int] = []
        for k in range(len(sizes)):
            groups.append(k)
            if sum(sizes[j] for j in groups) * columns >= min_cells or k == len(sizes) - 1:
                part = replace(file, row_groups=tuple(groups))
                parts.append(replace(source, files=(part,)))
                groups = []
    return parts or [source]


def cell_batches(
    source: Source,
    columns: Mapping[str, Coding],
    malformed: MalformedLines,
    *,
    keep_malformed: bool = False,
    missing_codes: Mapping[str, Sequence[float]] | None = None,
) -> Iterator[NDArray[np.float64]]:
    """Batches of cells, shape (columns, rows); NaN where a cell is missing or not a number.

    Parameters
    ----------
    source
        The table.
    columns
        Names of the columns to read, and their coding. A column of levels gives the index of each
        cell's level, and the column of persons the index of each row's person; NaN if there is
        none.
    malformed
        Counts, updated in place.
    keep_malformed
        Whether a malformed line of a CSV file becomes a row of missing cells; otherwise it is left
        out.
    missing_codes
        Numbers that stand for a missing value, by column.

    Raises
    ------
    TableError
        If a file cannot be read.
    """
    # Levels expand into many columns: the size of the expanded batch must be bounded.
    rows = max(1, parquet_reader.BATCH_CELLS // sum(map(matrix_width, columns.values())))
    for file in source.files:
        keys = {name: value for name, value in file.partition_values.items() if name in columns}
        stored = {name: coding for name, coding in columns.items() if name not in keys}
        if not stored:
            raise families.TABLE_COLUMNS(
                "{file}: all declared columns are partition columns.",
                "Declare a column that is in the file itself.",
                file=file.display_name,
            )
        if file.format in COPIED:
            raise wordings.table_not_copied(file.display_name)
        if file.format == "csv":
            batches = csv_reader.cell_batches(file, stored, rows, malformed, keep_malformed)
        else:
            batches = _parquet_batches(file, stored, rows)
        whole = _with_partition_columns(batches, columns, keys) if keys else batches
        yield from _without_codes(whole, columns, missing_codes) if missing_codes else whole


def _without_codes(
    batches: Iterator[NDArray[np.float64]],
    columns: Mapping[str, Coding],
    codes: Mapping[str, Sequence[float]],
) -> Iterator[NDArray[np.float64]]:
    """The batches with NaN in place of every code; a cell decides only about itself."""
    for batch in batches:
        cleared = batch.copy()  # a batch may be a file's own memory
        for row, name in enumerate(columns):
            if name in codes:
                cleared[row, np.isin(batch[row], codes[name])] = np.nan
        yield cleared


def _with_partition_columns(
    batches: Iterator[NDArray[np.float64]],
    columns: Mapping[str, Coding],
    keys: Mapping[str, str | None],
) -> Iterator[NDArray[np.float64]]:
    """All columns in their order; those encoded in folder names have one value for all rows."""
    constants = {name: to_floats(_partition_cell(x), columns[name]) for name, x in keys.items()}
    for batch in batches:
        stored = iter(batch)
        yield np.stack(
            [
                np.broadcast_to(constants[name], batch.shape[1:])
                if name in constants
                else next(stored)
                for name in columns
            ]
        )


def _partition_cell(value: str | None) -> pa.Array:
    """A cell that is the same in all rows; a folder's name may have bytes that are not UTF-8."""
    if value is None:
        return pa.nulls(1, pa.string())
    return pa.array([replace_invalid_utf8(value.encode("utf-8", "surrogateescape")).decode()])


def _parquet_batches(
    file: SourceFile, columns: Mapping[str, Coding], rows: int
) -> Iterator[NDArray[np.float64]]:
    with redact_parser_errors(file.display_name, "Parquet"):
        yield from parquet_reader.cell_batches(file, columns, rows)
