"""Read CSV and Parquet as batches of cells in bounded memory.

Errors name the file and the column, and never repeat what a parser said: parsers quote values.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from gramercy.schemas.contract import MISSING
from gramercy.schemas.errors import GramercyError, TableError
from gramercy.schemas.url import path_of
from gramercy.tables import parquet
from gramercy.tables.lines import BLOCK, RecordLines, is_record, valid_utf8
from gramercy.tables.parquet_guard.thrift import TooHeavyError
from gramercy.tables.source import Source, format_of
from gramercy.tables.unpacking import UnpackError, Xz, zipped
from gramercy.tables.values import Reading, converted, width


@dataclass
class Malformed:
    """CSV lines that are no record of the header's width. For the steward alone.

    Parameters
    ----------
    rows
        Those that were left out.
    in_place
        Those that stand where they stood, as rows of missing cells.
    """

    rows: int = 0
    in_place: int = 0

    def __add__(self, other: Malformed) -> Malformed:
        """Those of both."""
        return Malformed(self.rows + other.rows, self.in_place + other.in_place)


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
        alone = replace(source, files=(file,))
        if format_of(file) == "csv":
            found.append(alone)
            continue
        with _parsing(source.shown(file), "Parquet"), parquet.opened(source.fs, file) as (_, table):
            known = table.metadata
            sizes = [known.row_group(k).num_rows for k in range(known.num_row_groups)]
            wide = known.num_columns
        groups: list[int] = []
        for k in range(len(sizes)):
            groups.append(k)
            if sum(sizes[j] for j in groups) * wide >= cells_each or k == len(sizes) - 1:
                found.append(replace(alone, groups=tuple(groups)))
                groups = []
    return found or [source]


def column_types(source: Source, file: str) -> dict[str, str]:
    """Names of a file's columns and the type of each, as its header or schema states them.

    ``whole`` stands for integers, ``double`` for every other numeric type, ``text`` for every kind
    of text, ``any`` for the columns of a CSV, which states no types; else it is Arrow's own name of
    the type.

    Raises
    ------
    TableError
        If the file cannot be read, is empty, or names a column twice.
    """
    if format_of(file) == "csv":
        stated = [(name, "any") for name in _csv_header(source, file)]
    else:
        with _parsing(source.shown(file), "Parquet"), parquet.opened(source.fs, file) as (_, table):
            stated = [(field.name, _kind(field.type)) for field in table.schema_arrow]
    keys = source.keys(file)
    stated = [each for each in stated if each[0] not in keys] + [(key, "any") for key in keys]
    where: dict[str, int] = {}
    for at, (name, _) in enumerate(stated, start=1):
        if name in where:  # told by place: what stands in a header that is none may be private
            raise TableError(
                f"{source.shown(file)}: columns {where[name]} and {at} have the same name.",
                "Rename one of them.",
            )
        where[name] = at
    return dict(stated)


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
        keys = {name: value for name, value in source.keys(file).items() if name in columns}
        inside = {name: reading for name, reading in columns.items() if name not in keys}
        if not inside:
            raise TableError(
                f"{source.shown(file)}: all declared columns are names of folders.",
                "Declare one of its own.",
            )
        if format_of(file) == "csv":
            batches = _csv_cells(source, file, inside, rows, malformed, in_place)
        else:
            batches = _parquet_cells(source, file, inside, rows)
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
    source: Source, file: str, columns: Mapping[str, Reading], rows: int
) -> Iterator[NDArray[np.float64]]:
    shown = source.shown(file)
    with _parsing(shown, "Parquet"):
        for batch in parquet.cells(source.fs, file, columns, rows, source.groups, shown):
            for start in range(0, batch.shape[1], rows):
                yield batch[:, start : start + rows]


@contextmanager
def _csv_stream(source: Source, file: str) -> Iterator[IO[bytes]]:
    packing = fsspec.utils.infer_compression(path_of(file))
    here = {"xz": _unxz, "lzma": _unxz, "zip": zipped}
    if packing not in here:
        with fsspec.core.OpenFile(source.fs, file, mode="rb", compression=packing) as stream:
            yield stream
        return
    with source.fs.open(file, "rb") as packed, here[packing](packed) as stream:
        yield stream


def _unxz(packed: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(Xz(packed), BLOCK)


def _csv_header(source: Source, file: str) -> list[str]:
    names: list[str] = []
    shown = source.shown(file)
    with _parsing(shown, "CSV"), _csv_stream(source, file) as stream:
        line = stream.readline(BLOCK + 1)
        # What is dropped as a line would leave the header to somebody's row.
        if len(line) > BLOCK and not line.endswith(b"\n"):
            raise TableError(
                f"{shown}: its header is longer than {BLOCK >> 20} MiB.",
                "Leave out columns, or write Parquet; and end lines with a newline.",
            )
        try:
            header = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise TableError(
                f"{shown}: the header is not UTF-8.",
                "Save it as UTF-8 text; compressed files and Parquet need their own endings.",
            ) from None
        if header.strip() and not is_record(line.removesuffix(b"\n").removesuffix(b"\r")):
            raise TableError(
                f"{shown}: its header is no single line of fields.",
                "Close its quotes, and end lines with a newline.",
            )
        names = next(csv.reader(io.StringIO(header)), [])
    if not any(names):
        raise TableError(
            f"{shown}: is empty, or begins so.", "The first line must name the columns."
        )
    return names


def _csv_cells(
    source: Source,
    file: str,
    columns: Mapping[str, Reading],
    rows: int,
    malformed: Malformed,
    in_place: bool,
) -> Iterator[NDArray[np.float64]]:
    def broken(lines: int) -> None:
        malformed.rows += 0 if in_place else lines
        malformed.in_place += lines if in_place else 0

    def skip(_: Any) -> str:
        malformed.rows += 1
        return "error" if in_place else "skip"

    fields, names = len(_csv_header(source, file)) if in_place else None, list(columns)
    with _parsing(source.shown(file), "CSV"), _csv_stream(source, file) as stream:
        batches = pacsv.open_csv(
            pa.PythonFile(RecordLines(stream, broken, fields), mode="r"),
            read_options=pacsv.ReadOptions(block_size=2 * BLOCK, use_threads=False),
            parse_options=pacsv.ParseOptions(invalid_row_handler=skip),
            convert_options=pacsv.ConvertOptions(
                check_utf8=False,
                include_columns=names,
                column_types=dict.fromkeys(names, pa.string()),
                null_values=MISSING,
                strings_can_be_null=True,
            ),
        )
        for batch in batches:
            for start in range(0, batch.num_rows, rows):
                each = zip(batch.slice(start, rows).columns, columns.values(), strict=True)
                yield np.stack([converted(column, levels) for column, levels in each])


_PACKED = {
    "CSV": "Pack one CSV file alone, with gzip, bzip2, zip or xz up to -9.",
    "Parquet": "Write it anew, compressed by zstd.",
}


@contextmanager
def _parsing(shown: str, kind: str) -> Iterator[None]:
    """Turn a parser's error, which may quote the data, into one that names the file alone."""
    try:
        yield
    except (GramercyError, GeneratorExit):
        raise
    except PermissionError:
        failure = TableError(
            f"{shown}: cannot be opened.", "Give yourself the permission to read it."
        )
    except TooHeavyError:
        failure = TableError(
            f"{shown}: says more of itself than fits into memory.",
            "Write it anew, in fewer and larger row groups.",
        )
    except UnpackError:
        failure = TableError(f"{shown}: is not packed in a way that is read.", _PACKED[kind])
    except Exception:
        failure = TableError(f"{shown}: cannot be read as {kind}.", "Write the file anew.")
    else:
        return
    raise failure from None  # the error that is being handled may quote data and URLs


def _kind(kind: pa.DataType) -> str:
    """``whole`` or ``double`` where values are numbers, ``text``, ``any``, else Arrow's own name.

    The outer name alone: what is inside a struct may be named after somebody's cell. A column
    without a type (all of it missing) passes as any, or what is in the cells would refuse.
    """
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    numeric = (
        pa.types.is_floating(inner) or pa.types.is_decimal(inner) or pa.types.is_boolean(inner)
    )
    text = (
        pa.types.is_string(inner)
        or pa.types.is_large_string(inner)
        or pa.types.is_string_view(inner)
    )
    if pa.types.is_null(inner):
        return "any"
    if pa.types.is_integer(inner):
        return "whole"
    return "double" if numeric else "text" if text else re.split(r"[<\[]", str(kind))[0]
