"""Cells that a database's driver returns, as Arrow columns; no cell can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from gramercy.tables.values import to_floats

Cells = Sequence[Any]


def numbers(cells: Cells) -> pa.Array:
    """Double-precision numbers; null where a cell is neither a number nor text of a number."""
    try:
        return pa.array(cells, pa.float64())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass  # large integers, exact decimals, truth values, or text
    converted = np.array([_number(cell) for cell in cells], np.float64)
    if any(isinstance(cell, str) for cell in cells):
        texts = pa.array([cell if isinstance(cell, str) else None for cell in cells], pa.string())
        converted = np.where(np.isnan(converted), to_floats(texts, None), converted)
    return pa.array(converted)


def _number(cell: Any) -> float:
    """A number; every decimal becomes the double next to it, and infinite if there is none."""
    return float(cell) if isinstance(cell, int | float | Decimal) else np.nan


def whole_numbers(cells: Cells) -> pa.Array:
    """Whole numbers of 64 bits."""
    return pa.array(cells, pa.int64())


def texts(cells: Cells) -> pa.Array:
    """Text; null where a cell is binary and not UTF-8."""
    try:
        return pa.array(cells, pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # SQLite stores numbers in columns of text
        return pa.array([_text(cell) for cell in cells], pa.string())


def _text(cell: Any) -> str | None:
    """As Arrow would read the cell, so that it does not matter which other cells there are."""
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return None
    return None if cell is None else str(cell)


Convert = Callable[[Cells], pa.Array]
TYPES: dict[Convert, pa.DataType] = {
    numbers: pa.float64(),
    whole_numbers: pa.int64(),
    texts: pa.string(),
}
