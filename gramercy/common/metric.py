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

_BITS, _ROW_BITS = 53, 22
_HALF = 0.5  # the mantissa of a power of two


@dataclass(frozen=True, eq=False)
class Metric:
    """A linear map of scaled rows, which are rounded before it."""

    # A, symmetric and invertible; shape (q, q). An entry is a whole number times a power of two.
    matrix: Array
    # largest absolute value of each scaled column that the bounds in use allow; shape (q,)
    largest: Array

    @classmethod
    def near(cls, matrix: Array, largest: Array) -> Metric:
        """The metric that is nearest to a symmetric matrix."""
        of_columns = _unit_bits(matrix, largest)
        bits = np.minimum.outer(of_columns, of_columns)
        return cls(np.ldexp(np.rint(np.ldexp(matrix, bits)), -bits), largest)

    @property
    def row_bits(self) -> NDArray[np.int64]:
        """A scaled column is rounded to multiples of two to minus this number; shape (q,)."""
        return _row_bits(self.largest)

    @property
    def bits(self) -> int:
        """Entries of y are multiples of two to minus this number."""
        return int((_unit_bits(self.matrix, self.largest) + self.row_bits)[0])

    @cached_property
    def units(self) -> Array:
        """A in units of the rows of whole numbers; whole numbers, shape (q, q).

        Raises
        ------
        ValueError
            If they are not whole.
        """
        units = np.ldexp(self.matrix, _unit_bits(self.matrix, self.largest))
        if not (np.rint(units) == units).all():
            raise ValueError
        return units

    def rows(self, scaled: Array) -> Array:
        """A z for every row; shape (q, rows), exact for the rounded rows.

        `scaled`: shape (q, rows), finite, and within the bounds in use.
        """
        return self.of_whole(np.rint(np.ldexp(scaled, self.row_bits[:, None])))

    def of_whole(self, rows: Array) -> Array:
        """A z for rows that are already in whole numbers."""
        return (self.units @ rows) * 2.0**-self.bits

    @property
    def inverse(self) -> Array:
        """The inverse of A, which maps second moments of y to those of z; shape (q, q)."""
        return np.asarray(np.linalg.inv(self.matrix), np.float64)


def congruence(linear: Array, matrix: Array) -> Array:
    """L S L^T, exactly symmetric."""
    product: Array = linear @ matrix @ linear.T
    return (product + product.T) / 2


def _exponents(values: Array) -> NDArray[np.int64]:
    """The smallest e with value <= 2^e."""
    mantissa, exponent = np.frexp(values)
    smallest: NDArray[np.int64] = (exponent - (mantissa == _HALF)).astype(np.int64)
    return smallest


def _row_bits(largest: Array) -> NDArray[np.int64]:
    return _ROW_BITS - np.maximum(_exponents(largest), 0)


def _unit_bits(matrix: Array, largest: Array) -> NDArray[np.int64]:
    """The number of binary digits of entries in each column, so that no sum exceeds 2^53."""
    row_bits = _row_bits(largest)
    room = _BITS - _ROW_BITS - math.ceil(math.log2(len(matrix)))
    most = _exponents(np.abs(np.ldexp(matrix, -row_bits)).max(keepdims=True))[0, 0]
    bits: NDArray[np.int64] = (room - most) - row_bits
    return bits
