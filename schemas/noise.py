"""The law of the noise in a release, as analysts need to know it."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from schemas.model import Model, Positive


class NoiseLaw(Model):
    """Independent Gaussian noise on the upper triangle of a symmetric matrix, zero on average.

    Parameters
    ----------
    family
        ``gaussian-isotropic``: white in svec coordinates, so its law does not change under
        rotations of the matrix (a GOE matrix).
    sd_diagonal, sd_off_diagonal
        Standard deviations of an entry, in the units of the matrix they speak of.
    """

    family: Literal["gaussian-isotropic"]
    sd_diagonal: Positive
    sd_off_diagonal: Positive

    def deviations(self, p: int) -> NDArray[np.float64]:
        """Standard deviation of every entry, for p columns; shape (p, p)."""
        found = np.full((p, p), self.sd_off_diagonal)
        np.fill_diagonal(found, self.sd_diagonal)
        return found

    def norm(self, p: int) -> float:
        """Root mean square of the noise's Frobenius norm, for p columns."""
        return math.sqrt(p * self.sd_diagonal**2 + p * (p - 1) * self.sd_off_diagonal**2)

    def divided_by(self, divisor: float) -> NoiseLaw:
        """The law after the matrix is divided by a number."""
        return self.model_copy(
            update={
                "sd_diagonal": self.sd_diagonal / divisor,
                "sd_off_diagonal": self.sd_off_diagonal / divisor,
            }
        )
