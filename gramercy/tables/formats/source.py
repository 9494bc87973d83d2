"""The files of the private table, in a fixed order."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from fsspec.registry import known_implementations

from gramercy.schemas import families
from gramercy.schemas.database import CopiedTable, DatabaseTable
from gramercy.schemas.errors import TableError
from gramercy.schemas.source import AnySource, CopiedFiles, Files, display_name, location
from gramercy.schemas.url import user_in_name, without_secrets
from gramercy.tables.batches import KeptCells
from gramercy.tables.formats.copies.files import copied_files
from gramercy.tables.formats.source_file import Format, SourceFile, format_of, source_file

# Debug logs quote file names, and names of partition folders are private cells.
for _log in map(logging.getLogger, ("fsspec", "s3fs", "gcsfs", "adlfs", "botocore", "aiobotocore")):
    _log.setLevel(max(_log.level, logging.INFO))


@dataclass(frozen=True)
class Source:
    """The files of a table, in a fixed order.

    Parameters
    ----------
    fs
        The fsspec file system of the files.
    files
        The files.
    url
        The contract's path or URL. Messages may show its folders, but not its user, password and
        query.
    kept
        Where passes in this process keep the cells for the next pass, if there are several.
    """

    fs: Any = field(repr=False)
    files: tuple[SourceFile, ...] = field(repr=False)
    url: str = field(repr=False)
    kept: KeptCells | None = field(default=None, repr=False, compare=False)

    @property
    def formats(self) -> set[Format]:
        """The formats of the files."""
        return {file.format for file in self.files}

    def fingerprint(self) -> str:
        """A digest of names, sizes and modification dates. Private: kept in the ledger only.

        Raises
        ------
        TableError
            If a file cannot be accessed.
        """
        digest = hashlib.sha256()
        for file in self.files:
            facts = file.info()
            dates = ("mtime", "ETag", "LastModified", "Last-Modified")
            date = next((facts[k] for k in dates if k in facts), "")
            line = f"{file.path}\0{facts.get('size')}\0{date}\n"
            digest.update(line.encode("utf-8", "surrogateescape"))  # names may have any bytes
        return digest.hexdigest()


def open_source(source: AnySource) -> Source:
    """Resolve a path, glob, folder or fsspec URL, or name a table of a database.

    A folder stands for all CSV and Parquet files in it and below. A file is skipped if its name, or
    the name of a subfolder around it, starts with an underscore or a dot. The rows of some tables
    can be read only once they are copied; see `needs_copy`.

    Raises
    ------
    TableError
        If the source does not exist, or a file is neither CSV nor Parquet.
    """
    if isinstance(source, DatabaseTable | CopiedFiles) or _is_delta(source):
        return _without_files(source)
    url, written = location(source), source if isinstance(source, Files) else None
    display_url = without_secrets(url)
    error: TableError | None = None
    root, files = None, []
    try:
        fs, path = url_to_fs(url)
        if user_in_name(url, path):
            error = families.SOURCE(
                "{source}: {scheme}:// URLs must not contain a user or a password.",
                "Put credentials into the environment variables or configuration "
                "files of the driver (for S3: AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials).",
                source=display_url,
                scheme=url.partition("://")[0],
            )
        elif fs.isfile(path):  # a file may have brackets in its name: other names are patterns
            files = [path]
        else:
            files = sorted(f for f in fs.glob(path) if fs.isfile(f))
            if not files and fs.isdir(path):
                below = sorted(fs.find(path))
                root, files = path, _tables_below(below, path, written)
                error = (
                    None
                    if files
                    else families.SOURCE(
                        "{source}: this folder has no CSV or Parquet files.",
                        "Name another folder, or make Parquet of its files: 'gramercy "
                        "convert'. Names that start with '_' or '.' are skipped.",
                        source=display_url,
                    )
                )
                error = _versions_in(below, path, display_url) or error
            elif not files and fs.exists(path):  # a pipe or a device, which may never end
                error = families.SOURCE(
                    "{source}: not a regular file, so it cannot be read twice.",
                    "Copy its content into a file.",
                    source=display_url,
                )
            elif not files:
                error = families.SOURCE(
                    "{source}: no such file.",
                    "Correct the path (in a contract: 'source') of the CSV or Parquet "
                    "files. If the table is on another machine, 'gramercy plan "
                    "--no-table' plans without it.",
                    source=display_url,
                )
    except ImportError:
        error = families.SOURCE(
            "{source}: the driver for this kind of URL is not installed.",
            "{remedy}",
            source=display_url,
            remedy=_driver_hint(url),
        )
    except Exception as caught:  # drivers raise any exception, and quote whole URLs
        error = families.SOURCE(
            "{source}: cannot be opened ({reason}).",
            "Check the contract's 'source', the network and your permissions.",
            source=display_url,
            reason=type(caught).__name__,
        )
    if error is not None:
        raise error
    return Source(fs, tuple(source_file(fs, file, url, root, written) for file in files), url)


def _without_files(source: AnySource) -> Source:
    """A private copy, or a table of which only the columns can be read before it is copied."""
    name = display_name(source)
    if isinstance(source, CopiedTable | CopiedFiles):
        return Source(LocalFileSystem(), tuple(copied_files(source.copied_to, name)), name)
    if isinstance(source, DatabaseTable):
        return Source(None, (SourceFile(None, "", "database", name, {}, table=source),), name)
    fs, folder = LocalFileSystem(), _local(location(source))
    return Source(fs, (SourceFile(fs, folder, "delta", name, {}),), location(source))


def needs_copy(source: AnySource) -> bool:
    """Whether a table is copied before its rows are read: of a database, or Delta."""
    if isinstance(source, CopiedTable | CopiedFiles):
        return False
    return isinstance(source, DatabaseTable) or _is_delta(source)


def _is_delta(source: AnySource) -> bool:
    """Whether a source is a Delta table in a folder of this machine."""
    return isinstance(source, str | Files) and os.path.isdir(
        os.path.join(_local(location(source)), "_delta_log")
    )


def _local(url: str) -> str:
    return url.removeprefix("file://").removeprefix("local://")


def _driver_hint(url: str) -> str:
    """How to install the driver for a URL, as fsspec states it."""
    protocol = url.partition("::")[0].partition("://")[0].lower()
    hint = known_implementations.get(protocol, {}).get("err", "")
    return f"{hint}, or copy the files to this machine." if hint else "Copy the files here."


def _versions_in(paths: Sequence[str], folder: str, display_url: str) -> TableError | None:
    kind = _kind_of_versions(paths, folder)
    return (
        families.SOURCE(
            "{source}: the folder is or contains a {kind} table, whose files also hold "
            "earlier versions of its rows.",
            "Name a Delta table on this machine by its own folder. Export the present "
            "version of others as Parquet, such as by pyiceberg's scan().to_arrow() and "
            "pyarrow.parquet.write_table.",
            source=display_url,
            kind=kind,
        )
        if kind
        else None
    )


def _kind_of_versions(paths: Sequence[str], folder: str) -> str:
    """The kind of table that keeps earlier versions of rows in its files; empty if it does not."""
    for path in paths:
        *folders, name = PurePosixPath(path).relative_to(folder).parts
        if "_delta_log" in folders:
            return "Delta"
        if ".hoodie" in folders:
            return "Hudi"
        if "metadata" in folders and name.endswith(".metadata.json"):
            return "Iceberg"
    return ""


def _tables_below(files: Sequence[str], folder: str, written: Files | None) -> list[str]:
    """Paths of the tables in a folder and below, in the order of their names."""
    paths = []
    for path in files:
        relative = PurePosixPath(path).relative_to(folder)
        hidden = any(part.startswith(("_", ".")) for part in relative.parts)
        if not hidden and format_of(relative.name, written) is not None:
            paths.append(path)
    return paths
