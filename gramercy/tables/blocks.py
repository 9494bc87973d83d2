"""Regroup batches of rows into blocks of a public size, or of a size that stays in cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

_CELLS = 1 << 18  # cells of a block: few steps of numpy, and still in cache
_MIN_ROWS = 256  # rows of a block, so that the cost of a step over a block does not dominate


def cache_slices(width: int, rows: int, max_rows: int | None = None) -> Iterator[slice]:
    """Slices of rows with `width` cells, small enough for the cache and at most `max_rows` long."""
    step = max(_CELLS // width, _MIN_ROWS)
    step = max(1, step if max_rows is None else min(step, max_rows))
    for start in range(0, rows, step):
        yield slice(start, start + step)


def blocks(batches: Iterable[NDArray[np.float64]], size: int) -> Iterator[NDArray[np.float64]]:
    """The same rows in blocks of `size`, the last one shorter; shape (columns, rows).

    The size of a CSV batch depends on the lengths of its lines, which are private: blocks of a
    public size hide it.
    """
    pending: list[NDArray[np.float64]] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.shape[1]
        if rows < size:
            continue
        joined = np.concatenate(pending, axis=1)
        complete = rows - rows % size
        for start in range(0, complete, size):
            yield joined[:, start : start + size]
        pending, rows = [joined[:, complete:]], rows - complete
    if rows:
        yield np.concatenate(pending, axis=1)
