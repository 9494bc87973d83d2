"""Cells of a table that is copied, as Arrow columns; no cell can fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from gramercy.tables.formats.values import to_floats

Cells = Sequence[Any]
_NOT_OF_THE_TYPE = (ValueError, TypeError, OverflowError)  # errors of Arrow among them
_EXACT = 2.0**53  # a smaller whole number has a double of its own


def numbers(cells: Cells) -> pa.Array:
    """Double-precision numbers; null where a cell is neither a number nor text of a number."""
    try:
        return pa.array(cells, pa.float64())
    except _NOT_OF_THE_TYPE:
        pass  # large integers, exact decimals, truth values, or text
    converted = np.array([_number(cell) for cell in cells], np.float64)
    if any(isinstance(cell, str) for cell in cells):
        written = texts([cell if isinstance(cell, str) else None for cell in cells])
        converted = np.where(np.isnan(converted), to_floats(written, None), converted)
    return pa.array(converted)


def _number(cell: Any) -> float:
    """A number; every decimal becomes the double next to it, and infinite if there is none."""
    if not isinstance(cell, int | float | Decimal):
        return np.nan
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return np.nan


def whole_numbers(cells: Cells) -> pa.Array:
    """Whole numbers of 64 bits."""
    return pa.array(cells, pa.int64())


def texts(cells: Cells) -> pa.Array:
    """Text; null where a cell is binary and not UTF-8."""
    try:
        return pa.array(cells, pa.string())
    except _NOT_OF_THE_TYPE:  # SQLite stores numbers in columns of text
        return pa.array([_text(cell) for cell in cells], pa.string())


def identifiers(cells: Cells) -> pa.Array:
    """Text of persons or dates: 7.0 is 7, and other doubles are null.

    SQLite stores a number as it was inserted. The double next to a large whole number, which some
    programs write instead of it, would be another name of the same person.
    """
    return texts([_identifier(cell) if isinstance(cell, float) else cell for cell in cells])


def _identifier(cell: float) -> int | None:
    return int(cell) if abs(cell) < _EXACT and cell.is_integer() else None


def _text(cell: Any) -> str | None:
    """As Arrow would read the cell, so that it does not matter which other cells there are."""
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return None
    try:
        return None if cell is None else str(cell).encode("utf-8", "replace").decode()
    except ValueError:  # a whole number of thousands of digits
        return None


Convert = Callable[[Cells], pa.Array]
TYPES: dict[Convert, pa.DataType] = {
    numbers: pa.float64(),
    whole_numbers: pa.int64(),
    texts: pa.string(),
    identifiers: pa.string(),
}
