"""All formats of tables: the first that recognises a file or a source reads it."""

from __future__ import annotations

from pathlib import PurePosixPath

from gramercy.schemas.source import AnySource
from gramercy.schemas.url import path_of
from gramercy.tables.formats.csv_format import CsvTables
from gramercy.tables.formats.database_format import DatabaseTables
from gramercy.tables.formats.delta_format import DeltaTables
from gramercy.tables.formats.parquet_format import ParquetTables
from gramercy.tables.formats.table_format import CopiedFormat, SourceFile, TableFormat

FORMATS: tuple[TableFormat, ...] = (ParquetTables(), CsvTables(), DeltaTables(), DatabaseTables())


def format_of(name: str, source: AnySource | None = None) -> TableFormat | None:
    """The format, from the name of a file or its URL; None if it is not a table.

    Where the source in the contract states a separator, text files with other names are CSV.
    """
    suffixes = [suffix.lower() for suffix in PurePosixPath(path_of(name)).suffixes]
    return next((each for each in FORMATS if each.recognises(suffixes, source)), None)


def table_to_copy(source: AnySource) -> SourceFile | None:
    """The table of a source as one file, if it is copied before its rows are read."""
    copied = (each for each in FORMATS if isinstance(each, CopiedFormat))
    return next((file for each in copied if (file := each.table_of(source)) is not None), None)
