"""Regroup batches of rows into blocks of a public size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray


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
