"""The law of the noise in a release, as analysts need to know it."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from schemas.model import Model, Positive, Real

Family = Literal[
    "gaussian-isotropic",
    "gaussian-iid",
    "laplace",
    "k-norm",
    "matrix-laplace",
    "wishart",
    "noisy-rows",
]


class NoiseLaw(Model):
    """Noise on the upper triangle of a symmetric matrix.

    Parameters
    ----------
    family
        ``gaussian-isotropic``: independent Gaussian entries, white in svec coordinates (a GOE
        matrix). ``gaussian-iid``, ``laplace``: independent entries of one scale. ``k-norm``: a
        direction uniform in svec, and a Gamma length. ``wishart``: a Wishart matrix of `dof`
        degrees of freedom; ``matrix-laplace``: the difference of two. ``noisy-rows``: what noise
        on every row makes of their second moment; the deviations are those of rows that fill all
        directions alike.
    sd_diagonal, sd_off_diagonal
        Standard deviations of an entry, in the units of the matrix they speak of.
    mean
        What the noise adds to every diagonal entry on average.
    dof
        Degrees of freedom of a Wishart matrix.
    """

    family: Family
    sd_diagonal: Positive
    sd_off_diagonal: Positive
    mean: Real = 0.0
    dof: Positive | None = None

    @property
    def invariant(self) -> bool:
        """Whether rotations leave the law as it is, so that eigenvalues alone can be mended."""
        return self.family in {"gaussian-isotropic", "k-norm", "matrix-laplace", "wishart"}

    def deviations(self, p: int) -> NDArray[np.float64]:
        """Standard deviation of every entry, for p columns; shape (p, p)."""
        found = np.full((p, p), self.sd_off_diagonal)
        np.fill_diagonal(found, self.sd_diagonal)
        return found

    def norm(self, p: int) -> float:
        """Root mean square of the noise's Frobenius norm about its mean, for p columns."""
        return math.sqrt(p * self.sd_diagonal**2 + p * (p - 1) * self.sd_off_diagonal**2)

    def divided_by(self, divisor: float) -> NoiseLaw:
        """The law after the matrix is divided by a number."""
        return self.model_copy(
            update={
                "sd_diagonal": self.sd_diagonal / divisor,
                "sd_off_diagonal": self.sd_off_diagonal / divisor,
                "mean": self.mean / divisor,
            }
        )
