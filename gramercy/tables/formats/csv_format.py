"""Read CSV, compressed or not, as batches of numbers in bounded memory."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from gramercy.schemas import families
from gramercy.schemas.column import MISSING
from gramercy.schemas.model import nfc
from gramercy.schemas.source import AnySource, CsvFormat, Files
from gramercy.schemas.url import path_of
from gramercy.tables.batches import MalformedLines, in_order
from gramercy.tables.formats.byte_streams import SUBSTITUTE, XzStream, as_utf8, open_zip
from gramercy.tables.formats.file_kinds import unusual_layout
from gramercy.tables.formats.lines import (
    BLOCK,
    FaultyLines,
    LineFault,
    Records,
    are_simple,
    below_header,
    is_record,
    plain_lines,
)
from gramercy.tables.formats.table_format import (
    SampledRows,
    SourceFile,
    TableFormat,
    short_texts,
)
from gramercy.tables.formats.values import ANY, Coding, Numbers

# Ends of names of text files that are CSV only where the contract states their separator.
ANY_TEXT = (".tsv", ".tab", ".psv", ".txt", ".dat")
_HEADER_BYTES = 1 << 16  # read at once for the header
_ROOM = 8  # bytes of a block besides the lines: a byte order mark


class CsvTables(TableFormat):
    """CSV, compressed or not. A record is one line, regardless of its cells; see `lines`."""

    title = "CSV"
    states_names = states_types = keeps_cells_apart = False

    def recognises(self, suffixes: Sequence[str], source: AnySource | None) -> bool:
        any_text = isinstance(source, Files) and "separator" in source.model_fields_set
        text = (".csv", *ANY_TEXT) if any_text else (".csv",)
        return any(suffix in text for suffix in suffixes[-2:])

    def columns(self, file: SourceFile) -> list[tuple[str, str]]:
        names = read_header(file)  # several may have no name, which no contract can declare
        return [(name, ANY) for k, name in enumerate(names) if name or "" not in names[:k]]

    def cell_batches(
        self,
        file: SourceFile,
        columns: Mapping[str, Coding],
        rows: int,
        malformed: MalformedLines,
        keep_malformed: bool,
    ) -> Iterator[NDArray[np.float64]]:
        parser = _Parser(file, columns, keep_malformed)
        with _open(file) as stream:
            blocks = parser.records.blocks(stream)
            _, below = _header_line(blocks, _written(file))
            with contextlib.closing(in_order(parser.parse, below)) as parsed:
                for part, lines in parsed:
                    malformed.dropped += 0 if keep_malformed else lines
                    malformed.kept += lines if keep_malformed else 0
                    for cells in map(parser.with_persons, part):
                        for start in range(0, cells.shape[1], rows):
                            yield cells[:, start : start + rows]

    def first_lines(self, file: SourceFile) -> list[str]:
        """The first lines, without those that the contract calls comments."""
        with _open(file) as stream:
            lines = stream.read(_HEADER_BYTES).decode("utf-8-sig", "replace").split("\n")
        mark = _written(file).comment
        kept = [line for line in lines if mark is None or not line.startswith(mark)]
        return [line.removesuffix("\r") for line in kept[:_MOST_LINES]]

    def sample(self, file: SourceFile, columns: Sequence[str], rows: int) -> SampledRows:
        """Rows of the beginning, and of a file that is not compressed of the middle and the end."""
        parser = _Parser(file, dict.fromkeys(columns, Numbers()), keep_malformed=False)
        third = max(1, rows // 3)
        first, everything = _first_lines(file, parser.records)
        if everything:
            cells = parser.texts(first)
            if cells.num_rows <= rows:
                return SampledRows(cells, complete=True, has_last=True)
            parts = [cells, cells.slice(cells.num_rows // 2 - third // 2), cells]
        else:
            window = max(_WINDOW, len(first) * third // max(1, first.count(b"\n")))
            parts = [parser.texts(lines) for lines in _windows(file, first, window)]
        if len(parts) == 1:
            return SampledRows(parts[0].slice(0, rows))
        head, middle, tail = parts
        last = tail.slice(max(0, tail.num_rows - third))
        cells = pa.concat_tables([head.slice(0, third), middle.slice(0, third), last])
        return SampledRows(cells, has_last=True)


_MOST_LINES = 100  # of a file, among which the one that names the columns is looked for


def faulty_lines(file: SourceFile) -> list[FaultyLines]:
    """The lines that are not rows, by their faults. Private."""
    written = _written(file)
    records = Records(len(read_header(file)), written.separator.encode(), _comment(written))
    found, number = dict[LineFault, list[int]](), 0  # number of lines, first and last one

    def counted(blocks: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal number
        for block in blocks:
            number += block.count(b"\n")
            yield block

    with _open(file) as stream:
        _, below = _header_line(counted(records.blocks(stream)), written)
        for block in below:
            lines = plain_lines(block).split(b"\n")[:-1]
            for k, line in enumerate(lines, number - len(lines) + 1):
                # There may be many millions of blank lines.
                fault = LineFault.BLANK if not line else records.fault(line)
                if fault is not None:
                    places = found.setdefault(fault, [0, k, k])
                    places[0] += 1
                    places[2] = k
    return [FaultyLines(fault, *places) for fault, places in found.items()]


def _written(file: SourceFile) -> CsvFormat:
    """How the file is written, as the contract states it."""
    return file.source.csv if isinstance(file.source, Files) else CsvFormat()


def read_header(file: SourceFile) -> list[str]:
    """Names of the columns in NFC, without blanks around them.

    They are in the first line, or the one that the contract states.
    """
    display_name, written = file.display_name, _written(file)
    with _open(file) as stream:
        line, _ = _header_line(Records().blocks(stream, _HEADER_BYTES), written)
    if line is None:
        raise families.HEADER(
            "{file}: the file ends before line {line}, which should name the columns.",
            "The first line names the columns, unless the contract's 'source' states another one "
            "as 'header', such as header: 3; comments do not count.",
            file=display_name,
            line=written.header,
        )
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise file.mistaken() or families.HEADER(
            "{file}: the header is not UTF-8.",
            "State the encoding in the contract, such as 'source: {{path: PATH, encoding: cp1252}}'"
            " for files of Windows, where PATH is the present source; or save the file as UTF-8.",
            file=display_name,
        ) from None
    if SUBSTITUTE in text and written.encoding != "utf-8":
        raise families.HEADER(
            "{file}: the header is not {encoding}.",
            "Correct the contract's 'source.encoding', or save the file in this encoding.",
            file=display_name,
            encoding=written.encoding,
        )
    separator = written.separator
    record = line.removesuffix(b"\n").removesuffix(b"\r")
    if b"\r" in record:
        raise unusual_layout(display_name, "lines end in carriage returns, as on old Macs")
    if text.strip() and not is_record(record, separator.encode()):
        raise families.HEADER(
            "{file}: the header is not a single line of fields.",
            "Close its quotes, and end lines with a newline.",
            file=display_name,
        )
    fields = next(csv.reader(io.StringIO(nfc(text)), delimiter=separator), [])
    names = [each.strip() for each in fields]
    if not any(names):  # nor is the next line, a private row, the header
        raise families.HEADER(
            "{file}: line {line}, which should name the columns, is blank or longer than {limit} "
            "MiB.",
            "State the number of the line with the names under the contract's 'source', such as "
            "header: {next}. If it is too long, write Parquet; lines must end with a newline.",
            file=display_name,
            line=written.header,
            next=written.header + 1,
            limit=BLOCK >> 20,
        )
    return names


def _header_line(
    blocks: Iterator[bytes], written: CsvFormat
) -> tuple[bytes | None, Iterator[bytes]]:
    skipped = 0 if written.first_row is None else written.first_row - written.header - 1
    return below_header(blocks, written.header, _comment(written), skipped)


def _comment(written: CsvFormat) -> bytes:
    return (written.comment or "").encode()


@dataclass(frozen=True)
class _Part:
    """Parsed records."""

    # shape (columns, rows); the rows of columns of persons are not filled in
    cells: NDArray[np.float64]
    # the columns of persons by index: indices are assigned in the order of the table
    persons: dict[int, pa.Array]


class _OtherWidth(Exception):
    """A line is not a record of the header's width."""


