"""What a Parquet file will ask of memory, told before a library is asked to read it.

A library unpacks a page as a whole and parses a footer as a whole, and both may be a thousand times
larger than the bytes they lie in. Their heads say how large.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from gramercy.tables.parquet_guard.thrift import BINARY, LIST, STRUCT, Compact, TooHeavyError

MAGIC = b"PAR1"
_SOUND: set[bytes] = set()  # digests of footers that fit: a file is opened for each of its pieces
_SMALL_FOOTER = 1 << 17  # bytes; whatever it says, it takes little
_FOOTER = 288 << 20  # bytes of memory
_COLUMN, _CHUNK = 1600, 640  # bytes of memory that each takes, about
_DEEPEST = 64  # groups in groups
_HEAD, _MOST_HEAD = 256, 1 << 24  # bytes that the head of a page is looked for in

DICTIONARY, _DATA_V2 = 2, 3
PLAIN, _DELTA_LENGTH, _DELTA_BYTES = 0, 6, 7
SPELLED = {PLAIN, _DELTA_LENGTH, _DELTA_BYTES}  # not places in a dictionary


@dataclass(frozen=True)
class Page:
    """A page, as its head states it.

    Parameters
    ----------
    at
        Where its body begins in the file.
    kind, encoding, values
        As in the head.
    packed, size
        Bytes of the body in the file, and unpacked.
    """

    at: int
    kind: int
    encoding: int
    values: int
    packed: int
    size: int


def check_footer(stream: IO[bytes]) -> None:
    """Refuse a footer that would take too much memory.

    Raises
    ------
    TooHeavyError
        If it would.
    ValueError, IndexError
        If it is none.
    """
    end = stream.seek(0, 2)
    stream.seek(max(0, end - 8))
    length, magic = struct.unpack("<I4s", stream.read(8))
    if magic != MAGIC or length > end - 8:
        raise ValueError
    if length <= _SMALL_FOOTER:
        return
    if length > _FOOTER:
        raise TooHeavyError
    stream.seek(end - 8 - length)
    data = stream.read(length)
    digest = hashlib.sha256(data).digest()
    if digest in _SOUND:
        return
    footer = Compact(data, _FOOTER)
    for field, kind in footer.fields():
        if (field, kind) == (2, LIST):
            _columns(footer)
        elif (field, kind) == (4, LIST):
            for _ in range(footer.items()[1]):
                _row_group(footer)
        else:
            footer.skip(kind)
    _SOUND.add(digest)


def _columns(footer: Compact) -> None:
    _, count = footer.items()
    footer.charge(_COLUMN * count)
    open_groups: list[int] = []  # children that each still lacks
    for _ in range(count):
        children = 0
        for field, kind in footer.fields():
            if field == 5:
                children = footer.number()
            else:
                footer.skip(kind)
        while open_groups and open_groups[-1] == 0:
            open_groups.pop()
        if open_groups:
            open_groups[-1] -= 1
        if children > 0:
            open_groups.append(children)
        if len(open_groups) > _DEEPEST:
            raise TooHeavyError


def _row_group(footer: Compact) -> None:
    footer.charge(256)
    for field, kind in footer.fields():
        if (field, kind) == (1, LIST):
            inner, count = footer.items()
            footer.charge(_CHUNK * count)
            for _ in range(count):
                footer.skip(inner)
        else:
            footer.skip(kind)


def pages(stream: IO[bytes], chunk: Any) -> Iterator[Page]:
    """The pages of a column of a row group, in order; `chunk` is Arrow's description of it.

    Raises
    ------
    ValueError, IndexError
        If what lies there are none.
    """
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    end, values = at + chunk.total_compressed_size, 0
    while at < end and values < chunk.num_values:
        page = _head(stream, at)
        yield page
        at = page.at + page.packed
        values += 0 if page.kind == DICTIONARY else page.values


def _head(stream: IO[bytes], at: int) -> Page:
    looked = _HEAD
    while True:
        stream.seek(at)
        data = stream.read(looked)
        try:
            return _parsed_head(Compact(data), at)
        except IndexError:
            if len(data) < looked or looked >= _MOST_HEAD:
                raise
            looked *= 16


def _parsed_head(head: Compact, at: int) -> Page:
    facts: dict[int, Any] = {}
    inner: dict[int, int] = {}
    for field, kind in head.fields():
        if field in {5, 7, 8} and kind == STRUCT:
            inner = dict(_about(head))
        elif field in {1, 2, 3}:
            facts[field] = head.number()
        else:
            head.skip(kind)
    size, packed = facts[2], facts[3]
    if size < 0 or packed < 0 or inner.get(1, 0) < 0:
        raise ValueError
    kind = facts[1]
    values = inner.get(1, 0)
    encoding = inner[4] if kind == _DATA_V2 else inner.get(2, 0)
    return Page(at + head.at, kind, encoding, values, packed, size)


def _about(head: Compact) -> Iterator[tuple[int, int]]:
    for field, kind in head.fields():
        if kind in {BINARY, LIST, STRUCT}:
            head.skip(kind)
        elif kind in {1, 2}:  # true, false
            yield field, int(kind == 1)
        else:
            yield field, head.number()
