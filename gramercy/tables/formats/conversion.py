"""Files of other programs as Parquet: the steward's own step before a table is published.

Libraries read the files: calamine (Excel, ODS), pyreadstat (SPSS, Stata, SAS), pandas (fixed width)
and pyarrow. All cells of a column decide on its type together, and the whole table is in memory. A
release does neither, so it reads only formats that state their types, or none.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import datetime
import io
import json
import math
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from itertools import repeat
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from gramercy.schemas import families, wordings
from gramercy.schemas.column import MISSING
from gramercy.schemas.errors import GramercyError, TableError
from gramercy.schemas.notation import PLAIN, NumberNotation
from gramercy.tables.formats.csv_format import look_like_data
from gramercy.tables.formats.written_numbers import plain_texts


def _conversion_failed(file: str, reason: str, remedy: str) -> TableError:
    return families.FILE("{file}: {reason}.", "{remedy}", file=file, reason=reason, remedy=remedy)


Cells = Sequence[Any]
Columns = Iterator[tuple[str, Cells | pa.ChunkedArray]]

_EXACT = 2**53  # a smaller whole number has a double of its own
_LARGEST = 2**63  # whole numbers of Parquet are below
_MOST_CHARACTERS = 1000  # of a whole number as a text: Python parses none of thousands
# Then a page holds 16 texts that are longer than its usual size, and not 1024: see docs/privacy.md.
_TEXTS_BETWEEN_CHECKS = 16


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file is to be read; None and empty for the usual way."""

    sheet: str | None = None  # name of a sheet
    header: int | None = None  # number of the line or row that names the columns, from 1
    names: Sequence[str] = ()  # names of the columns of a file without such a line
    comment: str | None = None  # how lines start that are left out
    notation: NumberNotation = PLAIN  # of numbers that are text
    encoding: str | None = None  # encoding of text
    widths: Sequence[int] = ()  # characters of each column, if they have fixed widths
    codes: bool = False  # whether labelled values stay the numbers that they have in the file
    numbers: Sequence[str] = ()  # columns of numbers, in which other cells become missing

    @property
    def stated(self) -> list[str]:
        """Names of the options that say how this file is read."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        given |= given.pop("notation").model_dump(exclude_defaults=True)
        return [name for name, value in given.items() if value]


@dataclass(frozen=True)
class Converted:
    """A table for Parquet."""

    table: pa.Table = field(repr=False)  # the columns that can be published
    left_out: Mapping[str, str]  # the others, each with the reason
    # of the columns of `Reading.numbers`, how many cells are missing and were not so in the file
    cleared: Mapping[str, int]


def read_other(path: Path, reading: Reading) -> Converted:
    """Read a file of another program."""
    if not path.is_file():
        raise _conversion_failed(str(path), "no such file", "Correct the path.")
    kind = _TEXT if reading.widths else _KINDS.get(_suffix(path.name))
    if kind is None:
        remedy = f"Give it one of the endings {', '.join(_KINDS)}."
        raise _conversion_failed(str(path), "its name does not say what it is", remedy)
    try:
        codecs.lookup(reading.encoding or "utf-8")
    except LookupError:
        raise wordings.conversion_option(f"no encoding '{reading.encoding}'", _ENCODINGS) from None
    for option in reading.stated:
        if option not in kind.options:
            raise wordings.conversion_option(
                f"--{option} does not apply to {kind.words}", "Omit it."
            )
    failure: GramercyError
    try:
        return _converted(kind, path, reading)
    except (ModuleNotFoundError, FileNotFoundError, PermissionError):
        raise
    except GramercyError as caught:
        failure = caught
    except UnicodeError:
        encoding = reading.encoding or "UTF-8"
        failure = _conversion_failed(str(path), f"the text is not {encoding}", _ENCODINGS)
    except Exception:  # libraries raise any exception, and quote cells
        failure = _conversion_failed(str(path), f"cannot be read as {kind.words}", kind.remedy)
    try:
        raise failure from None
    finally:
        failure.__context__ = None


def in_one_spelling(table: pa.Table, ids: Sequence[str]) -> pa.Table:
    """The table with ids in capital letters and without blanks; see `IndexedPersons.alike`."""
    for name in ids:
        if name not in table.column_names:
            known = f"The columns are: {', '.join(table.column_names)}."
            raise wordings.conversion_option(f"--ids: no column '{name}'", known)
        cells = table[name].cast(pa.string()).to_pylist()
        folded = [None if cell is None else "".join(cell.upper().split()) for cell in cells]
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(folded, pa.string()))
    return table


def is_convertible(name: str) -> bool:
    """Whether files with such a name or URL can be converted, judged by the end of the name."""
    return _suffix(name) in _KINDS


def command_for_sheet(path: Path, target: Path) -> str | None:
    """The command that converts the first sheet of a workbook; None if the file is not one."""
    if _KINDS.get(_suffix(path.name)) is not _SHEET:
        return None
    likely = 1
    with contextlib.suppress(Exception):  # the command will say what is wrong with the file
        likely = _row_of_names(_sheet(path, None)[0].to_python(False, _FIRST_ROWS))
    command = f"gramercy convert {shlex.quote(str(path))} {shlex.quote(str(target))}"
    return f"{command} --header {likely}" if likely > 1 else command


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write a new file that only its owner may read; an existing one is an `OSError`."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as stream:
        try:
            pq.write_table(table, stream, write_batch_size=_TEXTS_BETWEEN_CHECKS)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


# Kinds of files.


def _sheet(path: Path, name: str | None) -> tuple[Any, str]:
    """A sheet, or the first visible one, and its name."""
    from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

    try:
        book = CalamineWorkbook.from_path(path)
    except CalamineError:
        reason = "not an Excel or ODS workbook, or it has a password"
        raise _conversion_failed(str(path), reason, "Save it again, without a password.") from None
    sheets = [each for each in book.sheets_metadata if each.typ == SheetTypeEnum.WorkSheet]
    shown = [each.name for each in sheets if each.visible == SheetVisibleEnum.Visible]
    chosen = shown[0] if name is None and shown else name
    if chosen is None or chosen not in [each.name for each in sheets]:
        named = ", ".join(repr(each.name) for each in sheets)
        missing = "no visible sheet" if chosen is None else f"no sheet '{chosen}'"
        raise _conversion_failed(str(path), missing, f"Name one by --sheet: {named}.")
    return book.get_sheet_by_name(chosen), chosen


def _rows_of_sheet(path: Path, reading: Reading) -> Columns:
    sheet, name = _sheet(path, reading.sheet)
    rows = sheet.to_python(skip_empty_area=False)
    return _under_header(path, rows, reading, f"sheet '{name}': ")


def _rows_of_text(path: Path, reading: Reading) -> Columns:
    text = _text_of(path, reading)
    if reading.widths:
        import pandas as pd

        table = pd.read_fwf(
            io.StringIO(text),
            widths=list(reading.widths),
            header=None,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
        )
        return _under_header(path, table.to_numpy(object).tolist(), reading)
    lines = [
        line
        for line in io.StringIO(text, newline="")
        if not (reading.comment and line.startswith(reading.comment))
    ]
    if reading.header is None and lines and _SEPARATOR_LINE.fullmatch(lines[0].strip("\r\n")):
        reading = replace(reading, header=2)
    number = (reading.header or 1) - 1
    above = [[line.strip()] for line in lines[:number]]
    layout = _layout_of("".join(lines[number : number + 1]))
    rows = layout.rows(lines[number:])
    while len(rows) > 1 and len(rows[0]) > 1 >= len(rows[-1]):  # a note below the table
        rows.pop()
    return _under_header(path, above + rows, reading)


_SEPARATOR_LINE = re.compile("sep=.")  # the first one, as Excel writes it
_USUAL = (",", ";", "\t", "|")
_UNUSUAL = ("::", "~", "^", "\x01", "\x1f", "\u00a6", "\u00a7")
_INSTEAD = "\x1f"  # of separators of several characters


@dataclass(frozen=True)
class _TextLayout:
    """How a line of text is divided into fields."""

    separator: str
    quote: str = '"'
    quotes_lines: bool = False  # whether every line is one field in quotes

    def rows(self, lines: Sequence[str]) -> list[list[str]]:
        """The fields; quotes may be doubled, or after backslashes."""
        if self.quotes_lines:
            inner = (next(csv.reader([line]), []) for line in lines)
            lines = ["".join(each[:1]) for each in inner]
        separator = self.separator
        if len(separator) > 1:
            lines, separator = [x.replace(separator, _INSTEAD) for x in lines], _INSTEAD
        keys: dict[str, Any] = {"delimiter": separator, "quotechar": self.quote, "strict": True}
        try:
            return list(csv.reader(lines, **keys))
        except csv.Error:
            if not any(f"\\{self.quote}" in line for line in lines):
                raise
        return list(csv.reader(lines, **keys, escapechar="\\"))


def _layout_of(line: str) -> _TextLayout:
    """The layout of a file whose columns are named in a line."""

    def fields(mark: str) -> list[str]:
        return next(csv.reader([line], delimiter=mark), [])

    bare = line.strip()
    best = max(_USUAL, key=lambda mark: len(fields(mark)))
    if best == "|" and "||" in bare:
        best = "||"
    if len(fields(best[0])) == 1:
        inner = _layout_of(fields(best)[0]) if bare[:1] == '"' else None
        if inner is not None and inner.separator in fields(best)[0]:
            return replace(inner, quotes_lines=True)
        best = next((mark for mark in _UNUSUAL if mark in bare), best)
    names = [each.strip() for each in bare.split(best)]
    in_apostrophes = all(len(x) > 1 and x[0] == x[-1] == "'" for x in names)
    return _TextLayout(best, "'" if in_apostrophes else '"')


def other_fields(line: str) -> list[str]:
    """The names in a header as a conversion reads it; empty if it is not a line of fields."""
    with contextlib.suppress(csv.Error):
        return next(iter(_layout_of(line).rows([line])), [])
    return []


_RULE = re.compile(r"[-+=|\s]*(--|==)[-+=|\s]*|-")


def _is_row(row: Sequence[Any], names: Sequence[str], *, is_first: bool) -> bool:
    """Whether a row has a cell, does not repeat the names, and is not a line under them."""
    cells = [cell for cell in row if cell not in {"", None}]
    if is_first and cells and set(map(str, cells)) != {"-"}:
        is_first = all(isinstance(x, str) and _RULE.fullmatch(x) for x in cells)
        if is_first and len(names) > 1:
            return False
    repeated = [" ".join(_text(cell).strip("\ufeff").split()) for cell in row] == list(names)
    return bool(cells) and not (repeated and len(names) > 1)


def _under_header(path: Path, rows: list[list[Any]], reading: Reading, place: str = "") -> Columns:
    """The columns below the header.

    Rows without any cell, and those that repeat the header, are left out.
    """
    above = reading.header or (0 if reading.names else 1)
    stated = rows[above - 1] if 0 < above <= len(rows) else []
    likely = _row_of_names(rows)
    if reading.header is None and not reading.names and likely > 1:
        raise _conversion_failed(
            str(path),
            f"{place}row 1 has at most half as many cells as row {likely}",
            f"If row {likely} names the columns, add: --header {likely}. If row 1 does: --header 1",
        )
    names = list(reading.names) or [" ".join(_text(cell).split()) for cell in stated]
    if not any(names):
        raise _conversion_failed(
            str(path), f"{place}row {above} is empty, and should name the columns", _HEADER
        )
    if not reading.names and look_like_data(filter(None, names)):
        raise _conversion_failed(
            str(path), f"{place}row {above} may be data, and should name the columns", _HEADER
        )
    below = [row for k, row in enumerate(rows[above:]) if _is_row(row, names, is_first=k == 0)]
    for number, row in enumerate(rows[above:], start=above + 1):
        if len(row) > len(names) and any(cell != "" for cell in row[len(names) :]):
            raise _conversion_failed(
                str(path), f"{place}row {number} has more cells than there are columns", _HEADER
            )
    for k, name in enumerate(names):
        yield name, [row[k] if k < len(row) else None for row in below]


def _row_of_names(rows: Sequence[Cells]) -> int:
    """The number of the row that seems to name the columns: the first, unless it is a title."""
    used = [sum(cell not in {"", None} for cell in row) for row in rows[:_FIRST_ROWS]] or [0]
    return used.index(max(used)) + 1 if 2 * used[0] <= max(used) else 1


def _json(path: Path, reading: Reading) -> Columns:
    text = _text_of(path, reading)
    if _suffix(path.name) == ".json":
        rows = json.loads(text)
    else:
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    names = dict.fromkeys(name for row in rows for name in row)
    return ((name, [row.get(name) for row in rows]) for name in names)


def _statistics(path: Path, reading: Reading) -> Columns:
    """Values that SPSS or Stata declares as missing are missing.

    The values of a column become labels only if all that occur have one, each its own: a scale of
    which only the ends are labelled stays numbers.
    """
    import pyreadstat

    readers: dict[str, Callable[..., Any]] = {
        ".por": pyreadstat.read_por,
        ".dta": pyreadstat.read_dta,
        ".xpt": pyreadstat.read_xport,
        ".sas7bdat": pyreadstat.read_sas7bdat,
    }
    read = readers.get(_suffix(path.name), pyreadstat.read_sav)
    encoding = {} if reading.encoding is None else {"encoding": reading.encoding}
    try:
        columns, facts = read(str(path), output_format="dict", **encoding)
    except pyreadstat.ReadstatError as error:
        if "encoding" in str(error) or "invalid byte" in str(error):
            raise UnicodeError from None
        raise
    for name, cells in columns.items():
        labels = {} if reading.codes else facts.variable_value_labels.get(name, {})
        present = set(map(_cell, cells)) - {None}
        if present and present <= labels.keys() and len(set(labels.values())) == len(labels):
            yield name, [labels.get(cell) for cell in cells]
        else:
            yield name, list(cells)


def _arrow(path: Path, reading: Reading) -> Columns:
    with pa.OSFile(str(path)) as stream:
        try:
            table = pa.ipc.open_file(stream).read_all()
        except pa.ArrowInvalid:
            stream.seek(0)
            table = pa.ipc.open_stream(stream).read_all()
    table.validate(full=True)  # Arrow trusts a file's offsets
    return zip(table.column_names, table.columns, strict=True)


def _text_of(path: Path, reading: Reading) -> str:
    with LocalFileSystem().open(str(path), "rb", compression="infer") as stream:
        data: bytes = stream.read()
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    usual = "utf-16" if data.startswith(marks) else "utf-8-sig"
    return data.decode(reading.encoding or usual)


@dataclass(frozen=True)
class _Kind:
    """A kind of files: how messages name it, what reads it, and what may be stated of it."""

    words: str
    read: Callable[[Path, Reading], Columns]
    options: frozenset[str]
    remedy: str = "Write the file again, or check that its name ends as its format does."


_ENCODINGS = "State it: --encoding cp1252 (Western Windows), latin-1, cp1250, utf-16 ..."
_HEADER = "State its number: --header 3. Or name the columns, if no row does: --names A,B,C."
_FIRST_ROWS = 20  # in which the names of columns are expected
_ROWS = {*NumberNotation.model_fields, "header", "names", "numbers"}
_SHEET = _Kind("an Excel or ODS workbook", _rows_of_sheet, frozenset({"sheet", *_ROWS}))
_TEXT = _Kind(
    "text in columns",
    _rows_of_text,
    frozenset({"encoding", "widths", "comment", *_ROWS}),
    "State the width of every column, if they are fixed: --widths 8,3,12. Close open quotes.",
)
_LABELLED = _Kind("SPSS or Stata", _statistics, frozenset({"encoding", "codes", "numbers"}))
_KINDS = {
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), _SHEET),
    **dict.fromkeys((".csv", ".tsv", ".tab", ".psv", ".txt", ".dat", ".fwf", ".asc"), _TEXT),
    **dict.fromkeys((".sav", ".zsav", ".dta"), _LABELLED),
    ".por": _Kind("SPSS", _statistics, frozenset({"codes", "numbers"})),
    **dict.fromkeys(
        (".sas7bdat", ".xpt"), _Kind("SAS", _statistics, frozenset({"encoding", "numbers"}))
    ),
    **dict.fromkeys(
        (".json", ".jsonl", ".ndjson"),
        _Kind("JSON", _json, frozenset({"encoding", "numbers"}), "Write one object for each row."),
    ),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), _Kind("Arrow IPC", _arrow, frozenset())),
}


def _suffix(name: str) -> str:
    """The end of a name that states the format, without that of a compression."""
    bare = re.sub(r"\.(gz|bz2|xz|zip)$", "", name.lower())
    return PurePosixPath(bare).suffix


# Columns.


def _converted(kind: _Kind, path: Path, reading: Reading) -> Converted:
    positions: dict[str, int] = {}
    columns: dict[str, pa.Array] = {}
    left_out: dict[str, str] = {}
    cleared: dict[str, int] = {}
    for position, (name, column) in enumerate(kind.read(path, reading), start=1):
        if name and positions.setdefault(name, position) != position:
            raise wordings.column_repeated(str(path), positions[name], position)
        if not name:
            left_out[f"column {position}"] = "it has no name"
            continue
        if not isinstance(column, pa.ChunkedArray):
            cells = column
        elif pa.types.is_primitive(column.type) and not pa.types.is_temporal(column.type):
            columns[name] = column
            continue
        else:
            cells = column.to_pylist()
        if any(isinstance(cell, list | dict | bytes) for cell in cells):
            left_out[name] = "lists, objects or binary data"
        else:
            plain = [_cell(cell) for cell in cells]
            is_spelt = "decimal" in kind.options
            columns[name] = _array(plain, reading, name in reading.numbers, is_spelt)
            if name in reading.numbers:
                cleared[name] = columns[name].null_count - plain.count(None)
    unknown = set(reading.numbers) - columns.keys()
    if unknown:
        known = f"The columns are: {', '.join(columns)}."
        raise wordings.conversion_option(f"--numbers: no column '{min(unknown)}'", known)
    if not columns:
        raise _conversion_failed(str(path), "there is no column of numbers or text", kind.remedy)
    return Converted(pa.table(columns), left_out, cleared)


def _cell(cell: Any) -> Any:
    """A cell with None for all that is missing, and dates and times as text of ISO 8601."""
    if isinstance(cell, str):
        return None if cell.strip() in MISSING else cell
    if isinstance(cell, datetime.datetime):
        return cell.isoformat() if cell.time() != datetime.time() else cell.date().isoformat()
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    if isinstance(cell, datetime.timedelta):
        return cell.total_seconds()
    return None if isinstance(cell, float) and math.isnan(cell) else cell


def _array(cells: Cells, reading: Reading, forced: bool, is_spelt: bool) -> pa.Array:
    """Numbers if all cells are, with `forced` those that are; else text, or truth values.

    With `is_spelt`, numbers may be text, as they often are in text files and sheets. Digits after a
    leading zero stay text, because they name something.
    """
    types = {type(cell) for cell in cells} - {type(None)}
    if types == {bool} and not forced:
        return pa.array(cells, pa.bool_())
    if not types:
        return pa.nulls(len(cells))
    spelt: Iterator[str | None] = repeat(None)
    if is_spelt or forced:
        text = [cell.encode("utf-8", "replace").decode() for cell in cells if isinstance(cell, str)]
        trimmed = pc.ascii_trim_whitespace(pa.array(text, pa.string()))
        spelt = iter(plain_texts(trimmed, reading.notation).to_pylist())
    numbers = [
        _spelt_number(next(spelt), forced) if isinstance(cell, str) else _number(cell)
        for cell in cells
    ]
    if not forced and (bool in types or numbers.count(None) > cells.count(None)):
        return pa.array([None if cell is None else _text(cell) for cell in cells], pa.string())
    doubles = [number for number in numbers if isinstance(number, float)]
    if all(number.is_integer() and abs(number) < _EXACT for number in doubles):
        return pa.array([None if n is None else int(n) for n in numbers], pa.int64())
    return pa.array([None if n is None else float(n) for n in numbers], pa.float64())


def _number(cell: Any) -> float | None:
    """A number that is not text; None if it is larger than a whole number of Parquet."""
    if isinstance(cell, int):
        return cell if abs(cell) < _LARGEST else None
    return float(cell) if isinstance(cell, float | Decimal) else None


def _spelt_number(text: str | None, forced: bool) -> float | None:
    """A number as `plain_texts` writes it."""
    if text is None or len(text) > _MOST_CHARACTERS:
        return None
    if re.match(r"[+-]?0\d", text) and not forced:
        return None
    return _number(int(text)) if re.fullmatch(r"[+-]?\d+", text) else float(text)


def _text(cell: Any) -> str:
    """Text, with whole numbers as Excel shows them: 2.0 is 2."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < _EXACT:
        return str(int(cell))
    return "" if cell is None else str(cell).encode("utf-8", "replace").decode()
