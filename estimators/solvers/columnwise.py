"""Lasso problems of all columns at once, by coordinate descent on a second moment.

For every column j: minimise over b  b^T S b / 2 - c_j^T b + sum_i penalty_ij |b_i|

Neighbourhood selection and SCIO have this form. S is positive semidefinite, so the problems are
convex; an infinite penalty fixes its coefficient at zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from gramercy.estimators.solvers.block import checked_symmetric, soft_threshold
from gramercy.schemas import families, wordings

Array = NDArray[np.float64]

_LIMIT = 1000  # sweeps
_CHECK_EVERY = 4  # sweeps between convergence checks; a check costs nearly as much as a sweep
_SOLVE_EVERY = 8  # sweeps between exact solutions for columns whose signs are unchanged
_SOLVE_ALL_EVERY = 64  # sweeps between exact solutions for all columns
_BATCH = 256  # problems at a time: with 1000 columns they fit a processor's cache
_DIVERGED = 1e10  # coefficients of this size occur only with a singular matrix
_TOLERANCE = 1e-11  # residual at which the estimates of two machines are equal
# Negative eigenvalues above minus this, on a unit diagonal, count as rounding.
_MIN_EIGENVALUE = 1e-10


@dataclass(frozen=True)
class ColumnSolutions:
    """Minimisers with a proven accuracy."""

    coefficients: Array  # one minimiser in each column, with exact zeros; shape (p, k)
    # largest distance of zero from a subgradient, on a unit diagonal, relative to the size of its
    # terms
    residual: float
    sweeps: int  # largest number of passes over all coefficients


def columnwise(S: Array, C: Array, penalties: Array) -> ColumnSolutions:
    """Solve k problems together: each step is the product of a row of S and many columns.

    `S`: symmetric, positive semidefinite, with a positive diagonal; shape (p, p). `C`: the linear
    terms c_j; shape (p, k). `penalties`: not negative; infinite where a coefficient is fixed at
    zero; shape (p, k). Raises ValueError if S is
    invalid, or shapes do not match, or a penalty is negative. Raises RequestError if the iteration
    did not converge: S is nearly singular, and the penalties are small.

    Friedman, Hastie and Tibshirani (2010), "Regularization paths for generalized linear models via
    coordinate descent", with "covariance updates". Coefficient i of every column in turn is
    replaced by its minimiser, soft(c_i - S_i. b + S_ii b_i, penalty_i) / S_ii, which gives exact
    zeros. If S is nearly singular, the signs converge fast and the values slowly. Given the signs,
    the values solve linear equations, so these are solved from time to time, up to the first change
    of a sign (Lee, Battle, Raina and Ng 2007): 160 sweeps instead of thousands for 100 columns, 80
    rows and a floor of 0.001. Linear equations cost as much as many sweeps, so they are mostly
    solved for columns whose signs have not changed for some sweeps.

    Convergence is checked with the subgradient: g = S b - c must be -penalty sign(b) where b is not
    zero, and within the penalty where it is. S is scaled to a unit diagonal first, so the units of
    columns do not matter.
    """
    symmetric = checked_symmetric(S)
    if np.diagonal(S).min() <= 0:
        raise families.MATRIX("{argument} must have a positive diagonal.", argument="S")
    root = np.sqrt(np.diagonal(S))
    unit: Array = symmetric / np.outer(root, root)
    np.fill_diagonal(unit, 1.0)
    if np.linalg.eigvalsh(unit)[0] < -_MIN_EIGENVALUE * len(unit):
        raise families.MATRIX(
            "{argument} must be positive semidefinite.",
            "Use the denoised matrix of the release.",
            argument="S",
        )
    if C.shape != penalties.shape:
        raise wordings.shapes_differ("penalties", "C")
    if len(C) != len(S):
        raise families.MATRIX("{argument} must have {rows} rows.", argument="C", rows=len(S))
    if not (penalties >= 0).all():
        raise wordings.negative_entries("penalties")
    if not np.isfinite(C).all():
        raise wordings.not_finite("C")
    linear, penalty = C / root[:, None], penalties / root[:, None]
    solution, residual, sweeps = np.zeros_like(linear), 0.0, 0
    for begin in range(0, C.shape[1], _BATCH):
        batch = slice(begin, begin + _BATCH)
        solution[:, batch], batch_residual, batch_sweeps = _solve_batch(
            unit, linear[:, batch], penalty[:, batch]
        )
        residual, sweeps = max(residual, batch_residual), max(sweeps, batch_sweeps)
    return ColumnSolutions(solution / root[:, None] + 0.0, residual, sweeps)


def _solve_batch(unit: Array, linear: Array, penalty: Array) -> tuple[Array, float, int]:
    """Minimisers for a matrix with unit diagonal, their largest residual, and the sweeps."""
    solution, remaining = np.zeros_like(linear), np.arange(linear.shape[1])
    b, signs, largest = np.zeros_like(linear), np.zeros_like(linear), 0.0
    for sweep in range(1, _LIMIT + 1):
        for i, row in enumerate(unit):
            b[i] = soft_threshold(linear[i] - row @ b + b[i], penalty[i])
        if sweep % _SOLVE_EVERY == 0:
            unchanged = (np.sign(b) == signs).all(axis=0)
            for j in np.flatnonzero(unchanged | (sweep % _SOLVE_ALL_EVERY == 0)):
                b[:, j] = _solve_for_signs(unit, linear[:, j], penalty[:, j], b[:, j])
            signs = np.sign(b)
        if sweep % _CHECK_EVERY:
            continue
        residuals = _residuals(unit, linear, penalty, b)
        done = residuals <= _TOLERANCE
        if done.any():
            largest = max(largest, float(residuals[done].max()))
            solution[:, remaining[done]] = b[:, done]
            remaining, b, signs = remaining[~done], b[:, ~done], signs[:, ~done]
            linear, penalty = linear[:, ~done], penalty[:, ~done]
        if not remaining.size:
            return solution, largest, sweep
        if np.abs(b).max() > _DIVERGED * np.abs(linear).max():
            break
    raise families.NOT_CONVERGED(
        "The lasso of each column did not converge: the matrix is nearly singular.",
        "Use a larger penalty.",
    )


def _residuals(unit: Array, linear: Array, penalty: Array, b: Array) -> Array:
    """Distance of zero from each column's subgradient, relative to its terms; shape (k,)."""
    gradient = unit @ b - linear
    with np.errstate(invalid="ignore"):  # an infinite penalty times a sign of zero
        distance = np.where(
            b != 0, np.abs(gradient + penalty * np.sign(b)), np.abs(gradient) - penalty
        )
    terms = np.abs(unit) @ np.abs(b) + np.abs(linear)
    size = terms.max(axis=0)
    residuals: Array = np.maximum(distance, 0.0).max(axis=0) / np.where(size > 0, size, 1.0)
    return residuals


