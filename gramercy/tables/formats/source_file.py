"""One file of a table: its location, its format, and the name that errors may show."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import unquote

from gramercy.schemas import families, wordings
from gramercy.schemas.column import MISSING
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.source import CsvFormat, Files
from gramercy.schemas.url import path_of, without_secrets
from gramercy.tables.formats.conversion import is_convertible

Format = Literal["csv", "parquet", "delta", "database"]

# Tables of these are copied before their rows are read; see `tables.formats.copies`.
COPIED: frozenset[Format] = frozenset({"delta", "database"})

# Ends of names of text files that are CSV only where the contract states their separator.
_ANY_TEXT = (".tsv", ".tab", ".psv", ".txt", ".dat")

_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

# What to do with files of other formats, by the ends of their names.
_SEPARATORS = "State its separator in the contract: source: {path: ..., separator: ';'}."
_DATABASE = "Name it as a database: source: {url: 'sqlite:///clinic.db', table: visits}."
_EXPORT = "Export the table as CSV or Parquet."
_REMEDIES = {
    **dict.fromkeys(_ANY_TEXT, _SEPARATORS),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), _DATABASE),
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
    csv
        How it is written, if it is CSV.
    table
        The table of a database that it stands for.
    """

    fs: Any = field(repr=False)
    path: str = field(repr=False)
    format: Format
    display_name: str
    partition_values: Mapping[str, str | None] = field(repr=False)
    row_groups: tuple[int, ...] | None = None
    csv: CsvFormat = field(default_factory=CsvFormat)
    table: DatabaseTable | None = field(default=None, repr=False)

    def info(self) -> dict[str, Any]:
        """What the store reports about the file, such as its size and date.

        Raises
        ------
        TableError
            If the file cannot be accessed.
        """
        reason = ""
        if self.table is not None:
            raise wordings.table_not_copied(self.display_name)
        try:
            return dict(self.fs.info(self.path))
        except Exception as caught:  # drivers quote whole URLs
            reason = type(caught).__name__
        raise wordings.file_not_accessible(self.display_name, reason)


def source_file(
    fs: Any, path: str, url: str, root: str | None = None, written: Files | None = None
) -> SourceFile:
    """A file of a table.

    Parameters
    ----------
    fs, path
        See `SourceFile`.
    url
        The contract's source.
    root
        The source's path if it is a folder: folders below it may be named ``column=value``.
    written
        How CSV is written, if the contract states it.

    Raises
    ------
    TableError
        If the file has another format.
    """
    display_name, file_format = _display_name(path, url), format_of(path, written)
    if file_format is None:
        raise families.SOURCE(
            "{file}: not a .csv, .csv.gz or .parquet file.",
            "{remedy}",
            file=display_name,
            remedy=_remedy(path_of(path), display_name),
        )
    partition_values = {} if root is None else _partition_values(path, root)
    csv = CsvFormat() if written is None else written.csv
    return SourceFile(fs, path, file_format, display_name, partition_values, csv=csv)


def _remedy(path: str, display_name: str) -> str:
    """How a file of another format becomes one that is read."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _REMEDIES or not is_convertible(path):
        return _REMEDIES.get(suffix, _EXPORT)
    is_url = "://" in display_name
    file = PurePosixPath(PurePosixPath(display_name).name if is_url else display_name)
    target = file.with_name(file.name.partition(".")[0] + ".parquet")
    command = f"gramercy convert {shlex.quote(str(file))} {shlex.quote(str(target))}"
    return f"{'Download it, and then: ' if is_url else ''}{command}"


def format_of(name: str, written: Files | None = None) -> Format | None:
    """The format, from the name of a file or its URL; None if it is not a table.

    Parameters
    ----------
    name
        The name or URL.
    written
        If it states a separator, text files with other names are CSV as well.
    """
    suffixes = [s.lower() for s in PurePosixPath(path_of(name)).suffixes]
    if suffixes[-1:] in ([".parquet"], [".pq"]):
        return "parquet"
    text = (".csv", *_ANY_TEXT) if written is not None and written.is_any_text else (".csv",)
    return "csv" if any(suffix in text for suffix in suffixes[-2:]) else None


def _partition_values(path: str, root: str) -> dict[str, str | None]:
    folders = PurePosixPath(path).relative_to(root).parts[:-1]
    pairs = (folder.partition("=") for folder in folders if "=" in folder)
    missing = {_NULL_PARTITION, *MISSING}
    cells = {unquote(name): unquote(value) for name, _, value in pairs}
    return {name: None if value in missing else value for name, value in cells.items()}


def _display_name(path: str, url: str) -> str:
    *folders, name = without_secrets(path).split("/")
    in_contract = without_secrets(url).split("/")
    display_folders = [
        f"{folder.partition('=')[0]}=*" if "=" in folder and folder not in in_contract else folder
        for folder in folders
    ]
    return "/".join([*display_folders, name])
