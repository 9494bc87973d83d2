"""The number of rows of a table, where it is quickly counted."""

from __future__ import annotations

from dataclasses import replace

from fsspec.implementations.local import LocalFileSystem

from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.column_types import column_types
from gramercy.tables.formats.parquet_reader import open_parquet
from gramercy.tables.formats.parse_errors import redact_parser_errors
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import Source
from gramercy.tables.formats.source_file import COPIED, SourceFile

_MOST_BYTES = 1 << 28  # some seconds


def count_rows(source: Source) -> int | None:
    """Number of rows that a release would read; None if counting would take long.

    Footers of Parquet files state it. Other files are read, if they are local and small. Malformed
    lines do not count. None for a table that is copied before its rows are read.

    Raises
    ------
    TableError
        If a file cannot be read.
    """
    if not source.formats.isdisjoint(COPIED):
        return None
    counted = [file for file in source.files if file.format != "parquet"]
    local = isinstance(source.fs, LocalFileSystem)
    if counted and not (local and _bytes(counted) <= _MOST_BYTES):
        return None
    return sum(_stated(f) if f.format == "parquet" else _count(source, f) for f in source.files)


def _bytes(files: list[SourceFile]) -> int:
    return sum(int(file.info()["size"]) for file in files)


def _stated(file: SourceFile) -> int:
    with (
        redact_parser_errors(file.display_name, "Parquet"),
        open_parquet(file) as table,
    ):
        return int(table.metadata.num_rows)


def _count(source: Source, file: SourceFile) -> int:
    name = next(name for name in column_types(file) if name not in file.partition_values)
    batches = cell_batches(replace(source, files=(file,)), {name: None}, MalformedLines())
    return sum(batch.shape[1] for batch in batches)
