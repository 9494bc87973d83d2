"""Builds Parquet files byte by byte, as libraries would not write them."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

INT64, DOUBLE, BYTES = 2, 5, 6  # physical types
CODECS = {None: 0, "snappy": 1, "gzip": 2, "brotli": 4, "zstd": 6, "lz4_raw": 7}
PLAIN, RLE, DELTA_BINARY, DELTA_LENGTH, DELTA_BYTES, RLE_DICTIONARY = 0, 3, 5, 6, 7, 8
_STOP = b"\0"
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12

Struct = dict[int, tuple[int, Any]]  # field: (type, value)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def zigzag(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else -(number << 1) - 1)


def thrift(fields: Struct) -> bytes:
    """A struct in Thrift's compact protocol."""
    out, previous = b"", 0
    for at, (kind, value) in sorted(fields.items()):
        delta = at - previous
        out += bytes([delta << 4 | kind]) if delta < 16 else bytes([kind]) + zigzag(at)
        out += _value(kind, value)
        previous = at
    return out + _STOP


def _value(kind: int, value: Any) -> bytes:
    if kind in (_I32, _I64):
        return zigzag(value)
    if kind == _BINARY:
        raw = value.encode() if isinstance(value, str) else value
        return varint(len(raw)) + raw
    if kind == _STRUCT:
        return value if isinstance(value, bytes) else thrift(value)
    inner, items, *count = value  # the stated count may be false
    size = count[0] if count else len(items)
    head = bytes([size << 4 | inner]) if size < 15 else bytes([0xF0 | inner]) + varint(size)
    return head + b"".join(_value(inner, item) for item in items)


def i32(value: int) -> tuple[int, Any]:
    return _I32, value


def i64(value: int) -> tuple[int, Any]:
    return _I64, value


def text(value: str | bytes) -> tuple[int, Any]:
    return _BINARY, value


def structs(values: Sequence[Any], count: int | None = None) -> tuple[int, Any]:
    return _LIST, (_STRUCT, values, *([] if count is None else [count]))


def numbers(values: Sequence[int]) -> tuple[int, Any]:
    return _LIST, (_I32, values)


@dataclass(frozen=True)
class Page:
    """One page as stored in the file; `body` is not compressed yet."""

    body: bytes
    values: int
    encoding: int = PLAIN
    dictionary: bool = False
    size: int | None = None  # stated size of the body
    packed: bytes | None = None  # the compressed body, if it is not to be computed from `body`

    @property
    def stated(self) -> int:
        """Size of the body as stated in the page header."""
        return len(self.body) if self.size is None else self.size

    def bytes(self, codec: str | None) -> bytes:
        packed = self.packed
        if packed is None:
            packed = pa.compress(self.body, codec, asbytes=True) if codec else self.body
        about = {1: i32(self.values), 2: i32(self.encoding)}
        if not self.dictionary:
            about |= {3: i32(RLE), 4: i32(RLE)}
        head = {
            1: i32(2 if self.dictionary else 0),
            2: i32(self.stated),
            3: i32(len(packed)),
            7 if self.dictionary else 5: (_STRUCT, about),
        }
        return thrift(head) + packed


@dataclass(frozen=True)
class Chunk:
    """A column of a row group."""

    name: str
    pages: Sequence[Page]
    values: int
    physical: int = DOUBLE
    codec: str | None = None
    optional: bool = False


def schema(chunks: Sequence[Chunk]) -> list[Struct]:
    fields: list[Struct] = []
    for each in chunks:
        field_struct = {1: i32(each.physical), 3: i32(int(each.optional)), 4: text(each.name)}
        fields.append(field_struct | ({6: i32(0)} if each.physical == BYTES else {}))
    return [{4: text("schema"), 5: i32(len(fields))}, *fields]


@dataclass
class Writer:
    """Writes chunks one after the other, then the footer."""

    data: bytearray = field(default_factory=lambda: bytearray(b"PAR1"))
    groups: list[Struct] = field(default_factory=list)
    rows: int = 0

    def group(self, chunks: Sequence[Chunk], rows: int) -> None:
        columns = []
        for each in chunks:
            start = len(self.data)
            pages = [page.bytes(each.codec) for page in each.pages]
            self.data += b"".join(pages)
            has_dictionary = each.pages and each.pages[0].dictionary
            first = start + (len(pages[0]) if has_dictionary else 0)
            total = len(self.data) - start
            facts = {
                1: i32(each.physical),
                2: numbers(sorted({page.encoding for page in each.pages} | {RLE})),
                3: (_LIST, (_BINARY, [each.name])),
                4: i32(CODECS[each.codec]),
                5: i64(each.values),
                6: i64(sum(page.stated + 20 for page in each.pages)),
                7: i64(total),
                9: i64(first),
            } | ({11: i64(start)} if has_dictionary else {})
            columns.append({2: i64(start), 3: (_STRUCT, facts)})
        size = i64(len(self.data))
        self.groups.append({1: structs(columns), 2: size, 3: i64(rows)})
        self.rows += rows

    def footer(self, schema_fields: Sequence[Any], **changes: Any) -> bytes:
        facts: Struct = {
            1: i32(2),
            2: structs(schema_fields),
            3: i64(self.rows),
            4: structs(self.groups),
        }
        footer_bytes = thrift(facts | changes.get("fields", {}))
        return bytes(self.data) + footer_bytes + struct.pack("<I", len(footer_bytes)) + b"PAR1"


def parquet_of(chunks: Sequence[Chunk], rows: int, **changes: Any) -> bytes:
    """A file of one row group."""
    writer = Writer()
    writer.group(chunks, changes.pop("group_rows", rows))
    writer.rows = changes.pop("total", rows)
    return writer.footer(schema(chunks), **changes)


def run(value: int, times: int, width: int) -> bytes:
    """One run of Parquet's RLE, `width` bits a value."""
    return varint(times << 1) + value.to_bytes((width + 7) // 8, "little")


def delta_packed(numbers: Sequence[int]) -> bytes:
    """Delta encoding of integers, in blocks of 128 with four parts each."""
    out = varint(128) + varint(4) + varint(len(numbers)) + zigzag(numbers[0])
    deltas = [b - a for a, b in itertools.pairwise(numbers)]
    for start in range(0, len(deltas), 128):
        block = deltas[start : start + 128]
        smallest = min(block)
        parts = [[x - smallest for x in block[k : k + 32]] for k in range(0, len(block), 32)]
        widths = [max(part).bit_length() for part in parts]
        out += zigzag(smallest) + bytes([*widths, *[0] * (4 - len(parts))])
        for width, part in zip(widths, parts, strict=True):
            bits = sum(x << width * i for i, x in enumerate(part))
            out += bits.to_bytes(4 * width, "little")
    return out


def constant(name: str, value: float, rows: int, codec: str | None = None) -> Chunk:
    """A constant column: one dictionary entry and one run."""
    dictionary = Page(struct.pack("<d", value), 1, dictionary=True)
    indices = Page(bytes([1]) + run(0, rows, 1), rows, RLE_DICTIONARY)
    return Chunk(name, [dictionary, indices], rows, codec=codec)


def plain(name: str, values: Sequence[float], codec: str | None = None) -> Chunk:
    body = struct.pack(f"<{len(values)}d", *values)
    return Chunk(name, [Page(body, len(values))], len(values), codec=codec)