def _solve_for_signs(unit: Array, linear: Array, penalty: Array, column: Array) -> Array:
    """Move one column towards the minimum for its current signs, along a descent path.

    The first coefficient that reaches zero stays there, and the others move on; the objective
    decreases all the way. The inverse without coefficient k is M - M_k M_k^T / M_kk, so one
    inverse is enough.
    """
    support = np.flatnonzero(column)
    if not support.size:
        return column
    b, sign, free = column[support], np.sign(column[support]), np.ones(support.size, dtype=bool)
    factor, failed = dpotrf(unit[np.ix_(support, support)], lower=1, clean=1)
    if failed:  # singular: leave it to coordinate descent
        return column
    best: Array = dpotrs(factor, linear[support] - penalty[support] * sign, lower=1)[0]
    inverse: Array | None = None
    while (crossing := sign * best < 0).any():
        if inverse is None:
            lower = dpotri(factor, lower=1)[0]
            inverse = lower + np.tril(lower, -1).T
        share = np.where(crossing, b / np.where(crossing, b - best, 1.0), np.inf)
        k = int(share.argmin())
        b = b + share[k] * (best - b)
        b[k], free[k] = 0.0, False
        inverse_k, pivot = inverse[:, k].copy(), float(inverse[k, k])
        if not pivot > 0:  # rounding: stop here
            best = b
            break
        best = np.where(free, best - inverse_k * (best[k] / pivot), 0.0)
        inverse -= np.outer(inverse_k, inverse_k / pivot)
    if not np.isfinite(best).all():
        return column
    moved = np.zeros_like(column)
    moved[support] = best
    return moved
