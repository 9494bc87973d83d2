"""Where the raw rows lie: the files of a table, in a fixed order."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from fsspec.core import url_to_fs
from fsspec.registry import known_implementations

from gramercy.schemas.errors import TableError
from gramercy.schemas.url import USE_ENVIRONMENT, path_of, user_in_name, without_secrets

# Below this they say the names of files, and those of folders may hold cells.
for _log in map(logging.getLogger, ("fsspec", "s3fs", "gcsfs", "adlfs", "botocore", "aiobotocore")):
    _log.setLevel(max(_log.level, logging.INFO))

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Source:
    """The files of a table, in a fixed order.

    Parameters
    ----------
    fs
        The fsspec file system they lie on.
    files
        Their paths there.
    groups
        Row groups of its one Parquet file that alone are meant; all, if None.
    root
        The folder that was named, if one was: folders in it may be called ``column=value``.
    url
        What was named. Its folders may be shown, and its user, password and query may not.
    """

    # Over HTTP, the path of a file is its whole URL.
    fs: Any = field(repr=False)
    files: tuple[str, ...] = field(repr=False)
    groups: tuple[int, ...] | None = None
    root: str | None = field(default=None, repr=False)
    url: str = field(default="", repr=False)

    @property
    def formats(self) -> set[str | None]:
        """``csv``, ``parquet``, or both."""
        return {format_of(file) for file in self.files}

    def keys(self, file: str) -> dict[str, str | None]:
        """Columns that the folders of a file hold, as Hive and Spark write them."""
        if self.root is None:
            return {}
        folders = PurePosixPath(file).relative_to(self.root).parts[:-1]
        found = (folder.partition("=") for folder in folders if "=" in folder)
        return {
            unquote(name): None if value == _NO_VALUE else unquote(value)
            for name, _, value in found
        }

    def shown(self, file: str) -> str:
        """Its name, for errors: without the values that its folders hold, which are cells.

        Folders that the contract names are shown as they are; the secrets of a URL never.
        """
        *folders, name = without_secrets(file).split("/")
        named = without_secrets(self.url).split("/")
        shown = [
            f"{folder.partition('=')[0]}=*" if "=" in folder and folder not in named else folder
            for folder in folders
        ]
        return "/".join([*shown, name])

    def fingerprint(self) -> str:
        """Digest of names, sizes and modification marks. Private: kept in the ledger alone.

        Raises
        ------
        TableError
            If a file cannot be looked at, naming it.
        """
        marks = hashlib.sha256()
        for file in self.files:
            facts = self.info(file)
            dates = ("mtime", "ETag", "LastModified", "Last-Modified")
            mark = next((facts[k] for k in dates if k in facts), "")
            line = f"{file}\0{facts.get('size')}\0{mark}\n"
            marks.update(line.encode("utf-8", "surrogateescape"))  # a folder may hold any bytes
        return marks.hexdigest()

    def info(self, file: str) -> dict[str, Any]:
        """What the store says of a file; raises as `fingerprint`."""
        reason = ""
        try:
            return dict(self.fs.info(file))
        except Exception as caught:  # drivers quote whole URLs
            reason = type(caught).__name__
        raise TableError(
            f"{self.shown(file)}: cannot be read ({reason}).",
            "Check that the file is there, and that you may read it.",
        )


def open_source(url: str) -> Source:
    """Resolve a path, glob, folder or fsspec URL.

    Of a folder, all CSV and Parquet files in it and below are the table, but for those whose names,
    or whose folders' names, begin with an underscore or a point.

    Raises
    ------
    TableError
        If nothing is there, or it is neither CSV nor Parquet.
    """
    reason, fix = "no such file", "Name CSV or Parquet files (the contract's 'source')."
    root, files = None, []
    try:
        fs, path = url_to_fs(url)
        if user_in_name(url, path):
            reason = f"{url.partition('://')[0]}:// URLs have no user and no password"
            fix = USE_ENVIRONMENT
        # A file may have brackets in its name; only the name of no file is a pattern.
        elif fs.isfile(path):
            files = [path]
        else:
            files = sorted(f for f in fs.glob(path) if fs.isfile(f))
            if not files and fs.isdir(path):
                root, files = path, _below(fs, path)
                reason, fix = "is a folder without CSV or Parquet files", "Name another."
            elif not files and fs.exists(path):  # a pipe or a device, which may never end
                reason, fix = "is no file that can be read twice", "Copy what it gives into one."
    except ImportError:
        reason, fix = "cannot be opened (its driver is not installed)", _driver_of(url)
    except Exception as caught:  # drivers raise whatever their libraries do, and quote whole URLs
        files, reason = [], f"cannot be opened ({type(caught).__name__})"
    if not files:
        raise TableError(f"{without_secrets(url)}: {reason}.", fix)
    source = Source(fs, tuple(files), root=root, url=url)
    for file in files:
        if format_of(file) is None:
            raise TableError(
                f"{source.shown(file)}: is not .csv, .csv.gz or .parquet.",
                "Convert it to one of these.",
            )
    return source


def _driver_of(url: str) -> str:
    """How to get the driver for a URL that lacks one."""
    protocol = url.partition("::")[0].partition("://")[0].lower()
    words = known_implementations.get(protocol, {}).get("err", "")
    return f"{words}. Or copy the files here." if words else "Copy the files here."


def _below(fs: Any, folder: str) -> list[str]:
    """The tables in it, in the order of their names."""
    found = []
    for file in sorted(fs.find(folder)):
        within = PurePosixPath(file).relative_to(folder)
        hidden = any(part.startswith(("_", ".")) for part in within.parts)
        if not hidden and format_of(within.name):
            found.append(file)
    return found


def format_of(name: str) -> str | None:
    """``csv`` or ``parquet``, by the name of a file or its URL; None if it is neither."""
    suffixes = [s.lower() for s in PurePosixPath(path_of(name)).suffixes]
    if suffixes[-1:] in ([".parquet"], [".pq"]):
        return "parquet"
    if suffixes[-1:] == [".csv"] or suffixes[-2:-1] == [".csv"]:
        return "csv"
    return None
