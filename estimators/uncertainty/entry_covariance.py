"""Covariance of the entries of a symmetric matrix, by its noise and by sampling of the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.schemas.noise import NoiseLaw

# Covariance of the entries of a noisy symmetric matrix, as sums of a few matrices.
#
# Noise and sampling both give covariances of the form
#
# Cov(S_ij, S_kl) = sum over products (P, Q) of (P_ik Q_jl + P_il Q_jk + Q_ik P_jl + Q_il P_jk) / 2
#                 + sum over rank_one (c, M) of c M_ij M_kl
#                 + sum over quartic (c, L) of c sum_m L_im L_jm L_km L_lm.
#
# Gaussian entries that are white in svec are one product of s I with itself. Independent entries of
# one scale are that product and a quartic term, which is zero off the diagonal. A linear map S -> L
# S L^T maps P to L P L^T, M to L M L^T and the quartic L' to L L'. So errors are propagated through
# inverses and means, to first order, by a few matrix products, and a p^2 x p^2 covariance is never
# formed.

Array = NDArray[np.float64]


@dataclass(frozen=True)
class EntryCovariance:
    """Covariance of the entries of a symmetric matrix; see the module for the three sums."""

    products: tuple[tuple[Array, Array], ...] = ()
    rank_one: tuple[tuple[float, Array], ...] = ()
    quartic: tuple[tuple[float, Array], ...] = ()

    @classmethod
    def in_axes(cls, axes: Array, variance: Array) -> EntryCovariance:
        """Covariance of the entries of L E L^T, where those of E are independent.

        `axes`: L, shape (p, q). `variance`: of the entries of E off the diagonal, smooth in the
        order of its rows, and half of it on the diagonal; shape (q, q).
        """
        values, vectors = np.linalg.eigh(variance)
        used = np.abs(values) > _NEGLIGIBLE * np.abs(values).max(initial=0.0)
        terms = ((axes * each) @ axes.T for each in vectors.T[used])
        return cls(
            tuple((value * each, each) for value, each in zip(values[used], terms, strict=True))
        )

    def transformed(self, linear: Array) -> EntryCovariance:
        """Covariance of the entries of L S L^T, for L of shape (q, p)."""
        return EntryCovariance(
            tuple((congruence(linear, p), congruence(linear, q)) for p, q in self.products),
            tuple((c, congruence(linear, m)) for c, m in self.rank_one),
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

    def mean_variance_of_scores(self, coefficients: Array) -> Array:
        """The mean over i of Var (D b)_i for the deviation D of the matrix and each column b.

        `coefficients`: shape (p, k). Returns shape (k,).
        """
        total, b = np.zeros(coefficients.shape[1]), coefficients
        for left, right in self.products:
            of_left, of_right = left @ b, right @ b
            total += np.trace(left) * (b * of_right).sum(axis=0) / 2
            total += np.trace(right) * (b * of_left).sum(axis=0) / 2
            total += (of_left * of_right).sum(axis=0)
        for c, matrix in self.rank_one:
            total += c * ((matrix @ b) ** 2).sum(axis=0)
        for c, linear in self.quartic:
            total += c * ((linear**2).sum(axis=0) @ (linear.T @ b) ** 2)
        mean: Array = np.maximum(total, 0.0) / len(b)
        return mean

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


def noise_of_scores(noise: EntryCovariance, residual: Array) -> Array:
    """Covariance of E e; shape (p, p).

    `noise`: covariance of the entries of E. `residual`: e, shape (p,).
    """
    covariance = np.zeros((len(residual), len(residual)))
    for left, right in noise.products:
        of_left, of_right = left @ residual, right @ residual
        cross = np.outer(of_left, of_right)
        covariance += (left * (residual @ of_right) + right * (residual @ of_left)) / 2
        covariance += (cross + cross.T) / 2
    for c, matrix in noise.rank_one:
        covariance += c * np.outer(matrix @ residual, matrix @ residual)
    for c, linear in noise.quartic:
        covariance += c * (linear * (linear.T @ residual) ** 2) @ linear.T
    return covariance


def noise_covariance(law: NoiseLaw, moment: Array, rows: float) -> EntryCovariance:
    """Covariance of the entries of the noise of a release.

    It is exact, except for ``noisy-rows``, whose noise depends on the rows.

    `law`: noise law in the units of the matrix. `moment`: second moment of the rows, shape (p, p);
    used for ``noisy-rows`` only. `rows`: number of rows; used for ``noisy-rows`` only.

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


# Sampling errors of a second moment under an assumed law of the rows.
#
# A release does not publish fourth moments of the rows, so a law is assumed: Gaussian rows with
# mean zero, or with the means that the intercept column gives. For rows that were divided by their
# length, it is the law of Gaussian rows after that division, with the released second moment.
#
# With 1 / |x|^4 = integral of t exp(-t |x|^2) dt, the rows are Gaussian again for every t, with
# covariance C_t = C / (1 + 2 t C) and mean m_t = m / (1 + 2 t C). So the fourth moments of the
# divided rows are an integral of Gaussian ones,
#
# E[x_i x_j x_k x_l] = M_ij M_kl + M_ik M_jl + M_il M_jk - 2 m_i m_j m_k m_l,  M = C_t + m_t m_t^T,
#
# and a few dozen values of t give six exact digits. C and m are chosen so that the divided rows
# have the released second moment: for m = 0 this is the angular central Gaussian law (Tyler 1987).

_STEP = 0.5  # step in log t; the trapezoid rule converges like exp(-pi^2 / step)
_NEGLIGIBLE = 1e-9  # share of the integral that is left out, and smallest eigenvalue
_MAX_ITERATIONS, _TOLERANCE = 200, 1e-5  # relative to the moment; enough for standard errors


