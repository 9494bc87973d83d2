"""The exact Gram matrix of integer rows: the same integers for any order, batch or thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.lattice import Lattice


class ExactGram:
    """Adds up q q^T over integer rows.

    Products run in double precision BLAS on blocks of at most 2^53 / 2^(2K) rows, where every
    partial sum is an integer below 2^53 and therefore exact in any order, and are added as 64-bit
    integers; what could overflow those is carried into Python integers first.

    Parameters
    ----------
    lattice
        What the integers count.
    """

    def __init__(self, lattice: Lattice) -> None:
        self._block = max(1, (1 << 53) // lattice.ball)
        self._room = (1 << 62) // lattice.ball
        self._recent = np.zeros((lattice.p, lattice.p), dtype=np.int64)
        self._since = 0
        self._carried: NDArray[Any] | None = None
        self.rows = 0

    def add(self, q: NDArray[np.float64]) -> None:
        """Add integer rows, shape (p, rows)."""
        for start in range(0, q.shape[1], self._block):
            block = q[:, start : start + self._block]
            self._make_room(block.shape[1])
            self._recent += (block @ block.T).astype(np.int64)
        self.rows += q.shape[1]

    def matrix(self) -> NDArray[Any]:
        """The sum so far, shape (p, p): int64, or Python integers beyond its range."""
        return self._recent.copy() if self._carried is None else self._carried + self._recent

    def _make_room(self, rows: int) -> None:
        if self._since + rows > self._room:
            self._carried = self.matrix().astype(object)
            self._recent[:] = 0
            self._since = 0
        self._since += rows
