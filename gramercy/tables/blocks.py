"""Blocks of a public size, whatever the files were read in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray


def blocks(batches: Iterable[NDArray[np.float64]], size: int) -> Iterator[NDArray[np.float64]]:
    """The same rows in blocks of `size`, the last one shorter; shape (columns, rows).

    Where a batch of a CSV ends depends on how long its lines are, which is private: what is written
    in blocks must not show it.
    """
    held: list[NDArray[np.float64]] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.shape[1]
        if rows < size:
            continue
        joined = np.concatenate(held, axis=1)
        whole = rows - rows % size
        for start in range(0, whole, size):
            yield joined[:, start : start + size]
        held, rows = [joined[:, whole:]], rows - whole
    if rows:
        yield np.concatenate(held, axis=1)
