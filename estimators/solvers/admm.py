"""The graphical lasso by accelerated ADMM, with an exact stopping rule.

Su, Guo and Zhang (2020), Algorithm 2; Boyd et al. (2011), section 6.5; Anderson (1965).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.denoise import with_spectrum
from gramercy.estimators.solvers.block import (
    ROUNDING,
    Outcome,
    WarmStart,
    certificate,
    duality_gap,
    is_optimal,
    soft_threshold,
)

Array = NDArray[np.float64]

_OVER_RELAXATION = 1.6
_MEMORY = 5
_MEASURE_BELOW = 4.0  # the gap is computed where its estimate is below this multiple of its limit


class Problem(Protocol):
    """What the iteration needs of a problem; states are symmetric, of one shape (..., p, p)."""

    @property
    def moment(self) -> Array:
        """S, times the weight of each matrix."""

    def shrink(self, state: Array, rho: float) -> Array:
        """The minimiser of rho |Z - state|^2 / 2 + penalty of Z."""

    def invert(self, matrix: Array, rho: float) -> Array:
        """The minimiser of rho |X - matrix|^2 / 2 + loss of X."""

    def accepts(self, Z: Array, dual: Array) -> tuple[bool, float]:
        """Whether Z is the minimiser, and its gap; `dual` is S plus a subgradient at Z."""

    def certificate(self, X: Array) -> Array | None:
        """A proof that a minimiser does not exist, if X is one."""


@dataclass(frozen=True)
class _OneMatrix:
    """The problem of one block; see `estimators.solvers.block.BlockSolver`."""

    moment: Array
    penalties: Array
    tol: float
    conditions: bool

    def shrink(self, state: Array, rho: float) -> Array:
        return soft_threshold(state, self.penalties / rho)

    def invert(self, matrix: Array, rho: float) -> Array:
        return proximal(matrix - self.moment / rho, rho)

    def accepts(self, Z: Array, dual: Array) -> tuple[bool, float]:
        gap = duality_gap(Z, dual)
        optimal = is_optimal(self.moment, self.penalties, Z, gap, self.tol, self.conditions)
        return optimal, gap

    def certificate(self, X: Array) -> Array | None:
        return certificate(self.moment, self.penalties, X)


def admm(
    S: Array,
    penalties: Array,
    tol: float,
    limit: int,
    start: WarmStart | None = None,
    conditions: bool = True,
) -> Outcome:
    """Minimise -log det T + tr(S T) + sum of penalties_ij |T_ij| over positive definite T.

    See `estimators.solvers.block.BlockSolver`.

    A warm start saves a fifth of the iterations on a path of 20 penalties. Starting with rho = 1 is
    as good as any other rho from the warm start.
    """
    state = np.eye(len(S))
    if start is not None:
        state = start.matrix + (start.dual - S) * (1 - np.eye(len(S)))
    return iterate(_OneMatrix(S, penalties, tol, conditions), state, tol * len(S), limit)


def iterate(problem: Problem, state: Array, allowed: float, limit: int) -> Outcome:
    """Accelerated ADMM from a state Z + U, with rho = 1.

    `allowed`: upper bound on the gap. `limit`: on the number of iterations.

    The state is Z + U of the scaled form. Its soft threshold is the sparse matrix Z, and the
    remainder is U. So S + rho U is feasible for the dual problem, and the gap is exact. Z is
    returned, not the dense X, and only if it has a Cholesky factorisation. The gap is proportional
    to the square of rho (Z - X), the distance of that dual point from the inverse of X. It takes
    half the time of an iteration, so it is computed only where this estimate is small.
    """
    S, rho = problem.moment, 1.0
    memory = _Memory()
    next_balance = interval = 2
    Z, rate = state, 0.0
    for iteration in range(1, limit + 1):
        Z = problem.shrink(state, rho)
        X = problem.invert(2 * Z - state, rho)
        distance = (rho * _norm(X - Z)) ** 2
        if rate * distance <= _MEASURE_BELOW * allowed:
            dual = S + rho * (state - Z)
            optimal, gap = problem.accepts(Z, dual)
            if optimal:
                return Outcome("minimiser", Z, gap, iteration, dual)
            rate = gap / distance if distance > 0 and gap < np.inf else rate
        proof = problem.certificate(X)
        if proof is not None:
            return Outcome("unbounded", proof, np.inf, iteration)
        step = _OVER_RELAXATION * (X - Z)
        if iteration < next_balance:
            state = memory.advance(state, step)
            continue
        # Less and less often: Anderson acceleration has to restart when rho changes.
        interval += 1
        next_balance += interval
        memory = _Memory()
        # One unaccelerated step, and the rho that balances the primal and the dual residual.
        before, after = (problem.shrink(matrix, rho) for matrix in (state, state + step))
        U = state + step - after
        of_primal = _norm(step) / _OVER_RELAXATION / _norm(after)
        of_dual = rho * _norm(after - before) / _norm(S + rho * U)
        factor = min(max(math.sqrt(of_primal / max(of_dual, ROUNDING)), 0.1), 10.0)
        state, rho = after + U / factor, rho * factor
    return Outcome("unconverged", Z, np.inf, limit)


def proximal(matrix: Array, rho: float) -> Array:
    """The X with rho X - inverse(X) = rho matrix."""
    values, vectors = np.linalg.eigh(matrix)
    root = np.hypot(values, 2 / np.sqrt(rho))
    # Equal expressions: each avoids the cancellation of the other.
    x = np.where(values > 0, (values + root) / 2, 2 / rho / (root - np.minimum(values, 0)))
    return with_spectrum(vectors, x)


def _norm(matrix: Array) -> float:
    return float(np.linalg.norm(matrix))


class _Memory:
    """Anderson acceleration: extrapolates from the last few steps."""

    def __init__(self) -> None:
        self._points: list[Array] = []
        self._steps: list[Array] = []
        self._smallest, self._best = np.inf, np.zeros(0)

    def advance(self, point: Array, step: Array) -> Array:
        residual, target = _norm(step), point + step
        if residual < self._smallest:
            self._smallest, self._best = residual, target
        if residual > 2 * self._smallest:  # diverging: restart from the best point
            self._points, self._steps = [], []
            return self._best
        if self._steps:
            changes = np.stack([(step - each).ravel() for each in self._steps], axis=1)
            moves = [target - x - d for x, d in zip(self._points, self._steps, strict=True)]
            weights = np.linalg.lstsq(changes, step.ravel(), rcond=1e-10)[0]
            target = target - sum(w * move for w, move in zip(weights, moves, strict=True))
        self._points = [*self._points, point][-_MEMORY:]
        self._steps = [*self._steps, step][-_MEMORY:]
        return (target + target.swapaxes(-1, -2)) / 2
