"""The exact Gram matrix of integer rows: the same for any order, batch size and threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from gramercy.common.lattice import Lattice

# Columns from which the product takes nearly all of the time: one thread adds in place, with BLAS
# on all cores, and there is one matrix instead of one for each thread.
WIDE = 500


class ExactGram:
    """Adds up q q^T over integer rows.

    BLAS multiplies in double precision, over at most 2^53 / 2^(2K) rows: every partial sum is an
    integer below 2^53, and therefore exact in any order. Products are then added as 64-bit
    integers, and moved to Python integers before those could overflow.

    Parameters
    ----------
    lattice
        Lattice of the integer rows.
    """

    def __init__(self, lattice: Lattice) -> None:
        self._block = max(1, (1 << 53) // lattice.squared_radius)
        self._max_int64_rows = (1 << 62) // lattice.squared_radius
        # NumPy multiplies while other threads run, which SciPy's `dsyrk` does not, but it needs
        # room for a product.
        self._product = np.empty((lattice.p, lattice.p)) if lattice.p < WIDE else None
        # Lower triangles: products in doubles, sums in int64, sums in Python integers.
        self._products = np.zeros((lattice.p, lattice.p), order="F")
        self._int64_sum = np.zeros((lattice.p, lattice.p), dtype=np.int64)
        self._python_sum: NDArray[Any] | None = None
        self._product_rows = self._int64_rows = 0
        self.rows = 0

    def add(self, q: NDArray[np.float64]) -> None:
        """Add integer rows, shape (p, rows)."""
        for start in range(0, q.shape[1], self._block):
            block = q[:, start : start + self._block]
            if self._product_rows + block.shape[1] > self._block:
                self._flush()
            if self._product is None:
                self._products = dsyrk(
                    1.0, block.T, 1.0, self._products, trans=1, lower=1, overwrite_c=1
                )
            else:
                self._products += np.matmul(block, block.T, out=self._product)
            self._product_rows += block.shape[1]
        self.rows += q.shape[1]

    def matrix(self) -> NDArray[Any]:
        """The symmetric sum, shape (p, p): int64, or Python integers beyond its range."""
        self._flush()
        lower = self._int64_sum if self._python_sum is None else self._python_sum + self._int64_sum
        return np.tril(lower) + np.tril(lower, -1).T

    def _flush(self) -> None:
        """Add the products to the integers, and those to Python integers before they overflow."""
        if self._int64_rows + self._product_rows > self._max_int64_rows:
            moved = self._int64_sum.astype(object)
            self._python_sum = moved if self._python_sum is None else self._python_sum + moved
            self._int64_sum[:] = 0
            self._int64_rows = 0
        self._int64_sum += self._products.astype(np.int64)
        self._int64_rows += self._product_rows
        self._products[:] = 0
        self._product_rows = 0
