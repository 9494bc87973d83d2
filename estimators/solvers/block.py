"""One connected block of the graphical lasso: the interface of its solvers, and their criteria.

minimise over positive definite T:  -log det T + tr(S T) + sum of penalties_ij |T_ij|, i != j

Its dual: maximise log det W + p over the box |W_ij - S_ij| <= penalties_ij, W_ii = S_ii; at the
optimum W is the inverse of T. Hence a minimiser exists if and only if the box contains a positive
definite matrix, and any such W gives a lower bound of the minimum: the duality gap. Otherwise there
exists T >= 0 with tr(S T) + sum of penalties_ij |T_ij| <= 0, which is a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramercy.schemas import families, wordings

Array = NDArray[np.float64]

ROUNDING = float(np.finfo(np.float64).eps)
_MAX_VIOLATION = 1e-6  # violation of the optimality conditions, on a unit diagonal
_MARGIN = 1e-12  # a sum counts as negative below minus this multiple of the size of its terms


@dataclass(frozen=True)
class WarmStart:
    """A starting point: the solution of a similar problem."""

    matrix: Array  # its precision matrix, symmetric, shape (p, p)
    # close to its inverse, positive definite, shape (p, p). It may be outside this problem's box.
    dual: Array
    # logarithms of the pivots of `matrix`, whose sum is its log-determinant, shape (p,); only if
    # `dual` is its inverse to full precision. Each connected component has its own pivots.
    log_pivots: Array | None = None

    def restricted_to(self, block: NDArray[np.intp]) -> WarmStart:
        """The starting point of one block."""
        log_pivots = None if self.log_pivots is None else self.log_pivots[block]
        return WarmStart(submatrix(self.matrix, block), submatrix(self.dual, block), log_pivots)

    def scaled(self, scale: Array) -> WarmStart:
        """The starting point for S times `scale`, entry by entry."""
        log_pivots = (
            None if self.log_pivots is None else self.log_pivots - np.log(np.diagonal(scale))
        )
        return WarmStart(self.matrix / scale, self.dual * scale, log_pivots)


@dataclass(frozen=True)
class Outcome:
    """The result of a solver."""

    # ``minimiser``; ``unbounded``: a minimiser does not exist, and `matrix` proves it;
    # ``unconverged``: neither was found within the limit
    kind: Literal["minimiser", "unbounded", "unconverged"]
    # symmetric, shape (p, p): the minimiser or the certificate, each positive definite
    matrix: Array
    gap: float  # duality gap of the minimiser: an upper bound on its objective minus the minimum
    iterations: int  # number of eigendecompositions, sweeps over the columns, or Newton steps
    dual: Array | None = None  # the dual point that proves the gap of a minimiser; shape (p, p)
    # inverse and log pivots of the minimiser, if the solver has them; see `WarmStart`
    inverse: Array | None = None
    log_pivots: Array | None = None


class BlockSolver(Protocol):
    """A solver of one block. It returns a proven result, or ``unconverged``.

    `S`: symmetric, unit diagonal, shape (p, p); may be indefinite. `penalties`: symmetric, not
    negative, zero on the diagonal, shape (p, p). `tol`: upper bound on the duality gap per column.
    `limit`: upper bound on the number of iterations. `conditions`: whether the minimiser has to
    meet the optimality conditions, too; see `is_optimal`.
    """

    def __call__(
        self,
        S: Array,
        penalties: Array,
        tol: float,
        limit: int,
        start: WarmStart | None = None,
        conditions: bool = True,
    ) -> Outcome: ...


def checked_symmetric(given: ArrayLike, argument: str = "S") -> Array:
    """An exactly symmetric copy; raises ValueError if the asymmetry is more than rounding."""
    matrix = real_array(given, argument)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise wordings.not_square(argument)
    if not np.isfinite(matrix).all():
        raise wordings.not_finite(argument)
    if np.abs(matrix - matrix.T).max() > 1e-10 * np.abs(matrix).max():
        raise wordings.not_symmetric(argument)
    return matrix / 2 + matrix.T / 2


def real_array(given: ArrayLike, argument: str) -> Array:
    if np.iscomplexobj(given):
        raise families.MATRIX("{argument} must be real.", argument=argument)
    return np.array(given, dtype=np.float64)


def submatrix(matrix: Array, block: NDArray[np.intp]) -> Array:
    """Rows and columns of these indices; three times as fast as `np.ix_`."""
    return matrix[block].take(block, axis=1)


def soft_threshold(matrix: Array, threshold: Array | float) -> Array:
    """sign(x) max(|x| - threshold, 0) for every entry x."""
    return np.sign(matrix) * np.maximum(np.abs(matrix) - threshold, 0.0)


def slope(S: Array, penalties: Array | float, direction: Array) -> float:
    """Slope h(T) = tr(S T) + sum of penalties_ij |T_ij|, off the diagonal.

    If T is positive semidefinite, not zero, and h(T) <= 0, a minimiser does not exist.
    """
    off = np.abs(direction - np.diag(np.diagonal(direction)))
    return float((S * direction).sum() + (penalties * off).sum())


def is_positive_definite(matrix: Array) -> bool:
    """Whether the matrix has a Cholesky factorisation."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def duality_gap(T: Array, W: Array) -> float:
    """Upper bound on the objective at T minus the minimum: tr(W T) - p - log det(W T).

    W must be in the box, and on its boundary, S_ij + penalties_ij sign(T_ij), where T_ij is not
    zero: then the other terms cancel. Infinite unless both are positive definite. With T = R R' it
    is computed from R' W R, which is close to the identity; so it does not suffer cancellation, and
    is not negative.
    """
    try:
        R = np.linalg.cholesky(T)
        product = R.T @ W @ R
        log_pivots = np.log(np.diagonal(np.linalg.cholesky((product + product.T) / 2)))
    except np.linalg.LinAlgError:
        return np.inf
    return float((np.diagonal(product) - 1 - 2 * log_pivots).sum())


