"""Unpacking piece by piece what libraries unpack as a whole, or with any amount of memory."""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
from abc import ABC, abstractmethod
from typing import IO, Any, Protocol

import pyarrow as pa

_PIECE = 1 << 16  # bytes
_WINDOW = 1 << 20  # bytes back that a copy reaches; compressors reach 64 KiB
_XZ_MEMORY = 128 << 20  # bytes; xz -9 takes 65 MiB
_ZIP_DIRECTORY = 1 << 20  # bytes
_ZIP_END, _ZIP_COMMENT = 22, 1 << 16
_ZIP_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2}
_BY_ARROW = {"GZIP": "gzip", "ZSTD": "zstd", "BROTLI": "brotli"}


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes; empty at the end."""


class UnpackError(ValueError):
    """Bytes that are not packed in a way that can be unpacked here."""


class Xz(io.RawIOBase):
    """The content of an .xz or .lzma file; its own window, which may be 4 GiB, is bounded.

    Parameters
    ----------
    packed
        The file.
    """

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed = packed
        self._unpack = self._begun()

    @staticmethod
    def _begun() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(memlimit=_XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        piece = b""
        while not piece:
            if self._unpack.eof:  # another stream may follow, after padding
                rest = self._unpack.unused_data.lstrip(b"\0")
                rest = rest or self._packed.read(_PIECE).lstrip(b"\0")
                if not rest:
                    return 0
                self._unpack = self._begun()
            else:
                rest = self._packed.read(_PIECE) if self._unpack.needs_input else b""
                if self._unpack.needs_input and not rest:
                    raise EOFError
            try:
                piece = self._unpack.decompress(rest, len(into))
            except lzma.LZMAError as caught:
                if "emory" in str(caught):
                    raise UnpackError from None
                raise
        into[: len(piece)] = piece
        return len(piece)


def zipped(packed: IO[bytes]) -> IO[bytes]:
    """The content of the one file in a ZIP.

    Raises
    ------
    UnpackError
        If there are more, or it would take any amount of memory.
    """
    end = packed.seek(0, 2)
    packed.seek(max(0, end - _ZIP_END - _ZIP_COMMENT))
    tail = packed.read()
    _, found, about = tail.rpartition(b"PK\5\6")
    directory = struct.unpack_from("<I", about, 8)[0] if found else 0
    if directory > _ZIP_DIRECTORY:
        raise UnpackError
    archive = zipfile.ZipFile(packed)
    held = [each for each in archive.infolist() if not each.is_dir()]
    if len(held) != 1 or held[0].compress_type not in _ZIP_METHODS:
        raise UnpackError
    return archive.open(held[0])


class Part:
    """So many bytes of a file, from a place on; others may read the file in between.

    Parameters
    ----------
    stream, at, size
        Which.
    """

    closed = False

    def __init__(self, stream: IO[bytes], at: int, size: int) -> None:
        self._stream, self._at, self._left = stream, at, size

    def close(self) -> None:
        """Nothing: the file is others'."""

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; empty at the end."""
        self._stream.seek(self._at)
        piece = self._stream.read(self._left if size < 0 else min(size, self._left))
        self._at += len(piece)
        self._left -= len(piece)
        return piece


def unpacked(part: Part, codec: str) -> Readable:
    """What a part of a Parquet file says that is compressed by this codec, as Arrow names it.

    Raises
    ------
    UnpackError
        If it cannot be read piece by piece.
    """
    if codec == "UNCOMPRESSED":
        return part
    if codec in _BY_ARROW:
        stream: Readable = pa.CompressedInputStream(pa.PythonFile(part, "r"), _BY_ARROW[codec])
        return stream
    if codec == "SNAPPY":
        return _Snappy(part)
    if codec == "LZ4":
        return _Lz4(part)
    raise UnpackError


class _Copying(ABC):
    """Text that is told by literals and by copies of itself; no more than a window of it is kept.

    What tells it is read by `_next`, one literal and one copy at a time; either may be as long as
    the text, so that both are worked off in pieces.
    """

    def __init__(self, packed: Part) -> None:
        self._packed = packed
        self._ahead, self._at = b"", 0
        self._out, self._given = bytearray(), 0
        self._literal = self._copy = self._back = 0

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes; empty at the end."""
        while len(self._out) - self._given < size and self._more():
            continue
        piece = bytes(self._out[self._given : self._given + size])
        self._given += len(piece)
        if self._given > 2 * _WINDOW:
            del self._out[: self._given - _WINDOW]
            self._given = _WINDOW
        return piece

    @abstractmethod
    def _next(self) -> None:
        """Read what comes next into `_literal`, `_copy` and `_back`."""

    def _more(self) -> bool:
        """Unpack one more piece; False at the end."""
        if self._literal:
            if not self._looked(1):
                raise EOFError
            piece = self._ahead[self._at : self._at + self._literal]
            self._at += len(piece)
            self._literal -= len(piece)
            self._out += piece
        elif self._copy:
            size, start = min(self._copy, _PIECE), len(self._out) - self._back
            if not 0 < self._back <= min(_WINDOW, len(self._out)):
                raise UnpackError
            piece = bytes(self._out[start : start + size])
            self._out += piece if len(piece) == size else (piece * (size // len(piece) + 1))[:size]
            self._copy -= size
        elif self._looked(1):
            self._next()
        else:
            return False
        return True

    def _looked(self, size: int) -> bool:
        """Whether so many bytes lie ahead."""
        if len(self._ahead) - self._at < size:
            self._ahead = self._ahead[self._at :] + self._packed.read(_PIECE)
            self._at = 0
        return len(self._ahead) - self._at >= size

    def _number(self, size: int) -> int:
        if not self._looked(size):
            raise EOFError
        self._at += size
        return int.from_bytes(self._ahead[self._at - size : self._at], "little")


class _Snappy(_Copying):
    def __init__(self, packed: Part) -> None:
        super().__init__(packed)
        while self._number(1) & 128:  # the length of it all, which the page's head states as well
            continue

    def _next(self) -> None:
        self._copies()
        if not self._looked(1):
            return
        tag = self._number(1)
        kind, size = tag & 3, tag >> 2
        if kind == 0:
            self._literal = 1 + (size if size < 60 else self._number(size - 59))
        elif kind == 1:
            self._copy, self._back = 4 + (size & 7), tag >> 5 << 8 | self._number(1)
        else:
            self._copy, self._back = 1 + size, self._number(2 if kind == 2 else 4)

    def _copies(self) -> None:
        """The copies that lie ahead: at most 64 bytes each, so that they are millions."""
        ahead, at, out = self._ahead, self._at, self._out
        last, full = len(ahead) - 3, len(out) + _PIECE
        while at <= last and len(out) < full:
            tag = ahead[at]
            if tag & 3 != 2:
                break
            back, size = ahead[at + 1] | ahead[at + 2] << 8, 1 + (tag >> 2)
            start = len(out) - back
            if back == 0 or start < 0:
                break
            piece = out[start : start + size]
            out += piece if back >= size else (piece * (size // back + 1))[:size]
            at += 3
        self._at = at


class _Lz4(_Copying):
    def _next(self) -> None:
        token = self._number(1)
        self._literal = self._length(token >> 4)
        while self._literal:
            self._more()
        if self._looked(1):  # the last literal is followed by nothing
            self._back = self._number(2)
            self._copy = 4 + self._length(token & 15)

    def _length(self, size: int) -> int:
        more = size == 15
        while more:
            byte = self._number(1)
            size += byte
            more = byte == 255
        return size
