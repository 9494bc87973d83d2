"""One file of a table: its location, its format, and the name that errors may show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import unquote

from gramercy.schemas.problems.table import file_not_accessible, unknown_format
from gramercy.schemas.url import path_of, without_secrets

Format = Literal["csv", "parquet"]

_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

# How to convert files of other formats, by the ends of their names.
_SPREADSHEET = "Save the sheet as 'CSV UTF-8 (comma delimited)'."
_SEPARATORS = "Save it with commas between fields, under a name that ends in .csv."
_EXPORT = "Export the table as CSV or Parquet."
_READERS = {
    "read_feather('...')": (".feather", ".arrow", ".ipc"),
    "read_json('...')": (".json",),
    "read_json('...', lines=True)": (".jsonl", ".ndjson"),
    "read_orc('...')": (".orc",),
    "read_sas('...')": (".sas7bdat", ".xpt"),
    "read_spss('...')": (".sav", ".zsav", ".por"),
    "read_stata('...')": (".dta",),
    "read_hdf('...')": (".h5", ".hdf", ".hdf5"),
}
_CONVERSIONS = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), _SPREADSHEET),
    **dict.fromkeys((".tsv", ".tab", ".psv", ".txt", ".dat"), _SEPARATORS),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3", ".duckdb", ".mdb", ".accdb"), _EXPORT),
    **{
        suffix: f"In Python: pandas.{reader}.to_parquet('table.parquet')."
        for reader, suffixes in _READERS.items()
        for suffix in suffixes
    },
}


@dataclass(frozen=True)
class SourceFile:
    """A file of a table.

    Parameters
    ----------
    fs
        Its fsspec file system.
    path
        Its path on that file system; over HTTP, its whole URL.
    format
        Format, which follows from the name of the file.
    display_name
        Its name in errors, without private values: values of partition folders are cells, and URLs
        may hold secrets. Folders that the contract itself names are shown as they are.
    partition_values
        Values of the columns that are encoded in the names of its folders, as by Hive and Spark.
    row_groups
        The row groups of a Parquet file to read; None for all.
    """

    fs: Any = field(repr=False)
    path: str = field(repr=False)
    format: Format
    display_name: str
    partition_values: Mapping[str, str | None] = field(repr=False)
    row_groups: tuple[int, ...] | None = None

    def info(self) -> dict[str, Any]:
        """What the store reports about the file, such as its size and date.

        Raises
        ------
        TableError
            If the file cannot be accessed.
        """
        reason = ""
        try:
            return dict(self.fs.info(self.path))
        except Exception as caught:  # drivers quote whole URLs
            reason = type(caught).__name__
        raise file_not_accessible(self.display_name, reason)


def source_file(fs: Any, path: str, url: str, root: str | None = None) -> SourceFile:
    """A file of a table.

    Parameters
    ----------
    fs, path
        See `SourceFile`.
    url
        The contract's source.
    root
        The source's path if it is a folder: folders below it may be named ``column=value``.

    Raises
    ------
    TableError
        If the file is neither CSV nor Parquet.
    """
    display_name, file_format = _display_name(path, url), format_of(path)
    if file_format is None:
        suffix = PurePosixPath(path_of(path)).suffix.lower()
        raise unknown_format(display_name, _CONVERSIONS.get(suffix, _EXPORT))
    partition_values = {} if root is None else _partition_values(path, root)
    return SourceFile(fs, path, file_format, display_name, partition_values)


def format_of(name: str) -> Format | None:
    """The format, from the name of a file or its URL; None if it is neither CSV nor Parquet."""
    suffixes = [s.lower() for s in PurePosixPath(path_of(name)).suffixes]
    if suffixes[-1:] in ([".parquet"], [".pq"]):
        return "parquet"
    if suffixes[-1:] == [".csv"] or suffixes[-2:-1] == [".csv"]:
        return "csv"
    return None


def _partition_values(path: str, root: str) -> dict[str, str | None]:
    folders = PurePosixPath(path).relative_to(root).parts[:-1]
    pairs = (folder.partition("=") for folder in folders if "=" in folder)
    return {
        unquote(name): None if value == _NULL_PARTITION else unquote(value)
        for name, _, value in pairs
    }


def _display_name(path: str, url: str) -> str:
    *folders, name = without_secrets(path).split("/")
    in_contract = without_secrets(url).split("/")
    display_folders = [
        f"{folder.partition('=')[0]}=*" if "=" in folder and folder not in in_contract else folder
        for folder in folders
    ]
    return "/".join([*display_folders, name])
