"""Lasso problems of all columns at once, by coordinate descent on a known second moment.

For every column j: minimise over b  b^T S b / 2 - c_j^T b + sum_i penalty_ij |b_i|

Neighbourhood selection and SCIO are both of this form. S is positive semidefinite, so the problems
are convex; a penalty of infinity holds its coefficient at zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from gramercy.estimators.solvers.block import soft_threshold
from gramercy.schemas.errors import RequestError

Array = NDArray[np.float64]

_LIMIT = 1000  # sweeps
_LOOK = 4  # sweeps between looks at what is done; a look costs nearly as much as a sweep
_EVERY = 8  # sweeps between solving for signs that have stayed
_WHATEVER = 64  # sweeps between solving for the present signs, stayed or not
_AT_ONCE = 256  # problems: of 1000 columns they fit a processor's cache
_BEYOND = 1e10  # coefficients that only a singular matrix can have
_TOLERANCE = 1e-11  # at which two machines' estimates are one
_CLEARLY = 1e-10  # how far below zero an eigenvalue of a unit diagonal is more than rounding


@dataclass(frozen=True)
class Columns:
    """The minimisers, and how near to optimal they are known to be.

    Parameters
    ----------
    coefficients
        One minimiser a column, with exact zeros; shape (p, k).
    residual
        The most by which a subgradient misses zero, on a unit diagonal, as a share of the terms it
        is made of.
    sweeps
        Passes over all coefficients, of the problem that took the most.
    """

    coefficients: Array
    residual: float
    sweeps: int


def columnwise(S: Array, C: Array, penalties: Array, *, tol: float = _TOLERANCE) -> Columns:
    """Solve the k problems together: every step is one product of a row of S and many columns.

    Parameters
    ----------
    S
        Symmetric, positive semidefinite, with a positive diagonal; shape (p, p).
    C
        The linear terms c_j; shape (p, k).
    penalties
        Not negative; infinite where a coefficient is held at zero; shape (p, k).
    tol
        Largest residual; see `Columns`.

    Raises
    ------
    ValueError
        If S is not what it must be, or shapes do not match, or a penalty is negative.
    RequestError
        If the problems did not settle: S is singular, or nearly so, and the penalties are small.

    Notes
    -----
    Friedman, Hastie and Tibshirani (2010), "Regularization paths for generalized linear models via
    coordinate descent", with "covariance updates". Coefficient i of every column in turn is
    replaced by its own minimiser, soft(c_i - S_i. b + S_ii b_i, penalty_i) / S_ii, which leaves
    exact zeros. Where S is nearly singular, descent finds the signs soon and the numbers slowly;
    but given the signs they solve linear equations, so now and then it goes to that solution, as
    far as the signs stay (Lee, Battle, Raina and Ng 2007): 160 sweeps, not thousands, for 100
    columns, 80 rows and a floor of 0.001. Equations cost as much as many sweeps, so first those
    columns are solved whose signs have stayed for some sweeps: for most it is the last step.

    The optimum is told by the subgradient alone: g = S b - c must be -penalty sign(b) where b is
    not zero, and within the penalty where it is. All of it on the unit diagonal, so that units of
    columns change nothing.
    """
    unit, root = _unit(S)
    if C.shape != penalties.shape or len(C) != len(S) or np.isnan(penalties).any():
        raise ValueError("the linear terms and penalties must have one shape, and p rows")
    if penalties.min(initial=0.0) < 0 or not np.isfinite(C).all():
        raise ValueError("penalties must not be negative, and linear terms finite")
    linear, penalty = C / root[:, None], penalties / root[:, None]
    found, worst, sweeps = np.zeros_like(linear), 0.0, 0
    for begin in range(0, C.shape[1], _AT_ONCE):
        some = slice(begin, begin + _AT_ONCE)
        found[:, some], missed, took = _settled(unit, linear[:, some], penalty[:, some], tol)
        worst, sweeps = max(worst, missed), max(sweeps, took)
    return Columns(found / root[:, None] + 0.0, worst, sweeps)


def _unit(S: Array) -> tuple[Array, Array]:
    if S.ndim != 2 or S.shape[0] != S.shape[1] or not S.size or not np.isfinite(S).all():
        raise ValueError("the matrix must be square and finite, with at least one column")
    if np.abs(S - S.T).max() > 1e-10 * np.abs(S).max():
        raise ValueError("the matrix must be symmetric")
    if np.diagonal(S).min() <= 0:
        raise ValueError("the matrix must have a positive diagonal")
    root = np.sqrt(np.diagonal(S))
    unit: Array = (S / 2 + S.T / 2) / np.outer(root, root)
    np.fill_diagonal(unit, 1.0)
    if np.linalg.eigvalsh(unit)[0] < -_CLEARLY * len(unit):
        raise ValueError("the matrix must be positive semidefinite")
    return unit, root


def _settled(unit: Array, linear: Array, penalty: Array, tol: float) -> tuple[Array, float, int]:
    """The minimisers on the unit diagonal, the most that one misses, and the sweeps they took."""
    found, left = np.zeros_like(linear), np.arange(linear.shape[1])
    here, signs, worst = np.zeros_like(linear), np.zeros_like(linear), 0.0
    for sweep in range(1, _LIMIT + 1):
        for i, row in enumerate(unit):
            here[i] = soft_threshold(linear[i] - row @ here + here[i], penalty[i])
        if sweep % _EVERY == 0:
            stayed = (np.sign(here) == signs).all(axis=0)
            for j in np.flatnonzero(stayed | (sweep % _WHATEVER == 0)):
                here[:, j] = _with_signs(unit, linear[:, j], penalty[:, j], here[:, j])
            signs = np.sign(here)
        if sweep % _LOOK:
            continue
        missed = _missed(unit, linear, penalty, here)
        done = missed <= tol
        if done.any():
            worst = max(worst, float(missed[done].max()))
            found[:, left[done]] = here[:, done]
            left, here, signs = left[~done], here[:, ~done], signs[:, ~done]
            linear, penalty = linear[:, ~done], penalty[:, ~done]
        if not left.size:
            return found, worst, sweep
        if np.abs(here).max() > _BEYOND * np.abs(linear).max():
            break
    raise RequestError(
        "The columns did not settle: the matrix is too near to singular for this penalty.",
        "Use a larger penalty.",
    )


def _missed(unit: Array, linear: Array, penalty: Array, here: Array) -> Array:
    """By how much each column's subgradient misses zero, as a share of its terms; shape (k,)."""
    gradient = unit @ here - linear
    there = here != 0
    with np.errstate(invalid="ignore"):  # infinity times no sign
        off = np.where(
            there, np.abs(gradient + penalty * np.sign(here)), np.abs(gradient) - penalty
        )
    terms = np.abs(unit) @ np.abs(here) + np.abs(linear)
    most = terms.max(axis=0)
    missed: Array = np.maximum(off, 0.0).max(axis=0) / np.where(most > 0, most, 1.0)
    return missed


