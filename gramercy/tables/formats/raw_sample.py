"""Some rows of every file as they are stored, for the steward alone: to look for mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from gramercy.tables.formats.source import Source

MOST_ROWS = 10_000  # of a file


@dataclass(frozen=True, repr=False)
class RawSample:
    """Rows of one file. Private."""

    file: str  # its name in messages
    # Cells with the types of the file; those of a CSV file are text, a missing one is null.
    cells: pa.Table = field(repr=False)
    complete: bool  # whether these are all rows


def raw_samples(
    source: Source, columns: Sequence[str], most_rows: int = MOST_ROWS
) -> Iterator[RawSample]:
    """Rows from the beginning, the middle and the end of every file, in bounded memory."""
    raise NotImplementedError
