"""The base class of mechanisms that add independent noise to every row.

The guarantee is local: it holds for each row separately, even if the curator is not trusted.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from gramercy.common.lattice import Lattice, UnscaledLattice
from gramercy.mechanisms.mechanism import Mechanism, PublicParameters, SensitivityBounds
from gramercy.schemas.contract import Neighbours


@dataclass(frozen=True)
class RowWise(Mechanism):
    """Noise on every row.

    Parameters
    ----------
    parameters
        Public facts of the table.
    scale
        Standard deviation of the noise, in the units of what is published.
    delta
        Delta at which epsilon is reported.
    """

    parameters: PublicParameters
    scale: float
    delta: float

    neighbours: ClassVar[tuple[Neighbours, ...]] = ("replace-one",)

    @property
    @abstractmethod
    def step(self) -> float:
        """The value of one lattice unit of a published row."""

    @abstractmethod
    def randomize(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw noise for a batch of rows, once, and add it.

        Parameters
        ----------
        rows
            Integer rows, shape (p, rows).

        Returns
        -------
        ndarray of int64, shape (columns, rows)
        """

    @abstractmethod
    def gram(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Unbiased estimate of the sum over rows of x x^T from published rows; shape (p, p).

        Parameters
        ----------
        noisy
            Published rows, shape (columns, rows), in published units.
        """


def sensitivity_bounds(parameters: PublicParameters, lattice: Lattice) -> SensitivityBounds:
    """Squared bounds on the change of an integer row.

    A normalised row changes by at most the diameter of the unit ball. The same bound holds for a
    cell, because changing one cell of the table changes the whole normalised row.
    """
    if parameters.sensitivity_bounds is not None:
        return parameters.sensitivity_bounds
    if isinstance(lattice, UnscaledLattice):  # no declared bounds: rows of zeros and ones
        return SensitivityBounds(
            squared_row=parameters.p, squared_cell=1, squared_norm=parameters.p
        )
    return SensitivityBounds(
        squared_row=4 * lattice.squared_radius,
        squared_cell=4 * lattice.squared_radius,
        squared_norm=lattice.squared_radius,
    )


def rounded_variance(scale: float) -> float:
    """Variance of floor(scale Z + 1/2), Z standard normal; about scale^2 + 1/12."""
    if scale > 10:
        return scale * scale + 1 / 12
    j = np.arange(1, 130)
    tails = ndtr(-(j - 0.5) / scale)  # P[X >= j]
    return float(2 * ((2 * j - 1) * tails).sum())


def nominal_deviations(parameters: PublicParameters, variance: float) -> tuple[float, float]:
    """Standard deviations of the noise on a diagonal and an off-diagonal entry of Y^T Y.

    y_i y_j - x_i x_j = x_i z_j + z_i x_j + z_i z_j has variance (x_i^2 + x_j^2) v + v^2 off the
    diagonal, and 4 x_i^2 v + 2 v^2 on it. The rows are private, so each x_i^2 is replaced by its
    public average. Columns with a larger mean square have noisier entries, which analysts compute
    from the release (`NoiseLaw.row_deviations`).
    """
    share, n = parameters.mean_squared_norm / parameters.p, parameters.n
    diagonal = n * (4 * share * variance + 2 * variance**2)
    return math.sqrt(diagonal), math.sqrt(n * (2 * share * variance + variance**2))