def is_optimal(
    S: Array, penalties: Array, T: Array, gap: float, tol: float, conditions: bool
) -> bool:
    """Whether T is the minimiser up to `tol`: by its gap, and by the optimality conditions.

    The gap bounds the square of the error of T, so the error of the inverse of T may be as large as
    the square root of the gap.
    """
    if gap > tol * len(S):
        return False
    if not conditions:
        return True
    W: Array = np.linalg.inv(T).astype(np.float64)
    return violation(S, penalties, T, W) <= allowed_violation(T, W, tol)


def allowed_violation(T: Array, W: Array, tol: float) -> float:
    """Upper bound on `violation` that is accepted, with W the inverse of T; allows for rounding."""
    rounding = 10 * ROUNDING * float(np.linalg.norm(T) * np.linalg.norm(W))
    return max(tol, _MAX_VIOLATION + rounding)


def violation(S: Array, penalties: Array, T: Array, W: Array) -> float:
    """Largest violation of W_ij = S_ij + penalties_ij sign(T_ij) by the inverse W of T.

    Where T_ij is zero, the condition is |W_ij - S_ij| <= penalties_ij. Zero at the minimiser.
    """
    difference = W - S
    residual = np.where(
        T == 0, np.abs(difference) - penalties, np.abs(difference - penalties * np.sign(T))
    )
    return float(residual.max())


def certificate(S: Array, penalties: Array, X: Array) -> Array | None:
    """X scaled to trace 1, if it proves that a minimiser does not exist, allowing for rounding."""
    # A small multiple of the identity makes it positive definite as stored.
    T: Array = X / np.trace(X) + 4 * ROUNDING * len(X) * np.eye(len(X))
    size = slope(np.abs(S), penalties, np.abs(T))
    clear = slope(S, penalties, T) <= -_MARGIN * size
    return T if clear and is_positive_definite(T) else None
