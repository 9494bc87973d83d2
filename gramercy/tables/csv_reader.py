"""CSV as batches of numbers, packed or not, in bounded memory."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from gramercy.schemas.column import MISSING
from gramercy.schemas.errors import TableError
from gramercy.schemas.url import path_of
from gramercy.tables.lines import BLOCK, RecordLines, is_record
from gramercy.tables.parse_errors import parsing
from gramercy.tables.source_file import SourceFile
from gramercy.tables.unpacking import Xz, zipped
from gramercy.tables.values import Reading, converted


@dataclass
class Malformed:
    """CSV lines that are no record of the header's width. For the steward alone.

    Parameters
    ----------
    rows
        Those that were left out.
    in_place
        Those that stand where they stood, as rows of missing cells.
    """

    rows: int = 0
    in_place: int = 0

    def __add__(self, other: Malformed) -> Malformed:
        """Those of both."""
        return Malformed(self.rows + other.rows, self.in_place + other.in_place)


def header(file: SourceFile) -> list[str]:
    """Names of the columns, by the first line."""
    names: list[str] = []
    shown = file.shown
    with parsing(shown, "CSV"), _opened(file) as stream:
        line = stream.readline(BLOCK + 1)
        # What is dropped as a line would leave the header to somebody's row.
        if len(line) > BLOCK and not line.endswith(b"\n"):
            raise TableError(
                f"{shown}: its header is longer than {BLOCK >> 20} MiB.",
                "Leave out columns, or write Parquet; and end lines with a newline.",
            )
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise TableError(
                f"{shown}: the header is not UTF-8.",
                "Save it as UTF-8 text; compressed files and Parquet need their own endings.",
            ) from None
        if text.strip() and not is_record(line.removesuffix(b"\n").removesuffix(b"\r")):
            raise TableError(
                f"{shown}: its header is no single line of fields.",
                "Close its quotes, and end lines with a newline.",
            )
        names = next(csv.reader(io.StringIO(text)), [])
    if not any(names):
        raise TableError(
            f"{shown}: is empty, or begins so.", "The first line must name the columns."
        )
    return names


def cells(
    file: SourceFile,
    columns: Mapping[str, Reading],
    rows: int,
    malformed: Malformed,
    in_place: bool,
) -> Iterator[NDArray[np.float64]]:
    """Batches of so many rows; see `tables.read.cells`."""

    def broken(lines: int) -> None:
        malformed.rows += 0 if in_place else lines
        malformed.in_place += lines if in_place else 0

    def skip(_: Any) -> str:
        malformed.rows += 1
        return "error" if in_place else "skip"

    fields, names = len(header(file)) if in_place else None, list(columns)
    with parsing(file.shown, "CSV"), _opened(file) as stream:
        batches = pacsv.open_csv(
            pa.PythonFile(RecordLines(stream, broken, fields), mode="r"),
            read_options=pacsv.ReadOptions(block_size=2 * BLOCK, use_threads=False),
            parse_options=pacsv.ParseOptions(invalid_row_handler=skip),
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
                each = zip(batch.slice(start, rows).columns, columns.values(), strict=True)
                yield np.stack([converted(column, levels) for column, levels in each])


@contextmanager
def _opened(file: SourceFile) -> Iterator[IO[bytes]]:
    packing = fsspec.utils.infer_compression(path_of(file.path))
    here = {"xz": _unxz, "lzma": _unxz, "zip": zipped}
    if packing not in here:
        with fsspec.core.OpenFile(file.fs, file.path, mode="rb", compression=packing) as stream:
            yield stream
        return
    with file.fs.open(file.path, "rb") as packed, here[packing](packed) as stream:
        yield stream


def _unxz(packed: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(Xz(packed), BLOCK)
