"""Decompress xz and ZIP in bounded memory."""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
from typing import IO, Any

_CHUNK = 1 << 16  # bytes
_XZ_MEMORY = 128 << 20  # bytes; xz -9 needs 65 MiB
_ZIP_DIRECTORY = 1 << 20  # bytes
_ZIP_END, _ZIP_COMMENT = 22, 1 << 16  # bytes of the end record, and of the longest comment
_ZIP_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2}


class DecompressionError(ValueError):
    """A compressed file of an unsupported kind."""


class XzStream(io.RawIOBase):
    """The content of an .xz or .lzma file, in bounded memory; the format allows up to 4 GiB.

    Parameters
    ----------
    packed
        The compressed file.
    """

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
                rest = rest or self._packed.read(_CHUNK).lstrip(b"\0")
                if not rest:
                    return 0
                self._decompressor = self._new_decompressor()
            else:
                rest = self._packed.read(_CHUNK) if self._decompressor.needs_input else b""
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
    """The content of the only file in a ZIP archive.

    Raises
    ------
    DecompressionError
        If the archive has no file or several, or needs unbounded memory.
    """
    archive = _open_archive(packed)
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1 or members[0].compress_type not in _ZIP_METHODS:
        raise DecompressionError
    return archive.open(members[0])


def _open_archive(packed: IO[bytes]) -> zipfile.ZipFile:
    """A ZIP archive whose directory fits into memory."""
    end = packed.seek(0, 2)
    packed.seek(max(0, end - _ZIP_END - _ZIP_COMMENT))
    tail = packed.read()
    _, end_record, fields = tail.rpartition(b"PK\5\6")
    directory_size = struct.unpack_from("<I", fields, 8)[0] if end_record else 0
    if directory_size > _ZIP_DIRECTORY:
        raise DecompressionError
    return zipfile.ZipFile(packed)
