"""The law of the noise in a release, as analysts need to know it."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.model import Model, NotNegative, Positive, Real

Family = Literal[
    "gaussian-isotropic",
    "gaussian-iid",
    "laplace",
    "k-norm",
    "matrix-laplace",
    "wishart",
    "noisy-rows",
    "none",
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
        on every row makes of their second moment; its deviations depend on the rows, and those here
        are of rows that fill all directions alike: see `row_deviations`. ``none``: no noise at
        all, for an analyst's own matrix; no release has it.
    sd_diagonal, sd_off_diagonal
        Standard deviations of an entry, in the units of the matrix they speak of.
    mean
        What the noise adds to every diagonal entry on average.
    dof
        Degrees of freedom of a Wishart matrix.
    cell_variance
        Of ``noisy-rows``: of the noise on a published cell, in the units of the rows.
    """

    family: Family
    sd_diagonal: NotNegative
    sd_off_diagonal: NotNegative
    mean: Real = 0.0
    dof: Positive | None = None
    cell_variance: Positive | None = None

    @classmethod
    def none(cls) -> NoiseLaw:
        """No noise at all."""
        return cls(family="none", sd_diagonal=0.0, sd_off_diagonal=0.0)

    @property
    def invariant(self) -> bool:
        """Whether rotations leave the law as it is, whatever the matrix."""
        return self.family in {"gaussian-isotropic", "k-norm", "matrix-laplace", "wishart"}

    @property
    def shrinkable(self) -> bool:
        """Whether a matrix with this noise is mended by its eigenvalues alone: all noise is."""
        return self.family != "none"

    def deviations(self, p: int) -> NDArray[np.float64]:
        """Standard deviation of every entry, for p columns; shape (p, p)."""
        found = np.full((p, p), self.sd_off_diagonal)
        np.fill_diagonal(found, self.sd_diagonal)
        return found

    def row_deviations(self, power: NDArray[np.float64], rows: float) -> NDArray[np.float64]:
        """Standard deviation of every entry of the second moment of noisy rows.

        Parameters
        ----------
        power
            The diagonal of the second moment, shape (p,); taken as zero where it is less.
        rows
            How many.

        Returns
        -------
        ndarray, shape (p, p)

        Notes
        -----
        With v the variance of a cell: ((S_ii + S_jj) v + v^2) / n off the diagonal, and
        (4 S_ii v + 2 v^2) / n on it.
        """
        if self.cell_variance is None:
            return self.deviations(power.size)
        v, known = self.cell_variance, np.maximum(power, 0.0)
        squares = np.add.outer(known, known) * v + v * v
        squares[np.diag_indices_from(squares)] *= 2.0  # 2 (2 S_ii v + v^2)
        found: NDArray[np.float64] = np.sqrt(squares / rows)
        return found

    def norm(self, p: int) -> float:
        """Root mean square of the noise's Frobenius norm about its mean, for p columns."""
        return math.sqrt(p * self.sd_diagonal**2 + p * (p - 1) * self.sd_off_diagonal**2)

    def summed(self, times: int) -> NoiseLaw:
        """The law of the sum of so many Gaussian matrices of this law."""
        root = math.sqrt(times)
        return self.model_copy(
            update={
                "sd_diagonal": self.sd_diagonal * root,
                "sd_off_diagonal": self.sd_off_diagonal * root,
                "mean": self.mean * times,
            }
        )

    def divided_by(self, divisor: float) -> NoiseLaw:
        """The law after the matrix is divided by a number."""
        return self.model_copy(
            update={
                "sd_diagonal": self.sd_diagonal / divisor,
                "sd_off_diagonal": self.sd_off_diagonal / divisor,
                "mean": self.mean / divisor,
            }
        )
