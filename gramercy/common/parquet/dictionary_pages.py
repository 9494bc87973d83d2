"""The longest text in a dictionary page: repeated in every row, it needs the most memory."""

from __future__ import annotations

from struct import Struct, error
from typing import IO

import numpy as np
import pyarrow as pa

from gramercy.common.parquet.page_headers import Page

_LENGTH = Struct("<I")
_CODECS = {"SNAPPY", "GZIP", "ZSTD", "BROTLI"}  # with one format each; there are two of LZ4


def longest_text(stream: IO[bytes], page: Page, codec: str) -> int:
    """Bytes of the longest text in a dictionary page of texts.

    Parameters
    ----------
    stream
        The file.
    page
        Header of the page; its size was checked.
    codec
        Compression of the column chunk, as Arrow names it.

    Returns
    -------
    int
        The size of the whole page where the page cannot be read.
    """
    stream.seek(page.offset)
    body = stream.read(page.compressed_size)
    if codec in _CODECS:
        try:
            body = pa.Codec(codec.lower()).decompress(body, page.size, asbytes=True)
        except (OSError, ValueError):
            return page.size
    elif codec != "UNCOMPRESSED":
        return page.size
    return _longest(body, page.values) if len(body) == page.size else page.size


def _longest(body: bytes, count: int) -> int:
    """The longest of texts that each follow their length."""
    size = len(body) // max(1, count)
    if size >= _LENGTH.size and size * count == len(body):  # as of identifiers of equal length
        headers = np.frombuffer(body, np.uint8).reshape(count, size)[:, : _LENGTH.size]
        if (headers == list(_LENGTH.pack(size - _LENGTH.size))).all():
            return size - _LENGTH.size
    longest = position = 0
    read, header = _LENGTH.unpack_from, _LENGTH.size
    try:
        for _ in range(count):
            (length,) = read(body, position)
            position += header + length
            longest = max(longest, length)
    except error:  # fewer texts than stated
        return len(body)
    return longest if position <= len(body) else len(body)
