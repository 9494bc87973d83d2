"""One file of a table: where it is, its format, and what may be said of it in public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import unquote

from gramercy.schemas.errors import TableError
from gramercy.schemas.url import path_of, without_secrets

Format = Literal["csv", "parquet"]

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class SourceFile:
    """A file, as all who read it need it.

    Parameters
    ----------
    fs
        The fsspec file system it lies on.
    path
        Its path there; over HTTP its whole URL.
    format
        By its name.
    shown
        Its name, for errors: without the values that its folders hold, which are cells, and
        without the secrets of a URL. Folders that the contract names are shown as they are.
    keys
        Columns that its folders hold, as Hive and Spark write them.
    groups
        Row groups of a Parquet file that alone are meant; all, if None.
    """

    fs: Any = field(repr=False)
    path: str = field(repr=False)
    format: Format
    shown: str
    keys: Mapping[str, str | None] = field(repr=False)
    groups: tuple[int, ...] | None = None

    def info(self) -> dict[str, Any]:
        """What the store says of the file.

        Raises
        ------
        TableError
            If it cannot be looked at.
        """
        reason = ""
        try:
            return dict(self.fs.info(self.path))
        except Exception as caught:  # drivers quote whole URLs
            reason = type(caught).__name__
        raise TableError(
            f"{self.shown}: cannot be read ({reason}).",
            "Check that the file is there, and that you may read it.",
        )


def source_file(fs: Any, path: str, url: str, root: str | None = None) -> SourceFile:
    """A file of a table.

    Parameters
    ----------
    fs, path
        See `SourceFile`.
    url
        What the contract names.
    root
        The folder that it names, if it is one: folders in it may be called ``column=value``.

    Raises
    ------
    TableError
        If it is neither CSV nor Parquet.
    """
    shown, kind = _shown(path, url), format_of(path)
    if kind is None:
        raise TableError(
            f"{shown}: is not .csv, .csv.gz or .parquet.", "Convert it to one of these."
        )
    return SourceFile(fs, path, kind, shown, {} if root is None else _keys(path, root))


def format_of(name: str) -> Format | None:
    """The format, by the name of a file or its URL; None if it is neither CSV nor Parquet."""
    suffixes = [s.lower() for s in PurePosixPath(path_of(name)).suffixes]
    if suffixes[-1:] in ([".parquet"], [".pq"]):
        return "parquet"
    if suffixes[-1:] == [".csv"] or suffixes[-2:-1] == [".csv"]:
        return "csv"
    return None


def _keys(path: str, root: str) -> dict[str, str | None]:
    folders = PurePosixPath(path).relative_to(root).parts[:-1]
    found = (folder.partition("=") for folder in folders if "=" in folder)
    return {
        unquote(name): None if value == _NO_VALUE else unquote(value) for name, _, value in found
    }


def _shown(path: str, url: str) -> str:
    *folders, name = without_secrets(path).split("/")
    named = without_secrets(url).split("/")
    shown = [
        f"{folder.partition('=')[0]}=*" if "=" in folder and folder not in named else folder
        for folder in folders
    ]
    return "/".join([*shown, name])
