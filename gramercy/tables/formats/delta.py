"""Delta tables: the files of the present version are copied, and read like other Parquet files.

The log of a table says which files hold its present version. They never change, but may be removed
at any time, so they are copied once. Which file a row is in does not matter: a record is a row, for
any layout of files, and the number of the version is not published, because it counts the changes
of the table. The package deltalake reads the log; Gramercy's own reader reads the files, in bounded
memory. Every feature of the format that changes how the files are to be read is refused.
"""

from __future__ import annotations

import datetime
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem

from gramercy.common.extras import is_installed
from gramercy.schemas import families
from gramercy.schemas.errors import TableError
from gramercy.tables.formats.copies.files import (
    Constants,
    new_private_file,
    path_of_part,
    write_constants,
    written_to,
)
from gramercy.tables.formats.parquet_reader import open_parquet
from gramercy.tables.formats.parse_errors import redact_parser_errors
from gramercy.tables.formats.source_file import SourceFile


def _delta_feature_not_supported(source: str, feature: str) -> TableError:
    return families.DELTA_TABLE(
        "{source}: the Delta table uses {feature}, which is not supported.",
        "Export the present version as Parquet, such as by deltalake.DeltaTable(...).scan() or "
        "Spark.",
        source=source,
        feature=feature,
    )


# Features of readers that leave the files of a version, and their rows, as they are. Of the first,
# only whether a file really has deleted rows matters.
_DELETIONS = "deletionVectors"
_MAPPING = "columnMapping"
_HARMLESS = {_DELETIONS, _MAPPING, "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
_LOG = "_delta_log"
_MOST_LOG_MEBIBYTES = 128  # deltalake reads the log into memory
_MAPPING_MODE = "delta.columnMapping.mode"


def schema_of(file: SourceFile) -> pa.Schema:
    """The columns of a table, from its log.

    Raises
    ------
    TableError
        If the log cannot be read, or the table uses features that are not supported.
    """
    with _open_log(file) as table:
        return pa.schema(table.schema())


def copy_files(
    file: SourceFile, columns: Sequence[str], folder: Path, on_rows: Callable[[int], None]
) -> None:
    """Copy the files of the present version.

    Parameters
    ----------
    file
        The folder of the table.
    columns
        The columns that will be read. Files that were written before a column was added lack it:
        it is missing in all of their rows.
    folder
        The new folder.
    on_rows
        Called with the number of rows of each file.

    Raises
    ------
    TableError
        If the table cannot be read.
    ContractError
        If the copy cannot be written.
    """
    with _open_log(file) as table:
        constants: list[Constants] = []
        with written_to(folder.parent):
            folder.mkdir(mode=0o700)
        for number, (path, values) in enumerate(_files(table, file)):
            part = path_of_part(folder, number)
            _copy(path, part)
            copied = SourceFile(LocalFileSystem(), str(part), "parquet", file.display_name, {})
            with open_parquet(copied) as parquet:
                absent = set(columns).difference(parquet.schema_arrow.names)
                on_rows(parquet.metadata.num_rows)
            constants.append({**dict.fromkeys(absent), **values})
        with written_to(folder.parent):
            write_constants(folder, constants)


@contextmanager
def _open_log(file: SourceFile) -> Iterator[Any]:
    if not is_installed("deltalake"):
        raise families.DELTA_TABLE(
            "{source}: the package deltalake, which reads Delta tables, is not installed.",
            "pip install 'gramercy[delta]'.",
            source=file.display_name,
        )
    from deltalake import DeltaTable

    _check_log_size(file)
    with redact_parser_errors(file.display_name, "Delta"):
        table = DeltaTable(file.path)
        _check_features(table, file.display_name)
        yield table


def _check_log_size(file: SourceFile) -> None:
    """Refuse a log that would not fit into memory."""
    size = 0
    with redact_parser_errors(file.display_name, "Delta"):
        for folder, _, names in os.walk(os.path.join(file.path, _LOG)):
            size += sum(os.stat(os.path.join(folder, name)).st_size for name in names)
    mebibytes = -(-size // (1 << 20))
    if mebibytes > _MOST_LOG_MEBIBYTES:
        raise families.DELTA_TABLE(
            "{source}: the log of the Delta table has {mebibytes} MiB; it may have {most} MiB.",
            "Remove its expired files, such as by deltalake.DeltaTable(...).cleanup_metadata(), "
            "or export the present version as Parquet.",
            source=file.display_name,
            mebibytes=mebibytes,
            most=_MOST_LOG_MEBIBYTES,
        )


def _check_features(table: Any, name: str) -> None:
    """Refuse what would make the rows other ones than those in the files."""
    for feature in table.protocol().reader_features or ():
        if feature not in _HARMLESS:
            raise _delta_feature_not_supported(name, f"'{feature}'")
    if table.metadata().configuration.get(_MAPPING_MODE, "none") != "none":
        raise _delta_feature_not_supported(name, "column mapping")
    if any(batch.num_rows for batch in table.deletion_vectors()):
        raise _delta_feature_not_supported(name, "deletion vectors")


def _files(table: Any, file: SourceFile) -> Iterator[tuple[str, Constants]]:
    """Paths of the files of the version, in order, and their constant columns."""
    names = table.metadata().partition_columns
    actions = pa.table(table.get_add_actions()).select(["path"] + ["partition"] * bool(names))
    for action in sorted(actions.to_pylist(), key=lambda each: str(each["path"])):
        path = os.path.join(file.path, unquote(action["path"]))
        if not os.path.realpath(path).startswith(os.path.realpath(file.path) + os.sep):
            raise families.DELTA_TABLE(
                "{source}: the log of the Delta table names a file outside its folder.",
                "Export the present version as Parquet.",
                source=file.display_name,
            )
        values = action.get("partition") or {}
        yield path, {name: _as_text(values[name]) for name in names}


def _as_text(value: Any) -> str | None:
    """A cell as text, which is read as the cell of a file would be."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, datetime.date):  # or a time
        return value.isoformat()
    return None if value is None else str(value)


def _copy(path: str, to: Path) -> None:
    with (
        open(path, "rb") as stream,
        written_to(to.parent),
        os.fdopen(new_private_file(to), "wb") as copy,
    ):
        shutil.copyfileobj(stream, copy, 1 << 20)
