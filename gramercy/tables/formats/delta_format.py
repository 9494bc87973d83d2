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
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem

from gramercy.common.extras import is_installed
from gramercy.schemas import families
from gramercy.schemas.errors import TableError
from gramercy.schemas.model import nfc
from gramercy.schemas.source import AnySource, Files, display_name, location
from gramercy.tables.formats.parquet_format import ParquetTables
from gramercy.tables.formats.private_copy import Constants, new_copy
from gramercy.tables.formats.table_format import (
    CopiedColumns,
    CopiedFormat,
    SampledRows,
    SourceFile,
    type_name,
)


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


class DeltaTables(CopiedFormat):
    """Delta tables in a folder of this machine."""

    title = "Delta"

    def table_of(self, source: AnySource) -> SourceFile | None:
        if not isinstance(source, str | Files):
            return None
        folder = location(source).removeprefix("file://").removeprefix("local://")
        if not os.path.isdir(os.path.join(folder, _LOG)):
            return None
        return SourceFile(LocalFileSystem(), folder, self, display_name(source), source=source)

    def columns(self, file: SourceFile) -> list[tuple[str, str]]:
        """The columns, from the log; `TableError` if it has features that are not supported."""
        schema = pa.schema(_open_log(file).schema())
        return [(field.name, type_name(field.type)) for field in schema]

    def copy(
        self, file: SourceFile, columns: CopiedColumns, folder: Path, on_rows: Callable[[int], None]
    ) -> None:
        """Copy the files of the present version."""
        table = _open_log(file)
        with new_copy(folder) as copy:
            for path, constants in _files(table, file, columns.published):
                on_rows(copy.add_file(path, columns.names, constants))

    def sample(self, file: SourceFile, columns: Sequence[str], rows: int) -> SampledRows:
        """Rows of the first file of the present version, of one in the middle, and of the last."""
        files = list(_files(_open_log(file), file, columns))
        chosen = [files[k] for k in sorted({0, len(files) // 2, len(files) - 1})] if files else []
        found = []
        for path, constants in chosen:
            part = SourceFile(file.fs, path, ParquetTables(), file.display_name)
            stored = {name for name, _ in part.columns()}
            read = part.sample([x for x in columns if x in stored], rows // len(chosen) or 1)
            absent = [name for name in columns if name not in stored]
            cells = read.cells
            for name in absent:
                text = pa.array([constants.get(name)] * cells.num_rows, pa.string())
                cells = cells.append_column(name, text)
            found.append((cells.select(list(columns)), read.complete))
        cells = (
            pa.concat_tables([x for x, _ in found], promote_options="permissive")
            if found
            else pa.table({})
        )
        complete = len(chosen) == len(files) and all(each for _, each in found)
        return SampledRows(cells, complete=complete)


def _open_log(file: SourceFile) -> Any:
    if not is_installed("deltalake"):
        raise families.DELTA_TABLE(
            "{source}: the package deltalake, which reads Delta tables, is not installed.",
            "pip install 'gramercy[delta]'.",
            source=file.display_name,
        )
    from deltalake import DeltaTable

    _check_log_size(file)
    table = DeltaTable(file.path)
    # Refuse what would make the rows other ones than those in the files.
    for feature in table.protocol().reader_features or ():
        if feature not in _HARMLESS:
            raise _delta_feature_not_supported(file.display_name, f"'{feature}'")
    if table.metadata().configuration.get(_MAPPING_MODE, "none") != "none":
        raise _delta_feature_not_supported(file.display_name, "column mapping")
    if any(batch.num_rows for batch in table.deletion_vectors()):
        raise _delta_feature_not_supported(file.display_name, "deletion vectors")
    return table


def _check_log_size(file: SourceFile) -> None:
    """Refuse a log that would not fit into memory."""
    size = 0
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


def _files(
    table: Any, file: SourceFile, published: Iterable[str]
) -> Iterator[tuple[str, Constants]]:
    """Paths of the files of the version, in order, and their constant columns."""
    marks = dict.fromkeys(published, file.notation.decimal)
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
        yield path, {nfc(n): _as_text(values[n], marks.get(nfc(n), ".")) for n in names}


def _as_text(value: Any, decimal: str = ".") -> str | None:
    """A cell as text, which is read as the cell of a file would be."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, datetime.date):  # or a time
        return value.isoformat()
    if isinstance(value, float | Decimal):
        return str(value).replace(".", decimal)
    return None if value is None else str(value)