def _with_signs(unit: Array, linear: Array, penalty: Array, here: Array) -> Array:
    """Go to the numbers that are best for one column's present signs, as far as the signs stay.

    On the way the first coefficient to reach zero is left there, and the others go on: the
    objective falls all the way. One inverse serves all of it: without coefficient k it is
    M - M_k M_k^T / M_kk.
    """
    there = np.flatnonzero(here)
    if not there.size:
        return here
    b, sign, free = here[there], np.sign(here[there]), np.ones(there.size, dtype=bool)
    factor, failed = dpotrf(unit[np.ix_(there, there)], lower=1, clean=1)
    if failed:  # singular: descent goes on as if nothing had been
        return here
    best: Array = dpotrs(factor, linear[there] - penalty[there] * sign, lower=1)[0]
    inverse: Array | None = None
    while (crossing := sign * best < 0).any():
        if inverse is None:
            lower = dpotri(factor, lower=1)[0]
            inverse = lower + np.tril(lower, -1).T
        share = np.where(crossing, b / np.where(crossing, b - best, 1.0), np.inf)
        k = int(share.argmin())
        b = b + share[k] * (best - b)
        b[k], free[k] = 0.0, False
        column, pivot = inverse[:, k].copy(), float(inverse[k, k])
        if not pivot > 0:  # rounding: what is reached so far is good
            best = b
            break
        best = np.where(free, best - column * (best[k] / pivot), 0.0)
        inverse -= np.outer(column, column / pivot)
    if not np.isfinite(best).all():
        return here
    moved = np.zeros_like(here)
    moved[there] = best
    return moved
