"""Read a table as lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import open_source


def read(path: Path, *names: str) -> tuple[list[list[float]], int]:
    """Return the rows of these columns, and the number of dropped lines."""
    source, malformed = open_source(str(path)), MalformedLines()
    batches = list(cell_batches(source, dict.fromkeys(names), malformed))
    rows = np.concatenate(batches, axis=1).T.tolist() if batches else []
    return rows, malformed.dropped
