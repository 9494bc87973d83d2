"""The lines that a CSV reader keeps of a stream."""

from __future__ import annotations

from typing import IO

from gramercy.tables.formats.lines import Records


def records_of(records: Records, stream: IO[bytes]) -> list[bytes]:
    """All records of a stream, without their ends."""
    pieces = [piece for block in records.blocks(stream) for piece in records.of_block(block)[0]]
    return b"".join(pieces).split(b"\n")[:-1]
