"""Read a table of any format: its columns, batches of cells in bounded memory, number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem
from numpy.typing import NDArray

from gramercy.schemas import families, wordings
from gramercy.schemas.cells import DayCells
from gramercy.schemas.derived import Derivation
from gramercy.tables import batches
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.lines import replace_invalid_utf8
from gramercy.tables.formats.source import Source
from gramercy.tables.formats.table_format import CopiedFormat, SourceFile
from gramercy.tables.formats.values import (
    ANY,
    DOUBLE,
    TRUTH,
    WHOLE,
    Coding,
    DayNumbers,
    DaysAndPeriods,
    coding_of,
)

MIXED, PARTIAL = "of several types", "not in every file"
_MOST_BYTES = 1 << 28  # of files whose rows are counted: some seconds


def partitions(source: Source, min_cells: int) -> list[Source]:
    """Split a table into partitions, in order: files, and row groups of Parquet files.

    Successive row groups of a file are combined until they have `min_cells` cells.
    """
    return [
        replace(source, files=(part,))
        for file in source.files
        for part in file.partitions(min_cells)
    ] or [source]


def cell_batches(
    source: Source,
    columns: Mapping[str, Any],
    malformed: MalformedLines,
    *,
    keep_malformed: bool = False,
    missing_codes: Mapping[str, Sequence[float]] | None = None,
) -> Iterator[NDArray[np.float64]]:
    """Batches of cells, shape (columns, rows); NaN where a cell is missing or not a number.

    Parameters
    ----------
    columns
        Names of the columns to read, and their coding. A column of levels gives the index of each
        cell's level, and the column of persons the index of each row's person; NaN if there is
        none. The coding of a column that is computed from others is a `Derivation`.
    keep_malformed
        Whether a malformed line of a CSV file becomes a row of missing cells; otherwise it is left
        out.
    """
    if any(isinstance(declared, Derivation) for declared in columns.values()):
        yield from _with_derived(source, columns, malformed, keep_malformed, missing_codes or {})
        return
    for file in source.files:
        codings = {name: coding_of(each, file.notation) for name, each in columns.items()}
        # Levels expand into many columns: the size of the expanded batch must be bounded.
        rows = max(1, batches.BATCH_CELLS // sum(coding.width for coding in codings.values()))
        keys = {name: value for name, value in file.partition_values.items() if name in codings}
        stored = {name: coding for name, coding in codings.items() if name not in keys}
        if not stored:
            raise families.TABLE_COLUMNS(
                "{file}: all declared columns are partition columns.",
                "Declare a column that is in the file itself.",
                file=file.display_name,
            )
        read = file.cell_batches(stored, rows, malformed, keep_malformed)
        whole = _with_partition_columns(read, codings, keys) if keys else read
        yield from _without_codes(whole, columns, missing_codes) if missing_codes else whole


def _with_derived(
    source: Source,
    columns: Mapping[str, Any],
    malformed: MalformedLines,
    keep_malformed: bool,
    missing_codes: Mapping[str, Sequence[float]],
) -> Iterator[NDArray[np.float64]]:
    """The batches of a table with columns that are computed in each row from others.

    The others are read once, whether they are in `columns` or not.
    """
    stored: dict[str, Any] = {}
    for name, declared in columns.items():
        if not isinstance(declared, Derivation):
            stored[name] = declared
    days = DayNumbers.of(DayCells(), source.files[0].notation)
    for declared in columns.values():
        for each in declared.inputs if isinstance(declared, Derivation) else ():
            other = stored.setdefault(each.name, each.coding)
            is_date_elsewhere = each.coding == DayCells() and other != each.coding
            if is_date_elsewhere and not isinstance(other, DaysAndPeriods):
                stored[each.name] = DaysAndPeriods(coding_of(other), days)
    codes = {name: missing_codes[name] for name in missing_codes if name in stored}
    width = sum(coding_of(stored.get(name)).width for name in columns)
    rows = max(1, batches.BATCH_CELLS // width)
    for batch in cell_batches(
        source, stored, malformed, keep_malformed=keep_malformed, missing_codes=codes
    ):
        for start in range(0, max(1, batch.shape[1]), rows):
            part = batch[:, start : start + rows]
            cells = dict(zip(stored, part, strict=True))
            inputs = dict(cells)
            for name, coding in stored.items():
                if isinstance(coding, DaysAndPeriods):
                    inputs[name], cells[name] = coding.parts(cells[name])
            whole = np.empty((len(columns), part.shape[1]))
            for k, (name, declared) in enumerate(columns.items()):
                if isinstance(declared, Derivation):
                    whole[k] = declared.apply(*(inputs[each.name] for each in declared.inputs))
                else:
                    whole[k] = cells[name]
            yield whole


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
    constants = {}
    for name, value in keys.items():  # a folder's name may have bytes that are not UTF-8
        data = None if value is None else value.encode("utf-8", "surrogateescape")
        text = None if data is None else replace_invalid_utf8(data).decode()
        constants[name] = columns[name].floats(pa.array([text], pa.string()))
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


def schema_of(source: Source) -> dict[str, str]:
    """Names of a table's columns, in the order of the first file, and their types.

    They come from the header of a CSV file, the schema of a Parquet file, a Delta table or a
    database, and the names of folders such as ``column=value``. Types are those of `column_types`.
    Where files differ: ``double`` if all of them have numbers, ``any`` if one of them states no
    type, else `MIXED`. `PARTIAL` if a file lacks the column.
    """
    types: dict[str, str] = {}
    for index, file in enumerate(source.files):
        stated = column_types(file)
        for name in [*types, *(name for name in stated if name not in types)]:
            if index == 0:
                types[name] = stated[name]
            elif name not in types or name not in stated:
                types[name] = PARTIAL
            else:
                types[name] = _common_type(types[name], stated[name])
    return types


def _common_type(first: str, second: str) -> str:
    if first == second or first in {MIXED, PARTIAL}:
        return first
    if ANY in {first, second}:
        return ANY
    return DOUBLE if {first, second} <= {WHOLE, DOUBLE, TRUTH} else MIXED


def column_types(file: SourceFile) -> dict[str, str]:
    """Names of a file's columns and their types, from its header or schema.

    Types are ``whole`` for integers, ``double`` for other numbers, ``bool`` for truth values,
    ``text`` for any kind of text, ``any`` for the columns of a CSV file, which states no types, and
    otherwise Arrow's own name, or that of the database.
    """
    keys = file.partition_values
    stated = [column for column in file.columns() if column[0] not in keys]
    stated += [(key, ANY) for key in keys]
    positions: dict[str, int] = {}
    for position, (name, _) in enumerate(stated, start=1):
        if name in positions:  # no name in the error: without a header, names are private cells
            raise file.mistaken() or wordings.column_repeated(
                file.display_name, positions[name], position
            )
        positions[name] = position
    return dict(stated)


def count_rows(source: Source) -> int | None:
    """Number of rows that a release would count; None if counting would take long.

    Footers of Parquet files state it. Other files are read, if they are local and small. Malformed
    lines count, as rows without values. None for a table that is copied before its rows are read.
    """
    if any(isinstance(file.format, CopiedFormat) for file in source.files):
        return None
    stated = [file.row_count() for file in source.files]
    pairs = list(zip(source.files, stated, strict=True))
    to_read = [file for file, rows in pairs if rows is None]
    local = isinstance(source.fs, LocalFileSystem)
    if to_read and not (local and sum(int(f.info()["size"]) for f in to_read) <= _MOST_BYTES):
        return None
    return sum(_count(source, file) if rows is None else rows for file, rows in pairs)


def _count(source: Source, file: SourceFile) -> int:
    name = next(name for name in column_types(file) if name not in file.partition_values)
    malformed = MalformedLines()
    read = cell_batches(replace(source, files=(file,)), {name: None}, malformed)
    rows: int = sum(batch.shape[1] for batch in read)
    return rows + malformed.dropped
