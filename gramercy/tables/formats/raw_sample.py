"""Some rows of every file as they are stored, for the steward alone: to look for mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from gramercy.tables.formats.lines import replace_invalid_utf8
from gramercy.tables.formats.source import Source

MOST_ROWS = 10_000  # of a file
MOST_FILES = 24


@dataclass(frozen=True, repr=False)
class RawSample:
    """Rows of one file. Private."""

    file: str  # its name in messages
    # Cells with the types of the file; those of a CSV file are text, a missing one is null.
    cells: pa.Table = field(repr=False)
    complete: bool  # whether these are all rows
    has_last: bool = False  # whether the last row is that of the file


def raw_samples(
    source: Source, columns: Sequence[str], most_rows: int = MOST_ROWS
) -> Iterator[RawSample]:
    """Rows from the beginning, the middle and the end of every file, in bounded memory.

    Of more than `MOST_FILES` files, the first, the last and some between are read. A compressed
    file, and a table of a database, show their beginning alone. A table that is copied may have
    changed since: give the copy, or know that these rows are others.

    Parameters
    ----------
    columns
        Names of columns, which the files have.
    """
    chosen = np.unique(np.linspace(0, len(source.files) - 1, MOST_FILES).round().astype(int))
    for file in (source.files[k] for k in chosen[chosen >= 0]):
        keys = file.partition_values
        rows = file.sample([name for name in columns if name not in keys], most_rows)
        cells = rows.cells
        for name in (name for name in columns if name in keys):
            data = None if (key := keys[name]) is None else key.encode("utf-8", "surrogateescape")
            text = None if data is None else replace_invalid_utf8(data).decode()
            cells = cells.append_column(name, pa.array([text] * cells.num_rows, pa.string()))
        yield RawSample(file.display_name, cells, rows.complete, rows.has_last)
