"""Text in other encodings, as UTF-8, in bounded memory."""

from __future__ import annotations

import codecs
import io
from typing import IO, Any

from gramercy.schemas.source import Encoding

_CHUNK = 1 << 18  # bytes
SUBSTITUTE = "\x1a"  # for bytes that are not a character; see `tables.formats.lines`

_ERRORS = "gramercy-substitute"


def _substitute(error: UnicodeError) -> tuple[str, int]:
    """One substitute for each group of bytes that is not a character."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return SUBSTITUTE, error.end


codecs.register_error(_ERRORS, _substitute)


def as_utf8(stream: IO[bytes], encoding: Encoding) -> IO[bytes]:
    """The text of a stream, as UTF-8.

    A line of the result depends on that line of the input only: a group of bytes that is
    not a character becomes a control character, and the end of its line stays. UTF-8 is
    passed on as it is, errors included.
    """
    if encoding == "utf-8":
        return stream
    return io.BufferedReader(_Transcoder(stream, encoding), _CHUNK)


class _Transcoder(io.RawIOBase):
    """UTF-8 from another encoding."""

    def __init__(self, stream: IO[bytes], encoding: Encoding) -> None:
        self._stream, self._head = stream, b""
        self._ascii_alike = encoding != "utf-16"
        name = encoding if self._ascii_alike else self._byte_order()
        self._decoder = codecs.getincrementaldecoder(name)(_ERRORS)
        self._pending = memoryview(b"")

    def _byte_order(self) -> str:
        """Read the byte order mark of UTF-16, which may be missing."""
        mark = b""
        while len(mark) < 2 and (more := self._stream.read(2 - len(mark))):
            mark += more
        if mark == codecs.BOM_UTF16_BE:
            return "utf-16-be"
        self._head = b"" if mark == codecs.BOM_UTF16_LE else mark
        return "utf-16-le"

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        while not self._pending:
            chunk = self._head or self._stream.read(_CHUNK)
            self._head = b""
            self._pending = memoryview(self._transcode(chunk))
            if not chunk and not self._pending:
                return 0
        count = min(len(into), len(self._pending))
        into[:count] = self._pending[:count]
        self._pending = self._pending[count:]
        return count

    def _transcode(self, chunk: bytes) -> bytes:
        if self._ascii_alike and chunk.isascii():
            return chunk
        return self._decoder.decode(chunk, final=not chunk).encode()