def sampling_covariance(
    moment: Array, rows: float, *, unit: bool, intercept: bool
) -> EntryCovariance:
    """Covariance of the entries of a second moment due to sampling.

    `moment`: second moment, positive semidefinite, shape (p, p). `unit`: whether rows were divided
    by their own length. `intercept`: whether the first column was constant before division.
    """
    if float(np.trace(moment)) <= 0 or (unit and len(moment) == 1):
        return EntryCovariance()
    if not unit:
        root = moment / math.sqrt(rows)
        if not intercept or moment[0, 0] <= 0:
            return EntryCovariance(products=((root, root),))
        mean = moment[0] / math.sqrt(moment[0, 0])
        return EntryCovariance(
            products=((root, root),), rank_one=((-2 / rows, np.outer(mean, mean)),)
        )
    trace = float(np.trace(moment))
    unit_trace = moment / trace
    law = _fit_with_constant(unit_trace) if intercept else _fit_central(unit_trace)
    scale = trace * math.sqrt(1 / rows)
    products, squares = [], []
    # Gaussian components whose fourth moments add up to those of the divided rows.
    for weight, values, own_mean in zip(*_quadrature(law, 2), strict=True):
        matrix, mean = _second_moment(law, values, own_mean)
        root = matrix * (scale * math.sqrt(weight))
        products.append((root, root))
        squares.append((1.0, root))
        if intercept:
            squares.append((-2.0 * weight * scale**2, np.outer(mean, mean)))
    squares.append((-1 / rows, moment))
    return EntryCovariance(tuple(products), tuple(squares))


@dataclass(frozen=True)
class _RowLaw:
    """Gaussian law before division: eigenvalues and vectors of C, and m in the basis of these."""

    values: Array
    vectors: Array
    mean: Array
    constant: bool


def _quadrature(law: _RowLaw, power: int) -> tuple[Array, Array, Array]:
    """Weights of the nodes t for the integral of t^(power - 1) E[...] dt, with C_t, m_t."""
    size = float(law.values.sum() + (law.mean**2).sum() + law.constant)
    log = np.arange(-21.0, 45.0, _STEP) - math.log(size)
    t = np.exp(log)
    # E exp(-t |x|^2), eigenvalues of C_t, and m_t; shapes (k,), (k, p), (k, p).
    shrink = 1 / (1 + 2 * np.outer(t, law.values))
    exponent = 0.5 * np.log(shrink).sum(axis=1) - t * (shrink * law.mean**2).sum(axis=1)
    expected, values, mean = (
        np.exp(exponent - t * law.constant),
        law.values * shrink,
        law.mean * shrink,
    )
    weight = _STEP * t**power * expected
    # For t above order 1, M_t falls like 1 / t, or is that of the constant column.
    largest = np.maximum(values.max(axis=1), (mean**2).sum(axis=1) + law.constant)
    share = weight * largest**power
    kept = share > _NEGLIGIBLE * share.sum()
    return weight[kept], values[kept], mean[kept]


def _second_moment(law: _RowLaw, values: Array, mean: Array) -> tuple[Array, Array]:
    centre = law.vectors @ mean
    root = law.vectors * np.sqrt(values)
    matrix = root @ root.T + np.outer(centre, centre)  # symmetric to the last bit
    if not law.constant:
        return matrix, centre
    centre = np.append(1.0, centre)
    full = np.outer(centre, centre)
    full[1:, 1:] = matrix
    return full, centre


def _fit_central(moment: Array) -> _RowLaw:
    """The law with mean zero: division keeps the eigenvectors, and shrinks the eigenvalues."""
    target, vectors = np.linalg.eigh(moment)
    target = np.maximum(target, _NEGLIGIBLE)
    target /= target.sum()
    law = _RowLaw(target, vectors, np.zeros_like(target), constant=False)
    for _ in range(_MAX_ITERATIONS):
        weight, values, _ = _quadrature(law, 1)
        ratio = target / (weight @ values)
        law = _RowLaw(law.values * ratio / (law.values @ ratio), vectors, law.mean, constant=False)
        if np.abs(ratio - 1).max() < _TOLERANCE:
            break
    return law


def _fit_with_constant(moment: Array) -> _RowLaw:
    """The law of (1, x) that has this second moment after division; updates a Cholesky factor."""
    p = len(moment)
    ridge = _NEGLIGIBLE * np.eye(p)
    target = np.linalg.cholesky(moment + ridge)
    root = target
    law = _law_of_moment(moment + ridge)
    for _ in range(_MAX_ITERATIONS):
        # Second moment after division: the weighted sum of `_second_moment` over all nodes.
        weight, values, mean = _quadrature(law, 1)
        first = law.vectors @ (weight @ mean)
        inner = np.diag(weight @ values) + (mean.T * weight) @ mean
        rest = law.vectors @ inner @ law.vectors.T
        fitted = np.block([[weight.sum(), first], [first[:, None], rest]])
        step = np.linalg.solve(np.linalg.cholesky(fitted + ridge), target)
        root = root @ step  # stays triangular, so it is a Cholesky factor again
        law = _law_of_moment(root @ root.T)
        if np.abs(fitted - moment).max() < _TOLERANCE:
            break
    return law


def _law_of_moment(second: Array) -> _RowLaw:
    """The law of (1, x) from its second moment, up to scale."""
    mean = second[0, 1:] / second[0, 0]
    values, vectors = np.linalg.eigh(second[1:, 1:] / second[0, 0] - np.outer(mean, mean))
    return _RowLaw(np.maximum(values, _NEGLIGIBLE), vectors, vectors.T @ mean, constant=True)
