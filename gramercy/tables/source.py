"""Where the raw rows lie: the files of a table, in a fixed order."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from fsspec.core import url_to_fs
from fsspec.registry import known_implementations

from gramercy.schemas.errors import TableError
from gramercy.schemas.url import USE_ENVIRONMENT, user_in_name, without_secrets
from gramercy.tables.source_file import Format, SourceFile, format_of, source_file

# Below this they say the names of files, and those of folders may hold cells.
for _log in map(logging.getLogger, ("fsspec", "s3fs", "gcsfs", "adlfs", "botocore", "aiobotocore")):
    _log.setLevel(max(_log.level, logging.INFO))


@dataclass(frozen=True)
class Source:
    """The files of a table, in a fixed order.

    Parameters
    ----------
    fs
        The fsspec file system they lie on.
    files
        Each of them.
    url
        What the contract names. Its folders may be shown; its user, password and query may not.
    """

    fs: Any = field(repr=False)
    files: tuple[SourceFile, ...] = field(repr=False)
    url: str = field(repr=False)

    @property
    def formats(self) -> set[Format]:
        """``csv``, ``parquet``, or both."""
        return {file.format for file in self.files}

    def fingerprint(self) -> str:
        """Digest of names, sizes and modification marks. Private: kept in the ledger alone.

        Raises
        ------
        TableError
            If a file cannot be looked at, naming it.
        """
        marks = hashlib.sha256()
        for file in self.files:
            facts = file.info()
            dates = ("mtime", "ETag", "LastModified", "Last-Modified")
            mark = next((facts[k] for k in dates if k in facts), "")
            line = f"{file.path}\0{facts.get('size')}\0{mark}\n"
            marks.update(line.encode("utf-8", "surrogateescape"))  # a folder may hold any bytes
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
    return Source(fs, tuple(source_file(fs, file, url, root) for file in files), url)


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
