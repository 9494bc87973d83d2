"""Noise that is added to the Gram matrix: what its mechanisms share."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.mechanisms.mechanism import Mechanism, Setting
from gramercy.schemas.contract import ProtectedUnit

# A noisy count is one more coordinate, weighted by 1/4: it costs 3 % more noise on the matrix.
COUNT_WEIGHT = 0.25


@dataclass(frozen=True)
class Noisy:
    """What may be published: integers on the lattice.

    Parameters
    ----------
    gram
        Noisy Gram matrix in lattice units, symmetric, shape (p, p).
    rows
        Noisy number of rows, where one was paid for.
    """

    gram: NDArray[Any]
    rows: int | None


@dataclass(frozen=True)
class Additive(Mechanism):
    """Noise on the Gram matrix of rows of the unit ball.

    Parameters
    ----------
    setting
        Public facts of the table.
    scale
        In units of the Gram matrix of unit-ball rows; what it means is the mechanism's own.
    """

    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row", "person")

    setting: Setting
    scale: float

    @property
    def lattice(self) -> Lattice:
        """See `Mechanism.lattice`."""
        known = self.setting
        return Lattice.fitting(known.p, known.n, self.sd_diagonal, known.each)

    @property
    @abstractmethod
    def sd_diagonal(self) -> float:
        """Standard deviation of the noise on a diagonal entry of the Gram matrix."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """The most that the protected unit moves the Gram matrix, in the mechanism's own norm."""

    def plan(self) -> dict[str, float]:
        """See `Mechanism.plan`."""
        facts = {"scale": self.scale, "sensitivity": self.sensitivity}
        return facts if self.sd_rows is None else facts | {"sd_rows": self.sd_rows}

    @property
    def sd_rows(self) -> float | None:
        """Standard deviation of the noisy number of rows, where one is published."""
        return self.sd_diagonal / COUNT_WEIGHT if self.setting.counted else None

    def perturb(self, gram: NDArray[Any], rows: int) -> Noisy:
        """Draw the noise, once, and add it.

        Parameters
        ----------
        gram
            Exact Gram matrix of the integer rows, shape (p, p), integers.
        rows
            Exact number of rows.
        """
        if gram.shape != (self.setting.p, self.setting.p):
            raise ValueError("the Gram matrix does not have the mechanism's shape")
        noise, count = self._draw()
        return Noisy(gram + noise, None if count is None else rows + count)

    @abstractmethod
    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        """Fresh noise in lattice units: symmetric, shape (p, p), and on the number of rows."""


def squared_sensitivity(setting: Setting) -> float:
    """Delta_2^2 of the Gram matrix of rows in the unit ball, exactly: in svec, and of its triangle.

    ||x x^T - y y^T||_F^2 = |x|^4 + |y|^4 - 2 (x.y)^2: at most 2, at orthogonal unit rows, which one
    column does not have; and 1 for a row present or absent. Basis vectors attain both, with
    nothing off the diagonal, so that they hold for the plain upper triangle as well. A row present
    or absent moves a weighted count by its weight; a row replaced does not.

    All rows of a person, scaled together to squares that sum to 1, move it no further: what they
    add, positive semidefinite and of trace 1 at most, is an average of such x x^T and of zero, and
    a norm of a difference of averages is at most the largest. So it is for any norm.
    """
    if setting.neighbours == "replace-one":
        return 2.0 if setting.p > 1 else 1.0
    return 1.0 + (COUNT_WEIGHT**2 if setting.counted else 0.0)


def symmetric(upper: NDArray[Any], diagonal: NDArray[Any]) -> NDArray[Any]:
    """A symmetric matrix from its entries above the diagonal, row by row, and its diagonal."""
    p = diagonal.size
    matrix = np.zeros((p, p), dtype=diagonal.dtype)
    matrix[np.triu_indices(p, 1)] = upper
    matrix += matrix.T
    np.fill_diagonal(matrix, diagonal)
    return matrix


def half(scale: float) -> float:
    """The scale of an off-diagonal entry of white svec noise, scale / sqrt2, rounded up."""
    return math.nextafter(scale / math.sqrt(2), math.inf)
