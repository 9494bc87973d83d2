"""CSV text in which every record is one line, so that no row can affect another.

A CSV parser lets an open quote swallow the following lines, and lets a lone carriage return split a
line in two: one person's cell could add, change or remove other people's rows, and no bound on the
sensitivity would hold. Here such a line, a blank line, a comment, and a line of more than 4 MiB is
dropped and counted as malformed: every line after the header is one row, for any content.
"""

from __future__ import annotations

import codecs
import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import IO

import numpy as np

BLOCK = 4 << 20  # bytes; also the longest line that is read

# With a comma as separator. A field is quoted ("" inside stands for a quote; text may follow the
# closing quote), or does not start with a quote. Possessive quantifiers keep matching linear in the
# length of a line.
_FIELD = rb'(?:"(?:[^"]++|"")*+"[^,]*+|[^",][^,]*+|)'
_BLANK_LINES = re.compile(rb"\n\n+")

_LINE_END = 0x0A
_SUBSTITUTE = 0x1A  # not a digit, blank, comma, quote or line end, and in no declared level


def replace_invalid_utf8(data: bytes) -> bytes:
    """Replace every byte that is not part of valid UTF-8 by a control character.

    The length stays the same, so that no line grows beyond the limit already checked. Takes linear
    time for any input.
    """
    if data.isascii():
        return data
    marked = data.decode("utf-8", "surrogateescape").encode("utf-8", "replace")  # invalid: "?"
    if marked == data:
        return data
    replaced = np.frombuffer(marked, np.uint8)
    valid = replaced == np.frombuffer(data, np.uint8)
    return np.where(valid, replaced, _SUBSTITUTE).tobytes()


@functools.cache
def _record_pattern(separator: bytes) -> re.Pattern[bytes]:
    """Matches a line that is one record."""
    mark = re.escape(separator)
    field = _FIELD.replace(b",", mark)
    return re.compile(field + rb"(?:" + mark + field + rb")*+")


@functools.cache
def _field_pattern(separator: bytes) -> re.Pattern[bytes]:
    """Matches each field of a record."""
    mark = re.escape(separator)
    return re.compile(rb"(?:^|" + mark + rb")" + _FIELD.replace(b",", mark))


def is_record(line: bytes, separator: bytes = b",") -> bool:
    """Whether a line, without its end, is exactly one record."""
    if not line or b"\r" in line:
        return False
    return b'"' not in line or _record_pattern(separator).fullmatch(line) is not None


def line_blocks(stream: IO[bytes], at_once: int = BLOCK) -> Iterator[bytes]:
    """Blocks of complete lines, in bounded memory: one longer than `BLOCK` becomes a blank line.

    So many bytes are read at once; lines are the same for any number.
    """
    unfinished, too_long = b"", False
    while block := stream.read(at_once):
        first, last = block.find(b"\n"), block.rfind(b"\n") + 1
        end = first if last else len(block)
        too_long = too_long or len(unfinished) + end > BLOCK
        if not last:
            unfinished = b"" if too_long else unfinished + block
            continue
        lines = memoryview(block)[first if too_long else 0 : last]
        yield b"".join([b"" if too_long else unfinished, lines])
        unfinished, too_long = block[last:], False
    if too_long:
        yield b"\n"
    elif unfinished:
        yield unfinished + b"\n"


def plain_lines(block: bytes) -> bytes:
    """Lines with one kind of end, and without bytes that are not UTF-8.

    A single such byte would make a parser reject the whole table.
    """
    return replace_invalid_utf8(block.replace(b"\r\n", b"\n") if b"\r" in block else block)


def below_header(
    blocks: Iterator[bytes], number: int, comment: bytes, skipped: int = 0
) -> tuple[bytes | None, Iterator[bytes]]:
    """The line that names the columns, and the blocks of lines below it.

    Parameters
    ----------
    blocks
        Blocks of complete lines.
    number
        The line's number among those that are not comments, from 1. No quote in the lines before
        it counts.
    comment
        How comments start; empty if there are none.
    skipped
        The number of lines below it that are not rows.

    Returns
    -------
        None, and no block, if there are fewer lines.
    """
    header, last = None, number + skipped
    for block in blocks:
        start = 0
        while start < len(block):
            line = block[start : block.index(b"\n", start) + 1]
            start += len(line)
            last -= not (comment and line.startswith(comment))
            if last == skipped and header is None:
                header = line
            if last == 0:
                return header, itertools.chain([block[start:]], blocks)
    return header, iter(())


def are_simple(lines: bytes) -> bool:
    """Whether plain lines are records whose fields end at every separator, and none is blank."""
    if b'"' in lines or b"\r" in lines:
        return False
    ends = np.frombuffer(lines, np.uint8) == _LINE_END  # NumPy lets other threads run meanwhile
    return not (ends[:1].any() or (ends[1:] & ends[:-1]).any())


