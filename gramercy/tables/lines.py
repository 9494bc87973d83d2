"""CSV text in which every record is one line, so that no row can reach into another.

A CSV parser lets an open quote swallow the lines that follow it, and a lone carriage return split a
line in two: one person's cell could then add, change or remove other people's rows, and no
sensitivity would hold. Here such a line, a blank one, and one of more than 4 MiB, is dropped and
counted as a malformed row: every line after the header is a row, whatever is in it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import IO

import numpy as np

BLOCK = 4 << 20  # bytes; also the longest line that is read

# Fields are quoted ("" inside stands for a quote; text may follow the closing one), or do not begin
# with a quote. Possessive, so that no line takes more than linear time.
_FIELD = rb'(?:"(?:[^"]++|"")*+"[^,]*+|[^",][^,]*+|)'
_RECORD = re.compile(_FIELD + rb"(?:," + _FIELD + rb")*+")
_BLANKS = re.compile(rb"\n\n+")
_FIELDS = re.compile(rb"(?:^|,)" + _FIELD)


_SUBSTITUTE = 0x1A  # no digit, blank, comma, quote or line end, and in no declared level


def valid_utf8(data: bytes) -> bytes:
    """Text of the same length, in which every byte that is not part of valid UTF-8 is replaced.

    One byte stands for one byte, so that no line grows beyond the limit that it was held to. Takes
    linear time, whatever the bytes are.
    """
    if data.isascii():
        return data
    marked = data.decode("utf-8", "surrogateescape").encode("utf-8", "replace")  # as "?"
    if marked == data:
        return data
    sound = np.frombuffer(marked, np.uint8)
    return np.where(sound == np.frombuffer(data, np.uint8), sound, _SUBSTITUTE).tobytes()


def is_record(line: bytes) -> bool:
    """Whether a line, without its end, is one whole record."""
    if not line or b"\r" in line:
        return False
    return b'"' not in line or _RECORD.fullmatch(line) is not None


class RecordLines:
    """A readable stream of the lines of `stream` that are whole records.

    Parameters
    ----------
    stream
        CSV bytes.
    on_broken
        Called with the number of lines that were none.
    width
        Of a record. Where it is given nothing is dropped: a line that is no record of this width
        becomes one of empty fields.
    """

    closed = False

    def __init__(
        self, stream: IO[bytes], on_broken: Callable[[int], None], width: int | None = None
    ) -> None:
        self._pieces = self._sound_pieces(stream)
        self._on_broken = on_broken
        self._width = width
        # A blank line would be skipped by whoever reads it, so that one empty field is quoted.
        self._empty = b'""' + b"," * ((width or 1) - 1)
        self._ready = b""

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; empty at the end."""
        while not self._ready:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._ready = piece
        cut = len(self._ready) if size < 0 else size
        part, self._ready = self._ready[:cut], self._ready[cut:]
        return part

    def _sound_pieces(self, stream: IO[bytes]) -> Iterator[bytes]:
        mark = codecs.BOM_UTF8
        for block in self._whole_lines(stream):
            # Parsers give up on a table for one byte that is not UTF-8.
            lines = valid_utf8(block.removeprefix(mark).replace(b"\r\n", b"\n"))
            mark = b""
            if self._width is None:
                yield self._records(lines)
            else:
                yield from self._in_place(lines.split(b"\n")[:-1])

    def _in_place(self, lines: list[bytes]) -> Iterator[bytes]:
        """All lines, what is no record by its stand-in; in pieces, since that may be longer."""
        some = max(1, BLOCK // (len(self._empty) + 1))
        for start in range(0, len(lines), some):
            part = [x if self._whole(x) else self._empty for x in lines[start : start + some]]
            self._on_broken(sum(line is self._empty for line in part))
            yield b"".join(line + b"\n" for line in part)

    def _records(self, block: bytes) -> bytes:
        """The records among whole lines. A blank line is one that has lost everything."""
        if not (b'"' in block or b"\r" in block or b"\n\n" in block or block[:1] == b"\n"):
            return block
        if not (
            b'"' in block or b"\r" in block
        ):  # blank lines alone, of which there may be millions
            sound = _BLANKS.sub(b"\n", b"\n" + block)[1:]
            self._on_broken(block.count(b"\n") - sound.count(b"\n"))
            return sound
        lines = block.split(b"\n")[:-1]
        kept = [line for line in lines if is_record(line)]
        self._on_broken(len(lines) - len(kept))
        return b"".join(line + b"\n" for line in kept)

    def _whole(self, line: bytes) -> bool:
        if b'"' not in line:
            return b"\r" not in line and line != b"" and line.count(b",") + 1 == self._width
        return is_record(line) and sum(1 for _ in _FIELDS.finditer(line)) == self._width

    def _lost(self) -> bytes:
        """What stands for a line that is too long to be kept."""
        if self._width is not None:
            return b"\n"  # blank, and so no record
        self._on_broken(1)
        return b""

    def _whole_lines(self, stream: IO[bytes]) -> Iterator[bytes]:
        """Blocks that end with a line, in bounded memory however long a line is."""
        begun, too_long = b"", False
        while block := stream.read(BLOCK):
            end, newline, after = block.partition(b"\n")
            too_long = too_long or len(begun) + len(end) > BLOCK
            begun = b"" if too_long else begun + end
            if not newline:
                continue
            whole, newline, rest = after.rpartition(b"\n")
            yield (self._lost() if too_long else begun + b"\n") + whole + newline
            begun, too_long = rest, False
        if too_long:
            yield self._lost()
        elif begun:
            yield begun + b"\n"
