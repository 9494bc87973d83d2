"""The files of the private table, in a fixed order: found, named, and compared after the last read.

The privacy proofs are about one table. A row that moves between two reads could count twice without
changing the number of rows, so the store's facts about the files are compared before any noise is
drawn.
"""

from __future__ import annotations

import contextlib
import datetime
import difflib
import glob
import hashlib
import json
import logging
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, cast
from urllib.parse import unquote

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from fsspec.registry import known_implementations

from gramercy.schemas import families, wordings
from gramercy.schemas.column import MISSING
from gramercy.schemas.database import CopiedTable, DatabaseTable
from gramercy.schemas.errors import TableError
from gramercy.schemas.model import nfc
from gramercy.schemas.periods import (
    SelectedPeriod,
    first_day_in_name,
    glob_of_any_period,
    label_of,
    span_of,
    with_period,
)
from gramercy.schemas.source import (
    AnySource,
    Copied,
    CopiedFiles,
    DatedFiles,
    Files,
    display_name,
    keys_of,
    location,
)
from gramercy.schemas.steps import StepDays, StepSpan
from gramercy.schemas.url import path_of, user_in_name, without_secrets
from gramercy.tables.batches import KeptCells
from gramercy.tables.formats import csv_format
from gramercy.tables.formats.conversion import is_convertible
from gramercy.tables.formats.csv_format import ANY_TEXT, CsvTables
from gramercy.tables.formats.lines import FaultyLines
from gramercy.tables.formats.private_copy import copied_files
from gramercy.tables.formats.registry import format_of, table_to_copy
from gramercy.tables.formats.table_format import CopiedColumns, SourceFile

# Debug logs quote file names, and names of partition folders are private cells.
for _log in map(logging.getLogger, ("fsspec", "s3fs", "gcsfs", "adlfs", "botocore", "aiobotocore")):
    _log.setLevel(max(_log.level, logging.INFO))


_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

# What to do with files of other formats, by the ends of their names.
_SEPARATORS = (
    "State its separator in the contract: source: {path: PATH, separator: ';'}, where PATH is the "
    'present source; tabs are "\\t".'
)
_DATABASE = "Name it as a database: source: {url: 'sqlite:///clinic.db', table: visits}."
_EXPORT = "Export the table as CSV or Parquet."
_REMEDIES = {
    **dict.fromkeys(ANY_TEXT, _SEPARATORS),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), _DATABASE),
}


