"""What a format of tables is, and one file of a table in it.

A format is one object in one module, and one line in `tables.formats.registry`. Whatever differs
between formats is asked of the object, so nothing else compares formats.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gramercy.schemas import families, wordings
from gramercy.schemas.errors import GramercyError, TableError
from gramercy.schemas.model import nfc
from gramercy.schemas.notation import PLAIN, NumberNotation
from gramercy.schemas.source import AnySource, CsvFormat, notation_of
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.byte_streams import DecompressionError
from gramercy.tables.formats.file_kinds import HEAD, mistaken
from gramercy.tables.formats.values import (
    ANY,
    DOUBLE,
    TEXT,
    WHOLE,
    ZONED,
    Coding,
    Lookup,
    coding_of,
    is_text,
)

# Of a table that is copied.
_BATCH_CELLS = 1 << 16  # cells that are read at once
_BATCH_BYTES = 1 << 27  # of a batch, if every text were as long as it can be

MOST_TEXT = 1024  # bytes of a text in a sample


class TableFormat(ABC):
    """A format of tables. It has no state, and is pickled for workers of a cluster.

    Its methods may raise any error of a parser: `SourceFile`, which calls them, replaces errors by
    those that quote no cell.

    Attributes
    ----------
    title
        Its name in errors.
    states_names
        Whether files state the names of columns, so that what is read as a name is never a cell.
    states_types
        Whether files state the types of columns.
    keeps_cells_apart
        Whether no cell can change how another cell is read, not even one of its own row.
    """

    title: ClassVar[str]
    states_names: ClassVar[bool] = True
    states_types: ClassVar[bool] = True
    keeps_cells_apart: ClassVar[bool] = True

    def recognises(self, suffixes: Sequence[str], source: AnySource | None) -> bool:
        """Whether a file is in this format."""
        return False

    @abstractmethod
    def columns(self, file: SourceFile) -> list[tuple[str, str]]:
        """Names and types of the columns, without those in names of folders; no row is read."""

    @abstractmethod
    def cell_batches(
        self,
        file: SourceFile,
        columns: Mapping[str, Coding],
        rows: int,
        malformed: MalformedLines,
        keep_malformed: bool,
    ) -> Iterator[NDArray[np.float64]]:
        """Batches of at most `rows` rows; see `tables.formats.reader.cell_batches`."""

    def first_lines(self, file: SourceFile) -> list[str]:
        """The first lines of a file of text, to look for the one that names the columns."""
        return []

    def partitions(self, file: SourceFile, min_cells: int) -> list[SourceFile]:
        """Parts of a file, in order, each with at least so many cells where it has them."""
        return [file]

    def row_count(self, file: SourceFile) -> int | None:
        """Number of rows as the file states it; None if all of it must be read."""
        return None

    def sample(self, file: SourceFile, columns: Sequence[str], rows: int) -> SampledRows:
        """At most `rows` rows as they are stored; nothing of a format that cannot show them.

        Memory is bounded for any content, and texts that are longer than `MOST_TEXT` are missing.
        """
        return SampledRows(pa.table({}), complete=False)


@dataclass(frozen=True, repr=False)
class SampledRows:
    """Rows from the beginning, and where the format allows it from the middle and the end."""

    cells: pa.Table = field(repr=False)
    complete: bool = False  # whether these are all rows of the file
    has_last: bool = False  # whether the last row is that of the file


@dataclass(frozen=True)
class CopiedColumns:
    """What a copy holds of a table."""

    # The columns to publish, with their codings. Numbers become doubles as those of a Parquet file
    # would, and texts that are too long to be a level become missing.
    published: Mapping[str, Any]
    # Other columns: of persons or of dates. Whole numbers stay such, and others become text.
    others: Sequence[str] = ()
    rows: int | None = None  # the declared number of rows, if it is public

    @property
    def names(self) -> list[str]:
        """Names of the columns, each once."""
        return list(dict.fromkeys([*self.published, *self.others]))

    def coding(self, name: str) -> Coding:
        """How the cells of a column become numbers."""
        return coding_of(self.published[name]) if name in self.published else Lookup(None)

    @property
    def rows_at_once(self) -> int:
        """Number of rows of a batch whose cells fit into memory."""
        names = self.names
        longest = sum(self.coding(name).most_bytes for name in names)
        return max(1, min(_BATCH_CELLS // len(names), _BATCH_BYTES // longest))


class CopiedFormat(TableFormat):
    """A format whose tables are copied before their rows are read: they may change meanwhile."""

    @abstractmethod
    def table_of(self, source: AnySource) -> SourceFile | None:
        """The whole table as one file, if the source is one of this format."""

    @abstractmethod
    def copy(
        self, file: SourceFile, columns: CopiedColumns, folder: Path, on_rows: Callable[[int], None]
    ) -> None:
        """Read the rows once, and write them to a new folder; see `tables.formats.private_copy`."""

    def cell_batches(
        self,
        file: SourceFile,
        columns: Mapping[str, Coding],
        rows: int,
        malformed: MalformedLines,
        keep_malformed: bool,
    ) -> Iterator[NDArray[np.float64]]:
        raise wordings.table_not_copied(file.display_name)

    def partitions(self, file: SourceFile, min_cells: int) -> list[SourceFile]:
        raise wordings.table_not_copied(file.display_name)


@dataclass(frozen=True)
class SourceFile:
    """A file of a table."""

    fs: Any = field(repr=False)  # its fsspec file system; None for a table of a database
    path: str = field(repr=False)  # its path on that file system; over HTTP, its whole URL
    format: TableFormat  # format, which follows from the name of the file
    # Its name in errors, without private values: values of partition folders are cells, and URLs
    # may hold secrets. Folders that the contract itself names are shown as they are.
    display_name: str
    # values of the columns that are encoded in the names of its folders, as by Hive and Spark
    partition_values: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    # the row groups of a Parquet file to read; None for all
    row_groups: tuple[int, ...] | None = None
    # the source in the contract, which may state how the file is written
    source: AnySource | None = field(default=None, repr=False)

    @property
    def notation(self) -> NumberNotation:
        """How numbers are written that are text, as the contract states it."""
        return PLAIN if self.source is None else notation_of(self.source)

    def info(self) -> dict[str, Any]:
        """What the store reports about the file, such as its size and date."""
        reason = ""
        if self.fs is None:
            raise wordings.table_not_copied(self.display_name)
        try:
            return dict(self.fs.info(self.path))
        except Exception as caught:  # drivers quote whole URLs
            reason = type(caught).__name__
        raise wordings.file_not_accessible(self.display_name, reason)

    def columns(self) -> list[tuple[str, str]]:
        """Names in NFC and types of the stored columns."""
        with self.redacted_errors():
            return [(nfc(name), kind) for name, kind in self.format.columns(self)]

    def cell_batches(
        self,
        columns: Mapping[str, Coding],
        rows: int,
        malformed: MalformedLines,
        keep_malformed: bool,
    ) -> Iterator[NDArray[np.float64]]:
        """Batches of at most `rows` rows of the stored columns."""
        with self.redacted_errors():
            yield from self.format.cell_batches(self, columns, rows, malformed, keep_malformed)

    def partitions(self, min_cells: int) -> list[SourceFile]:
        """Parts of the file, in order."""
        with self.redacted_errors():
            return self.format.partitions(self, min_cells)

    def row_count(self) -> int | None:
        """Number of rows as the file states it."""
        with self.redacted_errors():
            return self.format.row_count(self)

    def sample(self, columns: Sequence[str], rows: int) -> SampledRows:
        """Some rows as they are stored, of the stored columns; see `TableFormat.sample`."""
        with self.redacted_errors():
            return self.format.sample(self, columns, rows)

    def copy(self, columns: CopiedColumns, folder: Path, on_rows: Callable[[int], None]) -> None:
        """Copy the rows of a whole table; see `CopiedFormat.copy`."""
        with self.redacted_errors():
            if isinstance(self.format, CopiedFormat):
                self.format.copy(self, columns, folder, on_rows)

    def first_lines(self) -> list[str]:
        """The first lines of a file of text."""
        with self.redacted_errors():
            return self.format.first_lines(self)

    def mistaken(self) -> TableError | None:
        """The error for a file that is not what its name says, judged by its first bytes."""
        with contextlib.suppress(Exception):
            with self.fs.open(self.path, "rb") as stream:
                head = stream.read(HEAD)
            encoding = self.source.encoding if isinstance(self.source, CsvFormat) else ""
            return mistaken(head, self.display_name, self.format.title, encoding)
        return None

    @contextmanager
    def redacted_errors(self) -> Iterator[None]:
        """Replace any error of a parser by a `TableError` that names only the file.

        Parsers quote private values.
        """
        error: GramercyError
        try:
            yield
        except GeneratorExit:
            raise
        except GramercyError as caught:
            error = caught
        except PermissionError:
            error = families.FILE(
                "{file}: permission denied.",
                "Ask for permission to read it.",
                file=self.display_name,
            )
        except DecompressionError:
            error = families.FILE(
                "{file}: this kind of compression is not supported.",
                "Compress a single CSV file by gzip, bzip2, zip, or xz up to level -9.",
                file=self.display_name,
            )
        except Exception as caught:
            error = families.FILE(
                "{file}: cannot be read as {format}.",
                "It is damaged or incomplete: copy or export it again.",
                file=self.display_name,
                format=self.format.title,
            )
            error = self.mistaken() or error
            if isinstance(caught, OSError) and caught.errno == errno.EIO:
                error = wordings.file_not_accessible(self.display_name, os.strerror(errno.EIO))
        else:
            return
        try:
            raise error from None
        finally:  # raising sets it to the handled error, which may quote data and URLs
            error.__context__ = None


def short_texts(column: pa.Array) -> pa.Array:
    """The cells of a sampled column; texts are plain, and missing where they are too long."""
    if pa.types.is_dictionary(column.type):
        return short_texts(column.dictionary).take(column.indices)
    if not is_text(column.type):
        return column
    text = column if pa.types.is_large_string(column.type) else column.cast(pa.string())
    fits = pc.less_equal(pc.binary_length(text), MOST_TEXT)
    return pc.if_else(fits, text, None).cast(pa.string())


def type_name(kind: pa.DataType) -> str:
    """``whole`` or ``double`` for numbers, ``text``, ``any``, or Arrow's own name.

    Of a nested type only the outer name is given: fields of a struct may be named after private
    cells. A column whose cells are all missing has no type and counts as ``any``; otherwise its
    cells would decide whether the table is refused.
    """
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(inner):
        return ANY
    if pa.types.is_integer(inner):
        return WHOLE
    if pa.types.is_floating(inner) or pa.types.is_decimal(inner):
        return DOUBLE
    if is_text(inner):
        return TEXT
    if pa.types.is_timestamp(inner) and inner.tz is not None:
        return ZONED
    return re.split(r"[<\[]", str(inner))[0]
