"""Rows in a published metric, in whole numbers: y = A z.

A product of doubles depends on the batch that a row is in, so that one row could decide how another
is rounded. Here every partial sum is a whole number below 2^53, which is exact in any order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_BITS, ROW_BITS = 53, 22
# Longer rows are as if they were this long, as a power of two: far longer than any radius.
LONGEST = 400
_HALF = 0.5  # the mantissa of a power of two


@dataclass(frozen=True, eq=False)
class Metric:
    """A linear map of scaled rows, each of which is rounded before it.

    A row is rounded to 2^-22 of the power of two that its largest entry reaches.
    """

    # A, symmetric and invertible; shape (q, q). An entry is a whole number times a power of two.
    matrix: Array

    @classmethod
    def near(cls, matrix: Array) -> Metric:
        """The metric that is nearest to a symmetric matrix."""
        bits = _unit_bits(matrix)
        return cls(np.ldexp(np.rint(np.ldexp(matrix, bits)), -bits))

    @cached_property
    def units(self) -> Array:
        """A in units of 2^-bits; whole numbers, shape (q, q).

        Raises
        ------
        ValueError
            If they are not whole.
        """
        units = np.ldexp(self.matrix, self._bits)
        if not (np.rint(units) == units).all():
            raise ValueError
        return units

    @property
    def step(self) -> float:
        """Of which all entries of A are multiples."""
        return math.ldexp(1.0, -self._bits)

    def rows(self, scaled: Array) -> Array:
        """A z for every row; shape (q, rows), exact for the rounded rows.

        `scaled`: shape (q, rows), finite.
        """
        exponents = row_exponents(scaled)
        return self.of_whole(np.rint(scaled * np.ldexp(1.0, ROW_BITS - exponents)), exponents)

    def of_whole(self, rows: Array, exponents: NDArray[np.int64]) -> Array:
        """A z for rows that are already in whole numbers; see `row_exponents`."""
        made: Array = self.units @ rows
        made *= np.ldexp(1.0, np.minimum(exponents, LONGEST) - ROW_BITS - self._bits)
        return made

    @cached_property
    def _bits(self) -> int:
        return _unit_bits(self.matrix)


def congruence(linear: Array, matrix: Array) -> Array:
    """L S L^T, exactly symmetric."""
    product: Array = linear @ matrix @ linear.T
    return (product + product.T) / 2


def row_exponents(scaled: Array) -> NDArray[np.int64]:
    """The power of two that no entry of a row exceeds, for every row; shape (rows,)."""
    exponents: NDArray[np.int64] = np.frexp(np.abs(scaled).max(axis=0))[1].astype(np.int64)
    return np.maximum(exponents, -LONGEST)


def _unit_bits(matrix: Array) -> int:
    """The number of binary digits of entries, so that no sum exceeds 2^53."""
    mantissa, exponent = math.frexp(float(np.abs(matrix).max()))
    most = exponent - (mantissa == _HALF)  # the smallest e with every entry at most 2^e
    return _BITS - ROW_BITS - math.ceil(math.log2(len(matrix))) - most
