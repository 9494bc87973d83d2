"""Streams of compressed files and of text in other encodings, in bounded memory."""

from __future__ import annotations

import codecs
import io
import lzma
import struct
import zipfile
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
            is_same = self._ascii_alike and chunk.isascii()
            text = chunk if is_same else self._decoder.decode(chunk, final=not chunk).encode()
            self._pending = memoryview(text)
            if not chunk and not self._pending:
                return 0
        count = min(len(into), len(self._pending))
        into[:count] = self._pending[:count]
        self._pending = self._pending[count:]
        return count


_PACKED_CHUNK = 1 << 16  # bytes
_XZ_MEMORY = 128 << 20  # bytes; xz -9 needs 65 MiB
_ZIP_DIRECTORY = 1 << 20  # bytes
_ZIP_END, _ZIP_COMMENT = 22, 1 << 16  # bytes of the end record, and of the longest comment
_ZIP_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2}


class DecompressionError(ValueError):
    """A compressed file of an unsupported kind."""


class XzStream(io.RawIOBase):
    """The content of an .xz or .lzma file, in bounded memory; the format allows up to 4 GiB."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed = packed
        self._decompressor = self._new_decompressor()

    @staticmethod
    def _new_decompressor() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(memlimit=_XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        chunk = b""
        while not chunk:
            if self._decompressor.eof:  # another stream may follow, after padding
                rest = self._decompressor.unused_data.lstrip(b"\0")
                rest = rest or self._packed.read(_PACKED_CHUNK).lstrip(b"\0")
                if not rest:
                    return 0
                self._decompressor = self._new_decompressor()
            else:
                rest = self._packed.read(_PACKED_CHUNK) if self._decompressor.needs_input else b""
                if self._decompressor.needs_input and not rest:
                    raise EOFError
            try:
                chunk = self._decompressor.decompress(rest, len(into))
            except lzma.LZMAError as caught:
                if "emory" in str(caught):
                    raise DecompressionError from None
                raise
        into[: len(chunk)] = chunk
        return len(chunk)


def open_zip(packed: IO[bytes]) -> IO[bytes]:
    """The content of the only file in a ZIP archive, whose directory must fit into memory."""
    end = packed.seek(0, 2)
    packed.seek(max(0, end - _ZIP_END - _ZIP_COMMENT))
    tail = packed.read()
    _, end_record, fields = tail.rpartition(b"PK\5\6")
    directory_size = struct.unpack_from("<I", fields, 8)[0] if end_record else 0
    if directory_size > _ZIP_DIRECTORY:
        raise DecompressionError
    archive = zipfile.ZipFile(packed)
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1 or members[0].compress_type not in _ZIP_METHODS:
        raise DecompressionError
    return archive.open(members[0])