class _Parser:
    """Parses blocks of lines, in any order and in several threads.

    A block is first parsed as numbers. Where that fails, which needs one cell that is not a number,
    its cells are read as text, and each becomes the same number as before, or missing.
    """

    def __init__(
        self, file: SourceFile, columns: Mapping[str, Coding], keep_malformed: bool
    ) -> None:
        self._names, self._columns = read_header(file), columns
        self._csv, self._keeps = _written(file), keep_malformed
        separator = self._csv.separator.encode()
        width = len(self._names) if keep_malformed else None
        self.records = Records(width, separator, _comment(self._csv))
        self._reads_numbers = self._csv.decimal == "."

    def parse(self, block: bytes) -> tuple[list[_Part], int]:
        """The records of a block, and the number of malformed lines."""
        lines = plain_lines(block)
        is_simple = are_simple(lines) and not self.records.has_comment(lines)
        if lines and self._keeps and is_simple:  # usually all of them have the right width
            with contextlib.suppress(_OtherWidth):
                return [self._part(self._table(lines)[0])], 0
        pieces, malformed = self.records.of_block(block)
        parts = []
        for piece in filter(None, pieces):
            table, other_lines = self._table(piece)
            malformed += other_lines
            parts.append(self._part(table))
        return parts, malformed

    def with_persons(self, part: _Part) -> NDArray[np.float64]:
        """Cells with the indices of persons; for the parts in the order of the table."""
        codings = list(self._columns.values())
        for k, column in part.persons.items():
            part.cells[k] = codings[k].floats(column)
        return part.cells

    def _part(self, table: pa.Table) -> _Part:
        cells, persons = np.empty((len(self._columns), table.num_rows)), {}
        for k, (column, coding) in enumerate(
            zip(table.columns, self._columns.values(), strict=True)
        ):
            array = column.combine_chunks()
            if coding.in_order:
                persons[k] = array
                continue
            cells[k] = coding.floats(array)
        return _Part(cells, persons)

    def texts(self, lines: bytes) -> pa.Table:
        """The cells of the records among some lines as short texts; a missing one is null."""
        pieces, _ = self.records.of_block(lines)
        schema = pa.schema([(name, pa.string()) for name in self._columns])
        tables = [self._read(piece, pa.string())[0] for piece in pieces if piece]
        table = pa.concat_tables([schema.empty_table(), *tables])
        return pa.table([short_texts(x.combine_chunks()) for x in table.columns], schema)

    def _table(self, piece: bytes) -> tuple[pa.Table, int]:
        """Parsed lines, and the number of those that were left out for their width."""
        if self._reads_numbers:
            with contextlib.suppress(pa.ArrowInvalid):
                return self._read(piece, pa.float64())
            self._reads_numbers = False  # it is likely to fail again
        return self._read(piece, pa.string())

    def _read(self, piece: bytes, numbers: pa.DataType) -> tuple[pa.Table, int]:
        other_lines = 0

        def on_invalid_row(_: Any) -> str:
            nonlocal other_lines
            other_lines += 1
            return "error" if self._keeps else "skip"

        table = None
        try:
            table = pacsv.read_csv(
                _arrow_stream(piece),
                read_options=pacsv.ReadOptions(
                    block_size=len(piece) + _ROOM, use_threads=False, column_names=self._names
                ),
                parse_options=pacsv.ParseOptions(
                    delimiter=self._csv.separator, invalid_row_handler=on_invalid_row
                ),
                convert_options=pacsv.ConvertOptions(
                    check_utf8=False,
                    include_columns=list(self._columns),
                    column_types={
                        name: pa.string() if coding.is_text else numbers
                        for name, coding in self._columns.items()
                    },
                    null_values=MISSING,
                    strings_can_be_null=True,
                ),
            )
        except pa.ArrowInvalid:
            if not (other_lines and self._keeps):
                raise
        if table is None:
            raise _OtherWidth
        return table, other_lines


