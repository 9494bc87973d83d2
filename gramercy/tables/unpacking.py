"""Unpacking piece by piece what libraries unpack as a whole, or with any amount of memory."""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
from typing import IO, Any

_PIECE = 1 << 16  # bytes
_XZ_MEMORY = 128 << 20  # bytes; xz -9 takes 65 MiB
_ZIP_DIRECTORY = 1 << 20  # bytes
_ZIP_END, _ZIP_COMMENT = 22, 1 << 16
_ZIP_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2}


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