class LineFault(Enum):
    """Why a line is not a row, in words."""

    BLANK = "are blank"
    COMMENT = "are comments"
    BACKSLASH = "have quotes after backslashes"
    OPEN_QUOTE = "open quotes and do not close them"
    TRAILING = "have a separator after the last field, which the header does not have"
    WIDER = "have more fields than the header"
    NARROWER = "have fewer fields than the header"
    OTHER = "have carriage returns within them, or are not fields"


@dataclass(frozen=True, repr=False)
class FaultyLines:
    """The lines of a file with one fault. Private."""

    fault: LineFault
    lines: int  # how many
    # first, last: their numbers in the file, from 1
    first: int
    last: int


class Records:
    """The lines of CSV text that are records.

    Parameters
    ----------
    width
        Number of fields of a record, or None. With a width no line is dropped: a line that is not
        a record of this width becomes a record of empty fields.
    separator
        One byte that separates the fields of a record.
    comment
        How lines start that are not records; empty if no start says so.
    """

    def __init__(
        self, width: int | None = None, separator: bytes = b",", comment: bytes = b""
    ) -> None:
        self._width, self._separator, self._comment = width, separator, comment
        # One empty field is quoted, because parsers skip blank lines.
        self._empty_record = b'""' + separator * ((width or 1) - 1)

    def blocks(self, stream: IO[bytes], at_once: int = BLOCK) -> Iterator[bytes]:
        """Blocks of complete lines of a stream, without a byte order mark, for `of_block`."""
        for k, block in enumerate(line_blocks(stream, at_once)):
            yield block if k else block.removeprefix(codecs.BOM_UTF8)

    def of_block(self, block: bytes) -> tuple[list[bytes], int]:
        """The records of a block of lines, each with its end, and the number of other lines.

        Several pieces, since the replacements of malformed lines may be longer.
        """
        lines = plain_lines(block)
        if self._width is None:
            return self._without_malformed(lines)
        return self._with_placeholders(lines.split(b"\n")[:-1])

    def _with_placeholders(self, lines: list[bytes]) -> tuple[list[bytes], int]:
        count, malformed = max(1, BLOCK // (len(self._empty_record) + 1)), 0
        pieces = []
        for start in range(0, len(lines), count):
            part = [
                line if self._has_width(line) else self._empty_record
                for line in lines[start : start + count]
            ]
            malformed += sum(line is self._empty_record for line in part)
            pieces.append(b"".join(line + b"\n" for line in part))
        return pieces, malformed

    def _without_malformed(self, block: bytes) -> tuple[list[bytes], int]:
        """The lines of a block that are records. Blank lines count as malformed."""
        has_comment = self.has_comment(block)
        if are_simple(block) and not has_comment:
            return [block], 0
        if not (
            b'"' in block or b"\r" in block or has_comment
        ):  # only blank lines, possibly millions
            records = _BLANK_LINES.sub(b"\n", b"\n" + block)[1:]
            return [records], block.count(b"\n") - records.count(b"\n")
        lines = block.split(b"\n")[:-1]
        kept = [
            line
            for line in lines
            if is_record(line, self._separator) and not self.has_comment(line)
        ]
        return [b"".join(line + b"\n" for line in kept)], len(lines) - len(kept)

    def fault(self, line: bytes) -> LineFault | None:
        """Why a line without its end is not a record of the width; None if it is one."""
        width = self._width
        if width is None or self._has_width(line):
            return None
        record = is_record(line, self._separator)
        fields = sum(1 for _ in _field_pattern(self._separator).finditer(line))
        faults = {
            LineFault.BLANK: not line.strip(),
            LineFault.COMMENT: self.has_comment(line),
            LineFault.BACKSLASH: b'\\"' in line,
            LineFault.OPEN_QUOTE: not record and line.count(b'"') % 2 == 1,
            LineFault.OTHER: not record,
            LineFault.TRAILING: fields == width + 1 and line.endswith(self._separator),
            LineFault.WIDER: fields > width,
            LineFault.NARROWER: True,
        }
        return next(fault for fault, is_of_line in faults.items() if is_of_line)

    def has_comment(self, lines: bytes) -> bool:
        """Whether any of these lines is a comment."""
        mark = self._comment
        return mark != b"" and (lines.startswith(mark) or b"\n" + mark in lines)

    def _has_width(self, line: bytes) -> bool:
        if self.has_comment(line):
            return False
        if b'"' not in line:
            fields = line.count(self._separator) + 1
            return b"\r" not in line and line != b"" and fields == self._width
        fields = sum(1 for _ in _field_pattern(self._separator).finditer(line))
        return is_record(line, self._separator) and fields == self._width
