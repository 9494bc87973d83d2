"""How a table is written that no contract describes yet, from the first lines of CSV files.

Lines above the names of columns, such as a title or comments, are recognised by their numbers of
fields. This looks at lines that may be rows. What it uses of them is how many fields they have, and
whether any field looks like a number, a date or a missing value. So a draft can reveal of the rows
only that they are as wide as their header and contain a number. No text of a line is passed on,
except the names in the line that is taken for the header: it is like no row below it, which have
numbers where it has words. Where that cannot be said, the steward has to name the columns.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import get_args

from gramercy.schemas import families
from gramercy.schemas.model import nfc
from gramercy.schemas.source import CsvFormat, Encoding, Files, Separator
from gramercy.tables.formats.csv_format import CsvTables, look_like_data, open_bytes
from gramercy.tables.formats.file_kinds import conversion, unusual_layout
from gramercy.tables.formats.lines import BLOCK
from gramercy.tables.formats.registry import format_of
from gramercy.tables.formats.source import Source, open_source
from gramercy.tables.formats.table_format import SourceFile

_LINES, _BYTES = 20, 1 << 16  # that are looked at, after the first line
_COMMENT = "#"


def detect_format(path: str, names: Collection[str] = ()) -> tuple[Source, CsvFormat | None, str]:
    """Open a table whose format no contract has stated yet.

    Returns also the format of the first CSV file, if a contract must state it, and what was found
    above the header, in words. Decimal marks are not in headers. The encoding of a header without
    accents is taken for UTF-8.

    Parameters
    ----------
    names
        Columns that the steward has named: the line that has them is the header.
    """
    source = open_source(Files(path=path, separator=","))
    files = [file for file in source.files if isinstance(file.format, CsvTables)]
    if not files:
        return source, None, ""
    written, found = _format_of(files[0], names)
    if written == CsvFormat() and all(format_of(file.path) is not None for file in files):
        return open_source(path), None, ""
    return open_source(Files(path=path, **written.model_dump())), written, found


@dataclass(frozen=True)
class _Layout:
    """The first lines as they are with one separator."""

    separator: Separator
    header: int  # index of the line that has the names of columns, or may have them
    widths: tuple[int, ...]  # the number of fields of every line; 1 with a single one that is used
    is_certain: bool

    @property
    def in_words(self) -> str:
        """The number of fields in the first line and in the header."""
        first, header = (
            "no field" if n == 0 else "one field" if n == 1 else f"{n} fields"
            for n in (self.widths[0], self.widths[self.header])
        )
        return f"line 1 has {first}, and line {self.header + 1} has {header}"

    @property
    def has_one_less(self) -> bool:
        """Whether the first line has one field less than those below."""
        return self.widths[0] > 1 and self.widths[0] + 1 == self.widths[self.header]

    @property
    def score(self) -> tuple[int, int]:
        """How many lines are as wide as the header, and how wide it is; more is more likely."""
        width = self.widths[self.header]
        agreeing = self.widths[self.header :].count(width) if width > 1 and self.is_certain else 0
        return agreeing, width


def _format_of(file: SourceFile, names: Collection[str]) -> tuple[CsvFormat, str]:
    with file.redacted_errors():
        with open_bytes(file) as stream:
            data = stream.readline(BLOCK)
            is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            # In UTF-16, the end of a line is not where a byte looks like it.
            data += stream.read(BLOCK if is_wide else _BYTES)
        if is_wide:
            text = data.decode("utf-16", "replace")
        else:
            text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
        lines = [line.rstrip("\r") for line in text.split("\n")[: _LINES + 1]]
    if "\r" in lines[0]:
        raise unusual_layout(file.display_name, "lines end in carriage returns, as on old Macs")
    with file.redacted_errors():
        layouts = [_layout(lines, separator, names) for separator in get_args(Separator)]
    # The first of the separators, if several do equally well.
    layout = max(layouts, key=lambda each: each.score)
    doubtful = [each for each in layouts if not each.is_certain]
    if doubtful and not layout.score[0]:
        raise families.DRAFT(
            "{file}: {widths}. It cannot be seen which line names the columns.",
            "If a line does, list its names with --columns. Otherwise add such a line, with as "
            "many names as a row has cells.{trailing}",
            file=file.display_name,
            widths=doubtful[0].in_words,
            trailing=_trailing(file.display_name) * (doubtful[0].has_one_less),
        )
    header = "\n".join(lines[: layout.header + 1])
    encoding: Encoding = "utf-16" if is_wide else "latin-1"  # which any bytes are
    for each in () if is_wide else ("cp1252", "utf-8"):
        with contextlib.suppress(UnicodeDecodeError):
            header.encode("utf-8", "surrogateescape").decode(each)
            encoding = "utf-8" if each == "utf-8" else "cp1252"
    number, comment = layout.header + 1, None
    *above, named = (line.startswith(_COMMENT) for line in lines[:number] if line or number == 1)
    if above and all(above) and not named:
        number, comment = number - len(above), _COMMENT
    keys = {"separator": layout.separator, "encoding": encoding}
    written = CsvFormat.model_validate(keys | {"header": number, "comment": comment})
    return written, layout.in_words if layout.header else ""


def _trailing(file: str) -> str:
    """What to do if it is the first line, which lacks a separator at its end."""
    command, target = conversion(file)
    return (
        f" If it is line 1, and the others end in a separator or have quotes after backslashes, "
        f"run '{command}', and draft for {target}."
    )


def _layout(lines: Sequence[str], separator: Separator, names: Collection[str]) -> _Layout:
    fields = [next(csv.reader([line], delimiter=separator), []) for line in lines]
    used = [sum(1 for each in line if each.strip()) for line in fields]
    widths = tuple(len(line) if n > 1 else n for line, n in zip(fields, used, strict=True))
    for k, line in enumerate(fields):
        if names and {*names} <= {nfc(name) for name in line}:
            return _Layout(separator, k, widths, is_certain=True)
    below = [width for width in widths[1:] if width]
    width, lines_of_width = Counter(below or [0]).most_common(1)[0]
    differs = widths[0] < width or (lines[0].startswith(_COMMENT) and widths[0] != width)
    if width < 2 or not differs or 2 * lines_of_width < len(below):
        return _Layout(separator, 0, widths, is_certain=True)
    as_wide = [k for k in range(1, len(lines)) if widths[k] == width]
    header = next((k for k in as_wide if not lines[k].startswith(_COMMENT)), as_wide[0])
    if header - 1 in as_wide and look_like_data(fields[header]):  # the names are in a comment
        header -= 1
    is_certain = not look_like_data(fields[header]) and any(
        map(look_like_data, fields[header + 1 :])
    )
    return _Layout(separator, header, widths, is_certain)
