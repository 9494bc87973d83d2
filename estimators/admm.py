"""The graphical lasso's iteration: accelerated ADMM on one block, with an exact stopping rule.

Su, Guo and Zhang (2020), Algorithm 2; Boyd et al. (2011), section 6.5; Anderson (1965).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_OVER_RELAXATION = 1.6
_MEMORY = 5
_ROUNDING = float(np.finfo(np.float64).eps)
_CLEARLY = 1e-12  # how far below zero, relative to its terms, a sum must be to be negative


@dataclass(frozen=True)
class Outcome:
    """Where the iteration ended.

    Parameters
    ----------
    kind
        ``minimiser``; ``unbounded``: there is none, and `matrix` proves it; ``unsettled``: neither
        was found within the limit.
    matrix
        Symmetric, shape (p, p): the minimiser or the certificate, each positive definite.
    gap
        Duality gap of the minimiser: by how much, at most, its objective exceeds the least.
    iterations
        Eigendecompositions made.
    dual
        Of the minimiser, where there is one: what proves the gap; shape (p, p).
    """

    kind: Literal["minimiser", "unbounded", "unsettled"]
    matrix: Array
    gap: float
    iterations: int
    dual: Array | None = None


def admm(S: Array, penalties: Array, tol: float, limit: int) -> Outcome:
    """Minimise -log det T + tr(S T) + sum of penalties_ij |T_ij| over positive definite T.

    Parameters
    ----------
    S
        Symmetric, unit diagonal, shape (p, p); may be indefinite.
    penalties
        Symmetric, not negative, zero on the diagonal, shape (p, p).
    tol
        Largest duality gap per column.
    limit
        Most iterations.

    Notes
    -----
    The state is Z + U of the scaled form: its soft threshold is Z, the sparse matrix, and the rest
    is U, so S + rho U lies in the box that the dual problem is about, and the gap is exact. Z is
    returned, never the dense X, and only after its Cholesky factorisation has passed.
    """
    p = len(S)
    state, rho = np.eye(p), 1.0
    memory = _Memory()
    due = wait = 2
    Z = state
    for iteration in range(1, limit + 1):
        Z = soft_threshold(state, penalties / rho)
        X = proximal(2 * Z - state - S / rho, rho)
        dual = S + rho * (state - Z)
        gap = _duality_gap(S, penalties, Z, dual)
        if gap <= tol * p:
            return Outcome("minimiser", Z, gap, iteration, dual)
        certificate = _certificate(S, penalties, X)
        if certificate is not None:
            return Outcome("unbounded", certificate, np.inf, iteration)
        step = _OVER_RELAXATION * (X - Z)
        if iteration < due:
            state = memory.advance(state, step)
            continue
        # Ever more rarely: the memory is of one rho, and has to start again with the next.
        wait += 1
        due += wait
        memory = _Memory()
        state, rho = _rebalanced(S, penalties, state, step, rho)
    return Outcome("unsettled", Z, np.inf, limit)


def soft_threshold(matrix: Array, by: Array | float) -> Array:
    """Every entry moved towards zero by `by`, and no further than zero."""
    moved: Array = np.sign(matrix) * np.maximum(np.abs(matrix) - by, 0.0)
    return moved


def slope(S: Array, penalties: Array | float, direction: Array) -> float:
    """Slope h(T) = tr(S T) + sum of penalties_ij |T_ij|, off the diagonal.

    Where T is positive semidefinite, not zero, and h(T) <= 0, there is no minimiser.
    """
    off = np.abs(direction - np.diag(np.diagonal(direction)))
    return float((S * direction).sum() + (penalties * off).sum())


def proximal(matrix: Array, rho: float) -> Array:
    """The X with rho X - inverse(X) = rho matrix."""
    values, vectors = np.linalg.eigh(matrix)
    root = np.hypot(values, 2 / np.sqrt(rho))
    # Two spellings of one number: each cancels where the other does not.
    x = np.where(values > 0, (values + root) / 2, 2 / rho / (root - np.minimum(values, 0)))
    product: Array = (vectors * x) @ vectors.T
    return (product + product.T) / 2


def is_positive_definite(matrix: Array) -> bool:
    """Whether the Cholesky factorisation passes."""
    return _log_det(matrix) > -np.inf


def _log_det(matrix: Array) -> float:
    """Infinite, downwards, unless the matrix is positive definite."""
    try:
        return 2 * float(np.log(np.diagonal(np.linalg.cholesky(matrix))).sum())
    except np.linalg.LinAlgError:
        return -np.inf


def _duality_gap(S: Array, penalties: Array, Z: Array, W: Array) -> float:
    dual = _log_det(W)
    primal = _log_det(Z) if dual > -np.inf else -np.inf
    if primal == -np.inf:
        return np.inf
    return slope(S, penalties, Z) - primal - dual - len(S)


def _certificate(S: Array, penalties: Array, X: Array) -> Array | None:
    # A rounding error's worth of identity: positive definite as stored, not only on paper.
    T: Array = X / np.trace(X) + 4 * _ROUNDING * len(X) * np.eye(len(X))
    size = slope(np.abs(S), penalties, np.abs(T))
    clear = slope(S, penalties, T) <= -_CLEARLY * size
    return T if clear and is_positive_definite(T) else None


def _rebalanced(
    S: Array, penalties: Array, state: Array, step: Array, rho: float
) -> tuple[Array, float]:
    """One plain step, and the rho at which primal and dual residual would have been alike."""
    before, after = (soft_threshold(each, penalties / rho) for each in (state, state + step))
    rest = state + step - after
    primal = _norm(step) / _OVER_RELAXATION / _norm(after)
    dual = rho * _norm(after - before) / _norm(S + rho * rest)
    factor = min(max(math.sqrt(primal / max(dual, _ROUNDING)), 0.1), 10.0)
    return after + rest / factor, rho * factor


def _norm(matrix: Array) -> float:
    return float(np.linalg.norm(matrix))


class _Memory:
    """Anderson acceleration: the step that the last few steps, taken together, point to."""

    def __init__(self) -> None:
        self._points: list[Array] = []
        self._steps: list[Array] = []
        self._least, self._safe = np.inf, np.zeros(0)

    def advance(self, point: Array, step: Array) -> Array:
        residual, there = _norm(step), point + step
        if residual < self._least:
            self._least, self._safe = residual, there
        if residual > 2 * self._least:  # led astray: back to the best, for one plain step at least
            self._points, self._steps = [], []
            return self._safe
        if self._steps:
            changes = np.stack([(step - each).ravel() for each in self._steps], axis=1)
            moves = [there - x - d for x, d in zip(self._points, self._steps, strict=True)]
            weights = np.linalg.lstsq(changes, step.ravel(), rcond=1e-10)[0]
            there = there - sum(w * move for w, move in zip(weights, moves, strict=True))
        self._points = [*self._points, point][-_MEMORY:]
        self._steps = [*self._steps, step][-_MEMORY:]
        return (there + there.T) / 2
