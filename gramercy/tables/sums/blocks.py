"""Regroup batches of rows into blocks of a public size, or of a size that stays in cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

# Cells of a block: few steps of numpy, and still in cache. Up to twice as many give a block more
# rows, because a step over one column of it should take longer than to start it.
_CELLS, _ROWS = 1 << 18, 1 << 12
_MIN_ROWS = 256


def cache_slices(width: int, rows: int, max_rows: int | None = None) -> Iterator[slice]:
    """Slices of rows with `width` cells, small enough for the cache and at most `max_rows` long."""
    step = max(_CELLS // width, min(2 * _CELLS // width, _ROWS), _MIN_ROWS)
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
