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

_BITS = 53
_HALF = 0.5  # the mantissa of a power of two
_FARTHEST = 900  # exponent of the largest and of the smallest row that keep their length


@dataclass(frozen=True, eq=False)
class Metric:
    """A linear map of scaled rows, which are rounded before it."""

    # A, symmetric and invertible; shape (q, q). An entry is a whole number times a power of two.
    matrix: Array

    @classmethod
    def near(cls, matrix: Array) -> Metric:
        """The metric that is nearest to a symmetric matrix."""
        bits = cls(matrix).bits
        return cls(np.ldexp(np.rint(np.ldexp(matrix, bits)), -bits))

    @property
    def row_bits(self) -> int:
        """Binary digits of a rounded row: half of those that a product of q terms leaves."""
        return (_BITS - math.ceil(math.log2(len(self.matrix)))) // 2

    @property
    def bits(self) -> int:
        """Entries of A are multiples of two to minus this number."""
        room = _BITS - math.ceil(math.log2(len(self.matrix))) - self.row_bits
        return room - int(_exponents(np.abs(self.matrix).max(keepdims=True))[0, 0])

    @cached_property
    def units(self) -> Array:
        """A in its units: whole numbers, shape (q, q).

        Raises
        ------
        ValueError
            If they are not whole.
        """
        units = np.ldexp(self.matrix, self.bits)
        if not (np.rint(units) == units).all():
            raise ValueError
        return units

    def rows(self, scaled: Array) -> Array:
        """A z for every row; shape (q, rows), exact for the rounded rows.

        Parameters
        ----------
        scaled
            Shape (q, rows), finite. Every row is rounded to `row_bits` binary digits of its largest
            entry. So the digits of A do not depend on how large a cell may be.
        """
        exponents = np.maximum(_exponents(np.abs(scaled).max(axis=0)), -_FARTHEST)
        whole = scaled * np.ldexp(1.0, self.row_bits - exponents)
        product: Array = self.units @ np.rint(whole, out=whole)
        product *= np.ldexp(1.0, np.minimum(exponents, _FARTHEST) - (self.row_bits + self.bits))
        return product

    @property
    def inverse(self) -> Array:
        """The inverse of A, which maps second moments of y to those of z; shape (q, q)."""
        return np.asarray(np.linalg.inv(self.matrix), np.float64)


def congruence(linear: Array, matrix: Array) -> Array:
    """L S L^T, exactly symmetric."""
    product: Array = linear @ matrix @ linear.T
    return (product + product.T) / 2


def _exponents(values: Array) -> NDArray[np.int64]:
    """The smallest e with value <= 2^e; 0 for zero."""
    mantissa, exponent = np.frexp(values)
    smallest: NDArray[np.int64] = (exponent - (mantissa == _HALF)).astype(np.int64)
    return smallest
