"""How the entries of a noisy symmetric matrix vary together, as sums of a few matrices.

Everything known of the noise and of sampling is a covariance of the form

Cov(S_ij, S_kl) = sum over products (P, Q) of (P_ik Q_jl + P_il Q_jk + Q_ik P_jl + Q_il P_jk) / 2
                + sum over squares (c, M) of c M_ij M_kl
                + sum over lone (c, L) of c sum_m L_im L_jm L_km L_lm.

Gaussian entries, white in svec, are one product of s I with itself; independent entries of one
scale are that and a lone term, on the diagonal alone. A linear map S -> L S L^T takes P to
L P L^T, M to L M L^T and L' to L L': so errors go through inverses and means to first order, at the
cost of a few products of matrices and never of a p^2 x p^2 covariance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """Covariance of the entries of a symmetric matrix; see the module for the three sums."""

    products: tuple[tuple[Array, Array], ...] = ()
    squares: tuple[tuple[float, Array], ...] = ()
    lone: tuple[tuple[float, Array], ...] = ()

    def through(self, linear: Array) -> Spread:
        """Of L S L^T, for L of shape (q, p)."""
        return Spread(
            tuple((_through(linear, p), _through(linear, q)) for p, q in self.products),
            tuple((c, _through(linear, m)) for c, m in self.squares),
            tuple((c, linear @ m) for c, m in self.lone),
        )

    def scaled(self, scale: Array) -> Spread:
        """Of the matrix with rows and columns multiplied by numbers, shape (p,)."""
        both = np.outer(scale, scale)
        return Spread(
            tuple((p * both, q * both) for p, q in self.products),
            tuple((c, m * both) for c, m in self.squares),
            tuple((c, scale[:, None] * m) for c, m in self.lone),
        )

    def variance(self, p: int) -> Array:
        """Var(S_ij) for p columns, shape (p, p)."""
        found = np.zeros((p, p))
        for left, right in self.products:
            ends = np.outer(np.diag(left), np.diag(right))
            found += (ends + ends.T) / 2 + left * right
        for c, matrix in self.squares:
            found += c * matrix**2
        for c, linear in self.lone:
            found += c * (linear**2 @ (linear**2).T)
        return found

    def with_diagonal(self, p: int) -> tuple[Array, Array]:
        """Cov(S_ij, S_ii) and Cov(S_ii, S_jj), each of shape (p, p)."""
        own, ends = np.zeros((p, p)), np.zeros((p, p))
        for left, right in self.products:
            own += np.diag(left)[:, None] * right + np.diag(right)[:, None] * left
            ends += 2 * left * right
        for c, matrix in self.squares:
            own += c * np.diag(matrix)[:, None] * matrix
            ends += c * np.outer(np.diag(matrix), np.diag(matrix))
        for c, linear in self.lone:
            own += c * (linear**3 @ linear.T)
            ends += c * (linear**2 @ (linear**2).T)
        return own, ends

    def bend(self, weight: Array) -> Array:
        """E[D W D] for the deviation D of the matrix and a symmetric W; shape (p, p)."""
        found = np.zeros_like(weight)
        for left, right in self.products:
            cross = left @ weight @ right
            traces = (right * weight).sum() * left + (left * weight).sum() * right
            found += (cross + cross.T + traces) / 2
        for c, matrix in self.squares:
            found += c * (matrix @ weight @ matrix)
        for c, linear in self.lone:
            middle = ((linear.T @ weight) * linear.T).sum(axis=1)
            found += c * ((linear * middle) @ linear.T)
        return found


def of_noise(law: NoiseLaw, moment: Array, rows: float) -> Spread:
    """Spread of the noise of a release: exact, but for ``noisy-rows``, which asks for the rows.

    Parameters
    ----------
    law
        Noise law in the units of the matrix.
    moment
        Second moment of the rows, of which only ``noisy-rows`` makes use; shape (p, p).
    rows
        How many, likewise.

    Notes
    -----
    Of noise of variance v on the cells of n rows, (X^T Z + Z^T X) / n has the covariance
    v/n (S_ik d_jl + S_il d_jk + d_ik S_jl + d_il S_jk), and Z^T Z / n has v^2/n (d_ik d_jl +
    d_il d_jk).
    """
    if law.family == "none":
        return Spread()
    p = moment.shape[0]
    if law.cell_variance is not None:
        v, one = law.cell_variance, np.eye(p)
        white = one * (v / math.sqrt(rows))
        return Spread(products=((moment, one * (2 * v / rows)), (white, white)))
    white = np.eye(p) * law.sd_off_diagonal
    beyond = law.sd_diagonal**2 - 2 * law.sd_off_diagonal**2
    lone = () if law.invariant or beyond == 0 else ((beyond, np.eye(p)),)
    return Spread(products=((white, white),), lone=lone)


def _through(linear: Array, matrix: Array) -> Array:
    product: Array = linear @ matrix @ linear.T
    return (product + product.T) / 2
