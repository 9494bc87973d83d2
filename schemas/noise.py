"""The law of the noise in a release, for analysts."""

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
        Family of distributions. ``gaussian-isotropic``: independent Gaussian entries, white in
        svec coordinates (a GOE matrix). ``gaussian-iid``, ``laplace``: independent entries of equal
        scale. ``k-norm``: a uniform direction in svec coordinates and a Gamma length. ``wishart``:
        a Wishart matrix with `dof` degrees of freedom; ``matrix-laplace``: the difference of two.
        ``noisy-rows``: noise in the second moment of noisy rows; its standard deviations
        depend on the rows, and are stated for rows of equal mean squares: see `row_deviations`.
        ``none``: no noise, for an analyst's own matrix, and for a release without a matrix.
    sd_diagonal, sd_off_diagonal
        Standard deviation of the noise on a diagonal and on an off-diagonal entry, in the units of
        the matrix.
    mean
        Mean of the noise on a diagonal entry.
    dof
        Degrees of freedom of a Wishart matrix.
    cell_variance
        For ``noisy-rows``, variance of the noise on a published cell, in squared units of the rows.
    """

    family: Family
    sd_diagonal: NotNegative
    sd_off_diagonal: NotNegative
    mean: Real = 0.0
    dof: Positive | None = None
    cell_variance: Positive | None = None

    @classmethod
    def none(cls) -> NoiseLaw:
        """The law of a matrix without noise."""
        return cls(family="none", sd_diagonal=0.0, sd_off_diagonal=0.0)

    @property
    def rotation_invariant(self) -> bool:
        """Whether the law is invariant under rotations, for any matrix."""
        return self.family in {"gaussian-isotropic", "k-norm", "matrix-laplace", "wishart"}

    @property
    def has_noise(self) -> bool:
        """Whether there is any noise to reduce."""
        return self.family != "none"

    def deviations(self, p: int) -> NDArray[np.float64]:
        """Standard deviation of every entry, for p columns; shape (p, p)."""
        deviations = np.full((p, p), self.sd_off_diagonal)
        np.fill_diagonal(deviations, self.sd_diagonal)
        return deviations

    def row_deviations(self, diagonal: NDArray[np.float64], rows: float) -> NDArray[np.float64]:
        """Standard deviation of every entry of the second moment of noisy rows.

        Parameters
        ----------
        diagonal
            Diagonal of the second moment, shape (p,); negative values count as zero.
        rows
            Number of rows.

        Returns
        -------
        ndarray, shape (p, p)

        Notes
        -----
        With v the variance of a cell: ((S_ii + S_jj) v + v^2) / n off the diagonal, and
        (4 S_ii v + 2 v^2) / n on it.
        """
        if self.cell_variance is None:
            return self.deviations(diagonal.size)
        v, mean_squares = self.cell_variance, np.maximum(diagonal, 0.0)
        variances = np.add.outer(mean_squares, mean_squares) * v + v * v
        variances[np.diag_indices_from(variances)] *= 2.0  # 2 (2 S_ii v + v^2)
        deviations: NDArray[np.float64] = np.sqrt(variances / rows)
        return deviations

    def norm(self, p: int) -> float:
        """Root mean square of the noise's Frobenius norm about its mean, for p columns."""
        return math.sqrt(p * self.sd_diagonal**2 + p * (p - 1) * self.sd_off_diagonal**2)

    def summed(self, times: int) -> NoiseLaw:
        """The law of the sum of `times` independent matrices of this Gaussian law."""
        root = math.sqrt(times)
        return self.model_copy(
            update={
                "sd_diagonal": self.sd_diagonal * root,
                "sd_off_diagonal": self.sd_off_diagonal * root,
                "mean": self.mean * times,
            }
        )

    def divided_by(self, divisor: float) -> NoiseLaw:
        """The law of the matrix divided by a number."""
        return self.model_copy(
            update={
                "sd_diagonal": self.sd_diagonal / divisor,
                "sd_off_diagonal": self.sd_off_diagonal / divisor,
                "mean": self.mean / divisor,
            }
        )