@dataclass(frozen=True)
class Source:
    """The files of a table, in a fixed order."""

    fs: Any = field(repr=False)  # the fsspec file system of the files
    files: tuple[SourceFile, ...] = field(repr=False)  # the files
    # The contract's path or URL. Messages may show its folders, but not its user, password and
    # query.
    url: str = field(repr=False)
    # where passes in this process keep the cells for the next pass, if there are several
    kept: KeptCells | None = field(default=None, repr=False, compare=False)

    @property
    def states_names(self) -> bool:
        """Whether all files state the names of columns: none of them can be a cell."""
        return all(file.format.states_names for file in self.files)

    @property
    def states_types(self) -> bool:
        """Whether all files state the types of columns."""
        return all(file.format.states_types for file in self.files)

    @property
    def keeps_cells_apart(self) -> bool:
        """Whether no cell can change how another one is read, in any file."""
        return all(file.format.keeps_cells_apart for file in self.files)

    def fingerprint(self) -> str:
        """A digest of names, sizes and modification dates. Private: kept in the ledger only."""
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
    """
    if isinstance(source, Copied):
        return Source(LocalFileSystem(), tuple(copied_files(source)), display_name(source))
    if isinstance(source, DatedFiles):
        return _dated_files(source)
    table = table_to_copy(source)
    if table is not None:  # only its columns can be read
        return Source(table.fs, (table,), location(source))
    return _found_files(source)


def _found_files(source: AnySource) -> Source:
    return _of_driver(source, lambda: _find_files(source))


T = TypeVar("T")


def _of_driver(source: AnySource, ask: Callable[[], T]) -> T:
    """The answer of a driver; its own errors, which quote whole URLs, are replaced."""
    url = location(source)
    display_url = without_secrets(url)
    try:
        return ask()
    except TableError as caught:
        error = caught
    except ImportError:
        protocol = url.partition("::")[0].partition("://")[0].lower()
        hint = known_implementations.get(protocol, {}).get("err", "")  # how to install the driver
        error = families.SOURCE(
            "{source}: the driver for this kind of URL is not installed.",
            "{remedy}",
            source=display_url,
            remedy=f"{hint}, or copy the files to this machine."
            if hint
            else "Copy the files here.",
        )
    except Exception as caught:  # drivers raise any exception, and quote whole URLs
        error = families.SOURCE(
            "{source}: cannot be opened ({reason}).",
            "Check the contract's 'source', the network and your permissions.",
            source=display_url,
            reason=type(caught).__name__,
        )
    raise error


def _find_files(source: AnySource) -> Source:
    url = location(source)
    display_url = without_secrets(url)
    fs, path = url_to_fs(url)
    root = None
    if user_in_name(url, path):
        raise families.SOURCE(
            "{source}: {scheme}:// URLs must not contain a user or a password.",
            "Put credentials into the environment variables or configuration "
            "files of the driver (for S3: AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials).",
            source=display_url,
            scheme=url.partition("://")[0],
        )
    if fs.isfile(path):  # a file may have brackets in its name: other names are patterns
        files = [path]
    else:
        files = sorted(f for f in fs.glob(path) if fs.isfile(f))
        if not files and fs.isdir(path):
            root = path
            below = {f: PurePosixPath(f).relative_to(path) for f in sorted(fs.find(path))}
            files = [
                file
                for file, relative in below.items()
                if not any(part.startswith(("_", ".")) for part in relative.parts)
                and format_of(relative.name, source) is not None
            ]
            if kind := _kind_of_versions(below.values()):
                raise families.SOURCE(
                    "{source}: the folder is or contains a {kind} table, whose files also "
                    "hold earlier versions of its rows.",
                    "Name a Delta table on this machine by its own folder. Export the present "
                    "version of others as Parquet, such as by pyiceberg's scan().to_arrow() "
                    "and pyarrow.parquet.write_table.",
                    source=display_url,
                    kind=kind,
                )
            if not files:
                raise families.SOURCE(
                    "{source}: this folder has no CSV or Parquet files.",
                    "Name another folder, or make Parquet of its files: 'gramercy "
                    "convert'. Names that start with '_' or '.' are skipped.",
                    source=display_url,
                )
        elif not files and fs.exists(path):  # a pipe or a device, which may never end
            raise families.SOURCE(
                "{source}: not a regular file, so it cannot be read twice.",
                "Copy its content into a file.",
                source=display_url,
            )
        elif not files:
            raise _no_such_file(display_url)
    return Source(fs, tuple(source_file(fs, file, source, root) for file in files), url)


def _no_such_file(source: str) -> TableError:
    """The error, which says how far a path of this machine leads."""
    remedy = (
        "Correct the path (in a contract: 'source') of the CSV or Parquet files. If the table is "
        "on another machine, 'gramercy plan --no-table' plans without it."
    )
    path = Path(source)
    if "\\" in source:
        remedy = (
            "The parts of a path are separated by '/' here, such as data/table.csv; a path of a "
            "Windows machine such as C:\\data leads nowhere on this one. " + remedy
        )
    elif "://" not in source and path.is_absolute():
        folder, missing = path.parent, path.name
        while not folder.exists():
            folder, missing = folder.parent, folder.name
        if not os.access(folder, os.R_OK | os.X_OK):
            remedy = f"You may not read the folder {folder}: ask for permission. {remedy}"
        elif similar := difflib.get_close_matches(missing, os.listdir(folder), n=1):
            remedy = f"Did you mean {folder / similar[0]}? {remedy}"
        else:
            remedy = f"The folder {folder} has nothing that is named {missing}. {remedy}"
    return families.SOURCE("{source}: no such file.", "{remedy}", source=source, remedy=remedy)


def faulty_lines(source: Source) -> dict[str, list[FaultyLines]]:
    """The lines that are not rows, of the CSV files that have some. Private."""
    found = {}
    for file in source.files:
        if isinstance(file.format, CsvTables):
            with file.redacted_errors():
                found[file.display_name] = csv_format.faulty_lines(file)
    return {name: lines for name, lines in found.items() if lines}


def _dated_files(source: DatedFiles) -> Source:
    """The files of several periods, each with the first day of its own as the date of its rows."""
    pattern, chosen = source.path, source.period
    span = span_of(pattern)
    if span is None:
        raise ValueError
    found = {label_of(span, day): day for day in _of_driver(source, lambda: _days_found(source))}
    if chosen is not None:
        first, *others = chosen.days or (datetime.date.max, datetime.date.max)
        found = {label: day for label, day in found.items() if first <= day < others[-1]}
        _check_steps_have_files(source, chosen, found.values())
    dated = list[SourceFile]()
    fs: Any = None
    for label in sorted(found):
        place = Files.model_validate(
            source.model_dump(exclude_unset=True, exclude={"period"})
            | {"path": with_period(pattern, span, label)}
        )
        opened = _found_files(place)
        fs, date = opened.fs, {} if chosen is None else {chosen.column: found[label].isoformat()}
        dated += [replace(x, partition_values={**x.partition_values, **date}) for x in opened.files]
    if not dated:
        raise _no_such_file(display_name(source))
    return Source(fs, tuple(dated), pattern)


def _days_found(source: DatedFiles) -> list[datetime.date]:
    """The first day of every period that has files, or a folder of them."""
    fs, pattern = url_to_fs(source.path.rstrip("/"))
    # As of a single file: brackets in a path that exists are not wildcards.
    found = fs.glob(glob_of_any_period(pattern)) or fs.glob(
        glob_of_any_period(glob.escape(pattern))
    )
    days = list[datetime.date]()
    for each in found:
        day = first_day_in_name(pattern, each)
        if day is None:
            raise families.SOURCE(
                "{source}: a file has digits in its name that are not a {span} of the calendar.",
                "Rename the file, or move it to another folder.",
                source=display_name(source),
                span=span_of(source.path),
            )
        days.append(day)
    return days


def _check_steps_have_files(
    source: DatedFiles, period: SelectedPeriod, found: Collection[datetime.date]
) -> None:
    """Refuse steps without a file: their rows would be taken out of what was published."""
    if not period.starts:
        return
    steps = StepDays(cast(StepSpan, period.span), period.starts, period.label)
    present = {steps.step_of(day) for day in found}
    absent = [label for k, label in enumerate(steps.labels, 1) if k not in present]
    if absent:
        raise families.SOURCE(
            "{source}: no file for these steps: {steps}.",
            "Every release of a cumulative series reads the files of all its steps so far: put "
            "them back. A step without rows needs a file with a header only.",
            source=display_name(source),
            steps=tuple(absent[:_MOST_NAMED]),
        )


_MOST_NAMED = 10


def needs_copy(source: AnySource) -> bool:
    """Whether a table is copied before its rows are read: of a database, or Delta."""
    return not isinstance(source, Copied) and table_to_copy(source) is not None


def copy_rows(
    source: AnySource,
    columns: CopiedColumns,
    folder: Path,
    *,
    on_rows: Callable[[int], None] = lambda _: None,
) -> Copied:
    """Read the rows once, and write them to a new folder that only its owner may read.

    Of a declared number of rows, reading stops a million rows after it.
    """
    (table,) = open_source(source).files
    table.copy(columns, folder, on_rows)
    if isinstance(source, DatabaseTable):
        return CopiedTable(**source.model_dump(), copied_to=str(folder))
    return CopiedFiles(**keys_of(source), copied_to=str(folder))


def _kind_of_versions(paths: Iterable[PurePosixPath]) -> str:
    """The kind of table that keeps earlier versions of rows in its files; empty if it does not."""
    for path in paths:
        *folders, name = path.parts
        if "_delta_log" in folders:
            return "Delta"
        if ".hoodie" in folders:
            return "Hudi"
        if "metadata" in folders and name.endswith(".metadata.json"):
            return "Iceberg"
    return ""


def source_file(fs: Any, path: str, source: AnySource, root: str | None = None) -> SourceFile:
    """A file of a table. Folders below the `root` of a source may be named ``column=value``."""
    *folders, last = without_secrets(path).split("/")
    in_contract = without_secrets(location(source)).split("/")
    shown = (
        f"{folder.partition('=')[0]}=*" if "=" in folder and folder not in in_contract else folder
        for folder in folders
    )
    name, file_format = "/".join([*shown, last]), format_of(path, source)
    if file_format is None:
        kind = SourceFile(fs, path, CsvTables(), name, source=source).mistaken()
        raise families.SOURCE(
            "{file}: not a .csv, .csv.gz or .parquet file.",
            "{remedy}",
            file=name,
            remedy=_remedy(path_of(path), name, _EXPORT if kind is None else kind.hint),
        )
    partition_values = {}
    for folder in () if root is None else PurePosixPath(path).relative_to(root).parts[:-1]:
        if "=" in folder:
            key, _, value = folder.partition("=")
            is_missing = unquote(value) in {_NULL_PARTITION, *MISSING}
            partition_values[nfc(unquote(key))] = None if is_missing else unquote(value)
    return SourceFile(fs, path, file_format, name, partition_values, source=source)


def _remedy(path: str, display_name: str, other: str) -> str:
    """How a file of another format becomes one that is read; `other` if its name tells nothing."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _REMEDIES or not is_convertible(path):
        return _REMEDIES.get(suffix, other)
    is_url = "://" in display_name
    file = PurePosixPath(PurePosixPath(display_name).name if is_url else display_name)
    target = file.with_name(file.name.partition(".")[0] + ".parquet")
    command = f"gramercy convert {shlex.quote(str(file))} {shlex.quote(str(target))}"
    download = "download it, " if is_url else ""
    remedy = f"{download}run '{command}', and name {target} as the contract's 'source'."
    return remedy[:1].upper() + remedy[1:]


# Facts that change with a file's content, by the names that stores give them.
_CHANGE_MARKERS = {
    *("checksum", "contentmd5", "created", "digest", "etag", "generation", "ino", "lastmodified"),
    *("md5hash", "modificationtime", "modified", "modify", "mtime", "updated", "versionid"),
}


def store_digest(source: Source) -> str:
    """A digest of everything that the store reports about the files. Private."""
    files = []
    for file in source.files:
        facts = file.info()
        stated = {re.sub("[-_]", "", name.lower()) for name, value in facts.items() if value}
        if not stated & _CHANGE_MARKERS:
            raise families.SOURCE(
                "{file}: the store gives neither a modification date nor a checksum, so a change "
                "during the release could not be detected.",
                "Copy the table to a local disk, or to a store that gives one.",
                file=file.display_name,
            )
        files.append([file.path, sorted((name, str(value)) for name, value in facts.items())])
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


def verify_unchanged(digest: str, source: AnySource) -> None:
    """Compare the table with its state when it was opened, without the file system's cache."""
    current = None
    with contextlib.suppress(TableError):  # a file that was removed is a change
        open_source(source).fs.invalidate_cache()
        current = store_digest(open_source(source))
    if current != digest:
        raise wordings.table_changed()
