"""Where the raw rows lie: the files of a table, in a fixed order."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from fsspec.core import url_to_fs

from schemas.errors import TableError

# Below this they say the names of files, and those of folders may hold cells.
for _log in map(logging.getLogger, ("fsspec", "s3fs", "gcsfs", "adlfs")):
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
        What was named; its parts may be told.
    """

    fs: Any
    files: tuple[str, ...]
    groups: tuple[int, ...] | None = None
    root: str | None = None
    url: str = ""

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

        What the contract itself says is no secret.
        """
        path, named = PurePosixPath(file), PurePosixPath(self.url).parts
        told = [
            f"{folder.partition('=')[0]}=*" if "=" in folder and folder not in named else folder
            for folder in path.parts[:-1]
        ]
        return str(PurePosixPath(*told, path.name))

    def fingerprint(self) -> str:
        """Digest of names, sizes and modification marks. Private: kept in the ledger alone."""
        marks = hashlib.sha256()
        for file in self.files:
            facts = self.fs.info(file)
            mark = next((facts[k] for k in ("mtime", "ETag", "LastModified") if k in facts), "")
            marks.update(f"{file}\0{facts.get('size')}\0{mark}\n".encode())
        return marks.hexdigest()


def open_source(url: str) -> Source:
    """Resolve a path, glob, folder or fsspec URL.

    Of a folder, all CSV and Parquet files in it and below are the table, but for those whose names,
    or whose folders' names, begin with an underscore or a point.

    Raises
    ------
    TableError
        If nothing is there, or it is neither CSV nor Parquet.
    """
    reason, mend = "no such file", "Name CSV or Parquet files (the contract's 'source')."
    root = None
    try:
        fs, path = url_to_fs(url)
        # A file may have brackets in its name; only what is none is a pattern.
        files = [path] if fs.isfile(path) else sorted(f for f in fs.glob(path) if fs.isfile(f))
        if not files and fs.isdir(path):
            root, files = path, _below(fs, path)
            reason, mend = "is a folder without CSV or Parquet files", "Name another."
        elif not files and fs.exists(path):  # a pipe or a device, which may never end
            reason, mend = "is no file that can be read twice", "Copy what it gives into one."
    except ImportError as caught:  # fsspec names the package, and no data are read yet
        files, reason = [], f"cannot be opened ({caught})"
        mend = "Install the package that reads this kind of URL, or copy the files here."
    except (OSError, ValueError) as caught:
        files, reason = [], f"cannot be opened ({type(caught).__name__})"
    if not files:
        raise TableError(f"{url}: {reason}.", mend)
    source = Source(fs, tuple(files), root=root, url=url)
    for file in files:
        if format_of(file) is None:
            raise TableError(
                f"{source.shown(file)}: is not .csv, .csv.gz or .parquet.",
                "Convert it to one of these.",
            )
    return source


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
    """``csv`` or ``parquet``, by the name of a file; None if it is neither."""
    suffixes = [s.lower() for s in PurePosixPath(name).suffixes]
    if suffixes[-1:] in ([".parquet"], [".pq"]):
        return "parquet"
    if suffixes[-1:] == [".csv"] or suffixes[-2:-1] == [".csv"]:
        return "csv"
    return None
