"""The exact Gram matrix of integer rows: the same integers for any order, batch or thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from gramercy.common.lattice import Lattice


class ExactGram:
    """Adds up q q^T over integer rows.

    Products run in double precision BLAS over at most 2^53 / 2^(2K) rows, so that every partial
    sum is an integer below 2^53 and therefore exact in any order, and are then added as 64-bit
    integers; what could overflow those is carried into Python integers first.

    Parameters
    ----------
    lattice
        What the integers count.
    """

    def __init__(self, lattice: Lattice) -> None:
        self._block = max(1, (1 << 53) // lattice.ball)
        self._room = (1 << 62) // lattice.ball
        # The lower triangles of what was added last, and before.
        self._products = np.zeros((lattice.p, lattice.p), order="F")
        self._recent = np.zeros((lattice.p, lattice.p), dtype=np.int64)
        self._carried: NDArray[Any] | None = None
        self._held = self._since = 0
        self.rows = 0

    def add(self, q: NDArray[np.float64]) -> None:
        """Add integer rows, shape (p, rows)."""
        for start in range(0, q.shape[1], self._block):
            block = q[:, start : start + self._block]
            if self._held + block.shape[1] > self._block:
                self._settle()
            self._products = dsyrk(
                1.0, block.T, 1.0, self._products, trans=1, lower=1, overwrite_c=1
            )
            self._held += block.shape[1]
        self.rows += q.shape[1]

    def matrix(self) -> NDArray[Any]:
        """The sum so far, symmetric, shape (p, p): int64, or Python integers beyond its range."""
        self._settle()
        lower = self._recent if self._carried is None else self._carried + self._recent
        return np.tril(lower) + np.tril(lower, -1).T

    def _settle(self) -> None:
        """Turn products into integers, and those into Python's before they could overflow."""
        if self._since + self._held > self._room:
            recent = self._recent.astype(object)
            self._carried = recent if self._carried is None else self._carried + recent
            self._recent[:] = 0
            self._since = 0
        self._recent += self._products.astype(np.int64)
        self._since += self._held
        self._products[:] = 0
        self._held = 0
