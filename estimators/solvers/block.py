"""One connected block of the graphical lasso: what every solver of it takes and gives.

minimise over positive definite T:  -log det T + tr(S T) + sum of penalties_ij |T_ij|, i != j

Its dual: maximise log det W + p over the box |W_ij - S_ij| <= penalties_ij, W_ii = S_ii; at the
optimum W is the inverse of T. Hence there is a minimiser where the box holds a positive definite
matrix, and any W of the box bounds what T still exceeds the least value by: the duality gap. Where
it holds none, some T >= 0 has tr(S T) + sum of penalties_ij |T_ij| <= 0, and that is a proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDING = float(np.finfo(np.float64).eps)
_VIOLATED = 1e-6  # on a unit diagonal
_CLEARLY = 1e-12  # how far below zero, relative to its terms, a sum must be to be negative


@dataclass(frozen=True)
class Start:
    """Where a solver may begin: the solution of a problem like this one.

    Parameters
    ----------
    matrix
        Its precision matrix, symmetric, shape (p, p).
    dual
        Near its inverse, positive definite, shape (p, p). Not in this problem's box, maybe.
    logs
        Where that is its inverse to the last digits: what its log-determinant is the sum of, column
        by column, shape (p,); columns that no entry joins to others may be taken alone.
    """

    matrix: Array
    dual: Array
    logs: Array | None = None

    def of(self, block: NDArray[np.intp]) -> Start:
        """What concerns the columns of one block."""
        logs = None if self.logs is None else self.logs[block]
        return Start(within(self.matrix, block), within(self.dual, block), logs)

    def scaled(self, scale: Array) -> Start:
        """For S times `scale`, entry by entry."""
        logs = None if self.logs is None else self.logs - np.log(np.diagonal(scale))
        return Start(self.matrix / scale, self.dual * scale, logs)


@dataclass(frozen=True)
class Outcome:
    """Where a solver ended.

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
        Eigendecompositions made, sweeps over the columns, or Newton steps.
    dual
        Of the minimiser, where there is one: what proves the gap; shape (p, p).
    inverse, logs
        Of the minimiser, where the solver has them: see `Start`.
    """

    kind: Literal["minimiser", "unbounded", "unsettled"]
    matrix: Array
    gap: float
    iterations: int
    dual: Array | None = None
    inverse: Array | None = None
    logs: Array | None = None


class BlockSolver(Protocol):
    """Solves one block, or says that it could not: never anything else.

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
    start
        Where to begin.
    conditions
        Whether the minimiser has to meet the optimality conditions too: see `is_optimal`.
    """

    def __call__(
        self,
        S: Array,
        penalties: Array,
        tol: float,
        limit: int,
        start: Start | None = None,
        conditions: bool = True,
    ) -> Outcome: ...


def within(matrix: Array, block: NDArray[np.intp]) -> Array:
    """Its rows and columns of these places: both at once would take three times as long."""
    return matrix[block].take(block, axis=1)


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


def is_positive_definite(matrix: Array) -> bool:
    """Whether the Cholesky factorisation passes."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def duality_gap(T: Array, W: Array) -> float:
    """How far T is from the least value, at most: tr(W T) - p - log det(W T).

    W has to be in the box, and where T has an entry on its border, S_ij + penalties_ij sign(T_ij):
    the terms that are left out then cancel. Infinite unless both are positive definite. With
    T = R R', of R' W R, which is near the identity: so it loses no digits, and is not negative.
    """
    try:
        R = np.linalg.cholesky(T)
        product = R.T @ W @ R
        logs = np.log(np.diagonal(np.linalg.cholesky((product + product.T) / 2)))
    except np.linalg.LinAlgError:
        return np.inf
    return float((np.diagonal(product) - 1 - 2 * logs).sum())


def is_optimal(
    S: Array, penalties: Array, T: Array, gap: float, tol: float, conditions: bool
) -> bool:
    """Whether T can be called the minimiser: by its gap, and by the conditions it has to meet.

    A gap bounds the square of what is still wrong with T, so a small one alone leaves the inverse
    of T off by its root.
    """
    if gap > tol * len(S):
        return False
    if not conditions:
        return True
    W: Array = np.linalg.inv(T).astype(np.float64)
    return violation(S, penalties, T, W) <= allowed_violation(T, W, tol)


def allowed_violation(T: Array, W: Array, tol: float) -> float:
    """What the conditions may be missed by, with W the inverse of T: a little, and rounding."""
    rounding = 10 * ROUNDING * float(np.linalg.norm(T) * np.linalg.norm(W))
    return max(tol, _VIOLATED + rounding)


def violation(S: Array, penalties: Array, T: Array, W: Array) -> float:
    """By how much the inverse W of T misses W_ij = S_ij + penalties_ij sign(T_ij), at most.

    Where T_ij is zero W_ij may be anything within the penalty of S_ij. Zero at the minimiser.
    """
    away = W - S
    missed = np.where(T == 0, np.abs(away) - penalties, np.abs(away - penalties * np.sign(T)))
    return float(missed.max())


def certificate(S: Array, penalties: Array, X: Array) -> Array | None:
    """The proof that there is no minimiser, of trace 1, if X is one: clearly, rounding aside."""
    # A rounding error's worth of identity: positive definite as stored, not only on paper.
    T: Array = X / np.trace(X) + 4 * ROUNDING * len(X) * np.eye(len(X))
    size = slope(np.abs(S), penalties, np.abs(T))
    clear = slope(S, penalties, T) <= -_CLEARLY * size
    return T if clear and is_positive_definite(T) else None
