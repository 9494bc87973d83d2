"""The base class of mechanisms that add noise to the Gram matrix."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.mechanisms.mechanism import Mechanism, PublicParameters
from gramercy.schemas import families
from gramercy.schemas.contract import ProtectedUnit

# A noisy count is one more coordinate, weighted by 1/4; the matrix gets 3 % more noise for it.
COUNT_WEIGHT = 0.25


@dataclass(frozen=True)
class NoisyGram:
    """A Gram matrix with its noise: integers on the lattice, which may be published.

    Parameters
    ----------
    gram
        Noisy Gram matrix in lattice units, symmetric, shape (p, p).
    rows
        Noisy number of rows, where one is published.
    """

    gram: NDArray[Any]
    rows: int | None


@dataclass(frozen=True)
class Additive(Mechanism):
    """Noise on the Gram matrix of rows of the unit ball.

    Parameters
    ----------
    parameters
        Public facts of the table.
    scale
        Scale of the noise, as each mechanism defines it; for the Gram matrix of unit-ball rows.
    """

    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row", "person")

    parameters: PublicParameters
    scale: float

    @property
    def lattice(self) -> Lattice:
        """See `Mechanism.lattice`."""
        public = self.parameters
        return Lattice.fitting(public.p, public.n, self.sd_diagonal, public.mean_rows_per_person)

    @property
    @abstractmethod
    def sd_diagonal(self) -> float:
        """Standard deviation of the noise on a diagonal entry of the Gram matrix."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Largest change of the Gram matrix by one protected unit, in the mechanism's norm."""

    def constants(self) -> dict[str, float]:
        """See `Mechanism.constants`."""
        constants = {"scale": self.scale, "sensitivity": self.sensitivity}
        return constants if self.sd_rows is None else constants | {"sd_rows": self.sd_rows}

    @property
    def sd_rows(self) -> float | None:
        """Standard deviation of the noisy number of rows, where one is published."""
        return self.sd_diagonal / COUNT_WEIGHT if self.parameters.publishes_noisy_count else None

    def perturb(self, gram: NDArray[Any], rows: int) -> NoisyGram:
        """Draw the noise, once, and add it.

        Parameters
        ----------
        gram
            Exact Gram matrix of the integer rows, shape (p, p), integers.
        rows
            Exact number of rows.
        """
        if gram.shape != (self.parameters.p, self.parameters.p):
            raise families.ARGUMENT(
                "The Gram matrix must have {columns} rows and columns.",
                columns=self.parameters.p,
            )
        noise, count = self._draw()
        return NoisyGram(gram + noise, None if count is None else rows + count)

    @abstractmethod
    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        """Noise in lattice units: a symmetric matrix, shape (p, p), and noise on the row count."""


def squared_sensitivity(parameters: PublicParameters) -> float:
    """Squared l2 sensitivity Delta_2^2 of the Gram matrix of rows in the unit ball, exactly.

    The same number holds in svec coordinates and for the plain upper triangle.

    Notes
    -----
    ||x x^T - y y^T||_F^2 = |x|^4 + |y|^4 - 2 (x.y)^2 is at most 2, attained by orthogonal unit rows
    (which do not exist for one column), and 1 if a row is added or removed. Basis vectors attain
    both bounds with zeros off the diagonal, so they hold for the plain upper triangle as well.
    Adding or removing a row changes a weighted count by its weight; replacing a row does not.

    Of the matrices of several groups, stacked as one vector, adding or removing a row changes one.
    A replaced row may leave one group and enter another: the vector then moves by
    |x|^4 + |y|^4 <= 2, also for one column, and two counts change by their weight.

    The rows of a person, scaled so that their squared norms sum to at most 1, have the same bounds
    in any norm: their Gram matrix is an average of such x x^T and of zero, and the norm of a
    difference of averages is at most the largest norm of a difference.
    """
    of_count = COUNT_WEIGHT**2 if parameters.publishes_noisy_count else 0.0
    if parameters.neighbours == "add-remove":
        return 1.0 + of_count
    if parameters.grouped:
        return 2.0 + 2 * of_count
    return 2.0 if parameters.p > 1 else 1.0


def symmetric_matrix(upper: NDArray[Any], diagonal: NDArray[Any]) -> NDArray[Any]:
    """The symmetric matrix with this diagonal, and these entries above it, row by row."""
    p = diagonal.size
    matrix = np.zeros((p, p), dtype=diagonal.dtype)
    matrix[np.triu_indices(p, 1)] = upper
    matrix += matrix.T
    np.fill_diagonal(matrix, diagonal)
    return matrix


def off_diagonal_scale(scale: float) -> float:
    """The scale of an off-diagonal entry of white svec noise, scale / sqrt2, rounded up."""
    return math.nextafter(scale / math.sqrt(2), math.inf)
