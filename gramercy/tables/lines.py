"""CSV text in which every record is one line, so that no row can affect another.

A CSV parser lets an open quote swallow the following lines, and lets a lone carriage return split a
line in two: one person's cell could add, change or remove other people's rows, and no bound on the
sensitivity would hold. Here such a line, a blank line, and a line of more than 4 MiB is dropped and
counted as malformed: every line after the header is one row, for any content.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Callable, Iterator
from typing import IO

import numpy as np

BLOCK = 4 << 20  # bytes; also the longest line that is read

# With a comma as separator. A field is quoted ("" inside stands for a quote; text may follow the
# closing quote), or does not start with a quote. Possessive quantifiers keep matching linear in the
# length of a line.
_FIELD = rb'(?:"(?:[^"]++|"")*+"[^,]*+|[^",][^,]*+|)'
_BLANK_LINES = re.compile(rb"\n\n+")

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


def line_blocks(stream: IO[bytes], overlong: Callable[[], bytes]) -> Iterator[bytes]:
    """Blocks of complete lines, in bounded memory for lines of any length.

    Parameters
    ----------
    stream
        Any bytes.
    overlong
        Returns the replacement of a line that is longer than `BLOCK`.
    """
    unfinished, too_long = b"", False
    while block := stream.read(BLOCK):
        end, newline, after = block.partition(b"\n")
        too_long = too_long or len(unfinished) + len(end) > BLOCK
        unfinished = b"" if too_long else unfinished + end
        if not newline:
            continue
        lines, newline, rest = after.rpartition(b"\n")
        yield (overlong() if too_long else unfinished + b"\n") + lines + newline
        unfinished, too_long = rest, False
    if too_long:
        yield overlong()
    elif unfinished:
        yield unfinished + b"\n"


class RecordLines:
    """A readable stream of the lines of `stream` that are records.

    Parameters
    ----------
    stream
        CSV bytes.
    on_malformed
        Called with the number of malformed lines of each block.
    width
        Number of fields of a record, or None. With a width no line is dropped: a line that is not
        a record of this width becomes a record of empty fields.
    separator
        One byte that separates the fields of a record.
    """

    closed = False

    def __init__(
        self,
        stream: IO[bytes],
        on_malformed: Callable[[int], None],
        width: int | None = None,
        separator: bytes = b",",
    ) -> None:
        self._chunks = self._record_chunks(stream)
        self._on_malformed = on_malformed
        self._width = width
        self._separator = separator
        # One empty field is quoted, because parsers skip blank lines.
        self._empty_record = b'""' + separator * ((width or 1) - 1)
        self._buffer = b""

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; empty at the end."""
        while not self._buffer:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._buffer = chunk
        cut = len(self._buffer) if size < 0 else size
        part, self._buffer = self._buffer[:cut], self._buffer[cut:]
        return part

    def _record_chunks(self, stream: IO[bytes]) -> Iterator[bytes]:
        byte_order_mark = codecs.BOM_UTF8
        for block in line_blocks(stream, self._overlong_line):
            # A single byte of invalid UTF-8 would make a parser reject the whole table.
            lines = replace_invalid_utf8(
                block.removeprefix(byte_order_mark).replace(b"\r\n", b"\n")
            )
            byte_order_mark = b""
            if self._width is None:
                yield self._without_malformed(lines)
            else:
                yield from self._with_placeholders(lines.split(b"\n")[:-1])

    def _with_placeholders(self, lines: list[bytes]) -> Iterator[bytes]:
        """All lines, malformed ones replaced; in chunks, since the replacement may be longer."""
        count = max(1, BLOCK // (len(self._empty_record) + 1))
        for start in range(0, len(lines), count):
            part = [
                line if self._has_width(line) else self._empty_record
                for line in lines[start : start + count]
            ]
            self._on_malformed(sum(line is self._empty_record for line in part))
            yield b"".join(line + b"\n" for line in part)

    def _without_malformed(self, block: bytes) -> bytes:
        """The lines of a block that are records. Blank lines count as malformed."""
        quotes_or_returns = b'"' in block or b"\r" in block
        if not (quotes_or_returns or b"\n\n" in block or block[:1] == b"\n"):
            return block
        if not quotes_or_returns:  # only blank lines, possibly millions
            records = _BLANK_LINES.sub(b"\n", b"\n" + block)[1:]
            self._on_malformed(block.count(b"\n") - records.count(b"\n"))
            return records
        lines = block.split(b"\n")[:-1]
        kept = [line for line in lines if is_record(line, self._separator)]
        self._on_malformed(len(lines) - len(kept))
        return b"".join(line + b"\n" for line in kept)

    def _has_width(self, line: bytes) -> bool:
        if b'"' not in line:
            fields = line.count(self._separator) + 1
            return b"\r" not in line and line != b"" and fields == self._width
        fields = sum(1 for _ in _field_pattern(self._separator).finditer(line))
        return is_record(line, self._separator) and fields == self._width

    def _overlong_line(self) -> bytes:
        """The replacement of a line that is too long to keep."""
        if self._width is not None:
            return b"\n"  # blank, and so malformed
        self._on_malformed(1)
        return b""
