"""Reads a table as lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gramercy.tables.csv_reader import Malformed
from gramercy.tables.read import cells
from gramercy.tables.source import open_source


def read(path: Path, *names: str) -> tuple[list[list[float]], int]:
    """Rows of these columns, and how many lines were left out."""
    source, malformed = open_source(str(path)), Malformed()
    batches = list(cells(source, dict.fromkeys(names), malformed))
    rows = np.concatenate(batches, axis=1).T.tolist() if batches else []
    return rows, malformed.rows
