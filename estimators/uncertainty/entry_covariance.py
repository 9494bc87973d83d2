"""Covariance of the entries of a noisy symmetric matrix, as sums of a few matrices.

Noise and sampling both give covariances of the form

Cov(S_ij, S_kl) = sum over products (P, Q) of (P_ik Q_jl + P_il Q_jk + Q_ik P_jl + Q_il P_jk) / 2
                + sum over rank_one (c, M) of c M_ij M_kl
                + sum over quartic (c, L) of c sum_m L_im L_jm L_km L_lm.

Gaussian entries that are white in svec are one product of s I with itself. Independent entries of
one scale are that product and a quartic term, which is zero off the diagonal. A linear map
S -> L S L^T maps P to L P L^T, M to L M L^T and the quartic L' to L L'. So errors are propagated
through inverses and means, to first order, by a few matrix products, and a p^2 x p^2 covariance is
never formed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]


@dataclass(frozen=True)
class EntryCovariance:
    """Covariance of the entries of a symmetric matrix; see the module for the three sums."""

    products: tuple[tuple[Array, Array], ...] = ()
    rank_one: tuple[tuple[float, Array], ...] = ()
    quartic: tuple[tuple[float, Array], ...] = ()

    def transformed(self, linear: Array) -> EntryCovariance:
        """Covariance of the entries of L S L^T, for L of shape (q, p)."""
        return EntryCovariance(
            tuple((_congruence(linear, p), _congruence(linear, q)) for p, q in self.products),
            tuple((c, _congruence(linear, m)) for c, m in self.rank_one),
            tuple((c, linear @ m) for c, m in self.quartic),
        )

    def scaled(self, scale: Array) -> EntryCovariance:
        """Covariance after rows and columns are multiplied by `scale`, shape (p,)."""
        scales = np.outer(scale, scale)
        return EntryCovariance(
            tuple((p * scales, q * scales) for p, q in self.products),
            tuple((c, m * scales) for c, m in self.rank_one),
            tuple((c, scale[:, None] * m) for c, m in self.quartic),
        )

    def variance(self, p: int) -> Array:
        """Var(S_ij) for p columns, shape (p, p)."""
        variance = np.zeros((p, p))
        for left, right in self.products:
            diagonals = np.outer(np.diag(left), np.diag(right))
            variance += (diagonals + diagonals.T) / 2 + left * right
        for c, matrix in self.rank_one:
            variance += c * matrix**2
        for c, linear in self.quartic:
            variance += c * (linear**2 @ (linear**2).T)
        return variance

    def covariance_with_diagonal(self, p: int) -> tuple[Array, Array]:
        """Cov(S_ij, S_ii) and Cov(S_ii, S_jj), each of shape (p, p)."""
        with_own, between = np.zeros((p, p)), np.zeros((p, p))
        for left, right in self.products:
            with_own += np.diag(left)[:, None] * right + np.diag(right)[:, None] * left
            between += 2 * left * right
        for c, matrix in self.rank_one:
            with_own += c * np.diag(matrix)[:, None] * matrix
            between += c * np.outer(np.diag(matrix), np.diag(matrix))
        for c, linear in self.quartic:
            with_own += c * (linear**3 @ linear.T)
            between += c * (linear**2 @ (linear**2).T)
        return with_own, between

    def dyson_correction(self, weight: Array) -> Array:
        """E[D W D] for the deviation D of the matrix and a symmetric W; shape (p, p)."""
        expected = np.zeros_like(weight)
        for left, right in self.products:
            cross = left @ weight @ right
            traces = (right * weight).sum() * left + (left * weight).sum() * right
            expected += (cross + cross.T + traces) / 2
        for c, matrix in self.rank_one:
            expected += c * (matrix @ weight @ matrix)
        for c, linear in self.quartic:
            middle = ((linear.T @ weight) * linear.T).sum(axis=1)
            expected += c * ((linear * middle) @ linear.T)
        return expected


def noise_covariance(law: NoiseLaw, moment: Array, rows: float) -> EntryCovariance:
    """Covariance of the entries of the noise of a release.

    It is exact, except for ``noisy-rows``, whose noise depends on the rows.

    Parameters
    ----------
    law
        Noise law in the units of the matrix.
    moment
        Second moment of the rows, shape (p, p); used for ``noisy-rows`` only.
    rows
        Number of rows; used for ``noisy-rows`` only.

    Notes
    -----
    With noise of variance v on the cells of n rows, (X^T Z + Z^T X) / n has the covariance
    v/n (S_ik d_jl + S_il d_jk + d_ik S_jl + d_il S_jk), and Z^T Z / n has v^2/n (d_ik d_jl +
    d_il d_jk).
    """
    if law.family == "none":
        return EntryCovariance()
    p = moment.shape[0]
    if law.cell_variance is not None:
        v, identity = law.cell_variance, np.eye(p)
        white = identity * (v / math.sqrt(rows))
        return EntryCovariance(products=((moment, identity * (2 * v / rows)), (white, white)))
    white = np.eye(p) * law.sd_off_diagonal
    excess = law.sd_diagonal**2 - 2 * law.sd_off_diagonal**2
    quartic = () if law.rotation_invariant or excess == 0 else ((excess, np.eye(p)),)
    return EntryCovariance(products=((white, white),), quartic=quartic)


def _congruence(linear: Array, matrix: Array) -> Array:
    product: Array = linear @ matrix @ linear.T
    return (product + product.T) / 2
