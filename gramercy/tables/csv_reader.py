"""Read CSV, compressed or not, as batches of numbers in bounded memory."""

from __future__ import annotations

import csv
import io
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from gramercy.schemas.column import MISSING
from gramercy.schemas.problems import table as problems
from gramercy.schemas.problems.source import header_not_in_encoding
from gramercy.schemas.url import path_of
from gramercy.tables.decompression import XzStream, open_zip
from gramercy.tables.encodings import SUBSTITUTE, as_utf8
from gramercy.tables.lines import BLOCK, RecordLines, is_record
from gramercy.tables.parse_errors import redact_parser_errors
from gramercy.tables.source_file import SourceFile
from gramercy.tables.values import Coding, is_text, to_floats

_RELEASE_SECONDS = 5.0  # it takes milliseconds
_POLL_SECONDS = 1e-4


@dataclass
class MalformedLines:
    """Numbers of CSV lines that are not records of the header's width. For the steward only.

    Parameters
    ----------
    dropped
        Lines that were left out.
    kept
        Lines that were kept as rows of missing cells.
    """

    dropped: int = 0
    kept: int = 0

    def __add__(self, other: MalformedLines) -> MalformedLines:
        return MalformedLines(self.dropped + other.dropped, self.kept + other.kept)


def read_header(file: SourceFile) -> list[str]:
    """Names of the columns, from the first line.

    Raises
    ------
    TableError
        If the file has no readable header.
    """
    names: list[str] = []
    display_name = file.display_name
    with redact_parser_errors(display_name, "CSV"), _open(file) as stream:
        line = stream.readline(BLOCK + 1)
        # A header dropped for its length would make the next line, a private row, the header.
        if len(line) > BLOCK and not line.endswith(b"\n"):
            raise problems.header_too_long(display_name, BLOCK >> 20)
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise problems.header_not_utf8(display_name) from None
        if SUBSTITUTE in text and file.csv.encoding != "utf-8":
            raise header_not_in_encoding(display_name, file.csv.encoding)
        separator = file.csv.separator
        record = line.removesuffix(b"\n").removesuffix(b"\r")
        if text.strip() and not is_record(record, separator.encode()):
            raise problems.header_malformed(display_name)
        names = next(csv.reader(io.StringIO(text), delimiter=separator), [])
    if not any(names):
        raise problems.header_missing(display_name)
    return names


def cell_batches(
    file: SourceFile,
    columns: Mapping[str, Coding],
    rows: int,
    malformed: MalformedLines,
    keep_malformed: bool,
) -> Iterator[NDArray[np.float64]]:
    """Batches of at most `rows` rows; see `tables.reader.cell_batches`."""

    def count_malformed(lines: int) -> None:
        malformed.dropped += 0 if keep_malformed else lines
        malformed.kept += lines if keep_malformed else 0

    def on_invalid_row(_: Any) -> str:
        malformed.dropped += 1
        return "error" if keep_malformed else "skip"

    fields, names = len(read_header(file)) if keep_malformed else None, list(columns)
    with redact_parser_errors(file.display_name, "CSV"), _open(file) as stream:
        separator = file.csv.separator
        lines = RecordLines(stream, count_malformed, fields, separator.encode())
        shared: list[weakref.ref[Any]] = [weakref.ref(on_invalid_row)]
        handle, batches = _Handle(_shared_blocks(lines, shared)), iter(())
        shared.append(weakref.ref(handle))
        try:
            batches = pacsv.open_csv(
                pa.PythonFile(handle, mode="r"),
                read_options=pacsv.ReadOptions(block_size=2 * BLOCK, use_threads=False),
                parse_options=pacsv.ParseOptions(
                    delimiter=separator, invalid_row_handler=on_invalid_row
                ),
                convert_options=pacsv.ConvertOptions(
                    check_utf8=False,
                    include_columns=names,
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=MISSING,
                    strings_can_be_null=True,
                ),
            )
            for batch in batches:
                for start in range(0, batch.num_rows, rows):
                    cells = batch.slice(start, rows).columns
                    if file.csv.decimal == ",":
                        coded = zip(cells, columns.values(), strict=True)
                        cells = [_with_decimal_points(*pair) for pair in coded]
                    pairs = zip(cells, columns.values(), strict=True)
                    yield np.stack([to_floats(column, coding) for column, coding in pairs])
        finally:
            del handle, batches, on_invalid_row
            _wait_for_release(shared)


def _with_decimal_points(column: pa.Array, coding: Coding) -> pa.Array:
    """Cells of a column of numbers, with points for commas; missing where there are points.

    A point may separate thousands: 1.500 would be read as one and a half.
    """
    if is_text(coding):
        return column
    has_point = pc.match_substring(column, ".")
    return pc.replace_substring(pc.if_else(has_point, None, column), ",", ".")


class _Handle:
    """A file for Arrow, whose threads read ahead, and drop objects some time after the last batch.

    Parameters
    ----------
    read
        Returns up to a number of bytes. It does not refer to this object, which the traceback of
        an error would keep.
    """

    closed = False

    def __init__(self, read: Callable[[int], NDArray[np.uint8]]) -> None:
        self.read = read


def _shared_blocks(
    lines: RecordLines, shared: list[weakref.ref[Any]]
) -> Callable[[int], NDArray[np.uint8]]:
    """A function that reads blocks, and adds references to those in use to `shared`."""

    def read(size: int = -1) -> NDArray[np.uint8]:
        block = np.frombuffer(lines.read(size), np.uint8)
        shared[:] = [each for each in shared if each() is not None]
        shared.append(weakref.ref(block))
        return block

    return read


def _wait_for_release(shared: list[weakref.ref[Any]]) -> None:
    """Wait until Arrow's threads have dropped all Python objects.

    A thread that does so while the interpreter exits would abort the process.
    """
    limit = time.monotonic() + _RELEASE_SECONDS
    while any(each() is not None for each in list(shared)) and time.monotonic() < limit:
        time.sleep(_POLL_SECONDS)


@contextmanager
def _open(file: SourceFile) -> Iterator[IO[bytes]]:
    """The decompressed content as UTF-8."""
    with open_bytes(file) as stream:
        yield as_utf8(stream, file.csv.encoding)


@contextmanager
def open_bytes(file: SourceFile) -> Iterator[IO[bytes]]:
    """The decompressed content; fsspec would decompress xz and ZIP with unbounded memory."""
    compression = fsspec.utils.infer_compression(path_of(file.path))
    bounded = {"xz": _open_xz, "lzma": _open_xz, "zip": open_zip}
    if compression not in bounded:
        with fsspec.core.OpenFile(file.fs, file.path, mode="rb", compression=compression) as stream:
            yield stream
        return
    with file.fs.open(file.path, "rb") as packed, bounded[compression](packed) as stream:
        yield stream


def _open_xz(packed: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(XzStream(packed), BLOCK)
