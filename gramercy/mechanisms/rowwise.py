"""Noise on every row by itself: what the mechanisms that publish rows share.

The guarantee is local: it holds for each row on its own, whatever the curator sees.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from gramercy.common.lattice import Lattice, WholeNumbers
from gramercy.mechanisms.mechanism import Mechanism, Reach, Setting
from gramercy.schemas.contract import Neighbours


@dataclass(frozen=True)
class RowWise(Mechanism):
    """Noise on every row.

    Parameters
    ----------
    setting
        Public facts of the table.
    scale
        Standard deviation of the noise, in the units of what is published.
    delta
        At which epsilon is shown.
    """

    setting: Setting
    scale: float
    delta: float

    neighbours: ClassVar[tuple[Neighbours, ...]] = ("replace-one",)

    @property
    @abstractmethod
    def step(self) -> float:
        """What one integer of a noisy row stands for."""

    @abstractmethod
    def randomize(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw the noise of a batch of rows, once, and add it.

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
        """The sum over rows of x x^T, without bias, from published rows; shape (p, p).

        Parameters
        ----------
        noisy
            Shape (columns, rows), in published units.
        """


def reach(setting: Setting, lattice: Lattice) -> Reach:
    """The most that an integer row may move, squared.

    A normalised row of the unit ball moves by its diameter, and so it may when one of its cells
    changes, since that moves all of them.
    """
    if setting.reach is not None:
        return setting.reach
    if isinstance(lattice, WholeNumbers):  # tables without bounds: zeros and ones
        return Reach(row=setting.p, cell=1, longest=setting.p)
    return Reach(row=4 * lattice.ball, cell=4 * lattice.ball, longest=lattice.ball)


def rounded_variance(scale: float) -> float:
    """Variance of floor(scale Z + 1/2); for all but the smallest scales scale^2 + 1/12."""
    if scale > 10:
        return scale * scale + 1 / 12
    j = np.arange(1, 130)
    above = ndtr(-(j - 0.5) / scale)  # P[X >= j]
    return float(2 * ((2 * j - 1) * above).sum())


def nominal_deviations(setting: Setting, variance: float) -> tuple[float, float]:
    """Of a diagonal and another entry of the sum of noisy rows, as sums over rows.

    y_i y_j - x_i x_j = x_i z_j + z_i x_j + z_i z_j has variance (x_i^2 + x_j^2) v + v^2 off the
    diagonal, and 4 x_i^2 v + 2 v^2 on it. The rows being private, every x_i^2 is taken at its
    public share of the length; a column with more power than that has noisier entries, of which
    the release itself tells (`NoiseLaw.row_deviations`).
    """
    share, n = setting.power / setting.p, setting.n
    diagonal = n * (4 * share * variance + 2 * variance**2)
    return math.sqrt(diagonal), math.sqrt(n * (2 * share * variance + variance**2))