_WINDOW = 1 << 20  # bytes of a sample in the middle and at the end


def _first_lines(file: SourceFile, records: Records) -> tuple[bytes, bool]:
    """Lines after the header, and whether these are all."""
    with _open(file) as stream:
        _, below = _header_line(records.blocks(stream), _written(file))
        first = next(below, b"")
        second = next(below, b"")  # a last line without an end is a block of its own
        everything = next(below, None) is None
        return first + second if everything else first, everything


def _windows(file: SourceFile, first: bytes, window: int) -> list[bytes]:
    """Lines at the beginning, in the middle and at the end of a file, none of them twice.

    Only the first ones of a file that must be read in order.
    """
    compressed = fsspec.utils.infer_compression(path_of(file.path)) is not None
    encoding = _written(file).encoding
    if compressed or encoding == "utf-16":  # whose lines end between bytes
        return [first]
    with open_bytes(file) as stream:
        if not stream.seekable():
            return [first]
        size = stream.seek(0, io.SEEK_END)
        window = min(window, size // 4)
        found = [b"\n" + first[:window]]
        for start in ((size - window) // 2, size - window):
            stream.seek(start)
            found.append(as_utf8(io.BytesIO(stream.read(window)), encoding).read())
    found[2] = found[2].removesuffix(b"\n") + b"\n"
    return [text[text.find(b"\n") + 1 : text.rfind(b"\n") + 1] for text in found]


def _arrow_stream(data: bytes) -> pa.BufferReader:
    """A stream of a copy in Arrow's own memory, after a byte order mark.

    Arrow drops one mark at the beginning. If it dropped that of a cell, a quote after it would open
    a field that takes in the following lines.

    A thread of Arrow, which reads ahead, may drop the copy at any time. Dropping a Python object
    while the interpreter exits would abort the process.
    """
    marked = codecs.BOM_UTF8 + data
    buffer = pa.allocate_buffer(len(marked))
    np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(marked, np.uint8)
    return pa.BufferReader(buffer)


@contextmanager
def _open(file: SourceFile) -> Iterator[IO[bytes]]:
    """The decompressed content as UTF-8."""
    with open_bytes(file) as stream:
        yield as_utf8(stream, _written(file).encoding)


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


_MONTHS = (
    "jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|märz|apr(?:il)?|ma[iy]|jun[ei]?|jul[yi]?"
    "|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?"
)


_TIME_WORDS = re.compile(
    rf"(?<=\d)(?:t(?=\d)|z$)|(?<![^\W\d_])(?:[ap]m|utc|gmt|{_MONTHS})(?![^\W\d_])", re.IGNORECASE
)


def look_like_data(names: Iterable[str]) -> bool:
    """Whether a name is a number, a date, a time or a mark for a missing value; not if empty."""
    for name in map(str.strip, names):
        with contextlib.suppress(ValueError):
            float(name)  # including 1e5, inf and nan
            return True
        bare = _TIME_WORDS.sub("", name)
        is_date = any(map(str.isdigit, bare)) and not any(map(str.isalpha, bare))
        if is_date or (name and name in MISSING):
            return True
    return False
