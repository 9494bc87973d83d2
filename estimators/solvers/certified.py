"""The graphical lasso for output perturbation: it reaches its distance whatever the table is.

Boyd et al. (2011), section 6.5. The mechanism charges before it solves, so that a table that cannot
be solved would tell something of itself. Hence the accelerated iteration is only tried; behind it
stands the plain one, which converges for every positive semidefinite matrix. What either finds is
believed only with a certificate in which rounding is counted: docs/mechanisms/output.md proves it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gramercy.estimators.solvers.admm import admm, proximal
from gramercy.estimators.solvers.block import soft_threshold
from gramercy.schemas.errors import StepFailed

Array = NDArray[np.float64]

_UNIT = 2.0**-53
_UP = 1 + 1e-9  # more than sums of p^2 terms of one sign lose
_ACCELERATED = 5000  # iterations that the accelerated solver is given
_OVER_RELAXATION = 1.6
_CHECK = 10  # plain iterations from one certificate to the next
_BALANCED = (5, 10, 20, 40, 80, 160, 320)  # after these rho changes, and then no more
_WIDEST = 1e8  # of rho, and of its inverse, on a unit diagonal
_LARGEST = 2.0**-3  # of sqrt(2 gap), where a coarser solution would do


def solve_within(S: Array, penalty: float, distance: float) -> Array:
    """The minimiser of -log det T + tr(S T) + penalty sum |T_ij|, within a proven distance.

    Parameters
    ----------
    S
        Positive semidefinite, of trace 1 at most, but for rounding; shape (p, p).
    penalty
        Positive.
    distance
        In Frobenius norm; no less than what `mechanisms.output_perturbation` charges.

    Raises
    ------
    StepFailed
        If there is no certificate. It says the same for every table.
    """
    try:
        found = _solved((S + S.T) / 2, penalty, distance)
    except (ArithmeticError, ValueError):  # LinAlgError is a ValueError
        found = None
    if found is None:
        raise StepFailed("output: the solution could not be certified.")
    return found


def limit(p: int, penalty: float) -> int:
    """Most plain iterations of a block: many times what any table has taken."""
    return 20_000 + math.ceil(20 * math.sqrt(p) / penalty)


def distance_of(p: int, penalty: float, gap: float) -> float:
    """How far from the true minimiser a matrix of that gap is, rounding included."""
    moved = _UNIT * (4 + p * penalty)  # of S, by rounding, in Frobenius norm
    largest = p / (penalty - moved)
    root = math.sqrt(2 * gap)
    if not 0 < largest < math.inf or not root < 0.5:
        return math.inf
    off = largest * root / (1 - root) + 4 * (p + 1) * _UNIT * largest + largest**2 * moved
    return off * _UP


def certified_gap(S: Array, penalties: Array | float, Z: Array, dual: Array) -> float:
    """By how much the objective at Z exceeds its least value, at most; rounding is counted.

    `dual` is any matrix: it is clipped into the dual's box. Infinite where Z and it prove nothing.
    """
    bounds: Array = np.broadcast_to(np.asarray(penalties, dtype=np.float64), S.shape)
    try:
        R = np.linalg.cholesky(Z).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return math.inf
    U: Array = np.clip((dual + dual.T) / 2 - S, -bounds, bounds)
    U[np.diag_indices(len(S))] = np.diagonal(bounds)
    edge: Array = np.where(Z == 0, U, np.sign(Z) * bounds)
    # Where Z has an entry, the minimiser's U is at the border; what is best is not known before.
    return min(_gap(S, bounds, Z, R, each) for each in (U, edge))


def _gap(S: Array, bounds: Array, Z: Array, R: Array, U: Array) -> float:
    """phi(R' W R) + sum (bounds |Z| - U Z): nothing cancels in either."""
    p, W, trace = len(S), S + U, float(np.trace(Z))
    size = float(np.linalg.norm(W))
    H = R.T @ (W @ R)
    H[np.diag_indices(p)] -= 1
    h = (float(np.linalg.norm(H)) + 4 * p * _UNIT * (trace * size + 1)) * _UP
    if not h < 0.5:
        return math.inf
    slack = float((np.abs(Z) * (bounds - np.sign(Z) * U)).sum())
    factors = 4 * (p + 1) * _UNIT * p * float(bounds.max()) * trace
    return (h * h / 2 / (1 - h) + slack + factors) * _UP


def _solved(S: Array, penalty: float, distance: float) -> Array | None:
    p = len(S)
    spare = distance - distance_of(p, penalty, 0.0)
    if not (spare > 0 and np.isfinite(S).all()):
        return None
    root = min(spare * penalty / p / _UP, _LARGEST)
    root /= 1 + 2 * root
    # Half of it: blocks are certified in their own units, and once more together.
    aim = (root * root / 2 - 16.0 * p**3 * _UNIT) / 2
    for solver in (_accelerated, _plain):
        found = _by_blocks(S, penalty, aim, solver)
        if found is None:
            continue
        gap = certified_gap(S, penalty, *found)
        if gap < math.inf and distance_of(p, penalty, gap) <= distance:
            return found[0]
    return None


_Pair = tuple[Array, Array]  # the precision matrix and its dual
_Solver = Callable[[Array, Array, float, int], _Pair | None]


def _by_blocks(S: Array, penalty: float, aim: float, solver: _Solver) -> _Pair | None:
    """Each connected component alone, its diagonal 1: see `graphical_lasso`."""
    p = len(S)
    A = S + penalty * np.eye(p)
    if A.diagonal().min() <= 0:
        return None
    precision, dual = np.zeros_like(A), np.zeros_like(A)
    count, labels = connected_components(np.abs(A) > penalty, directed=False)
    for label in range(count):
        block = np.flatnonzero(labels == label)
        here = np.ix_(block, block)
        root = np.sqrt(A.diagonal()[block])
        scale = np.outer(root, root)
        unit = A[here] / scale
        np.fill_diagonal(unit, 1.0)
        bounds = penalty / scale * (1 - np.eye(len(block)))
        size = len(block)
        alone = (unit, unit)
        found = alone if size == 1 else solver(unit, bounds, aim * size / p, limit(p, penalty))
        if found is None:
            return None
        precision[here], dual[here] = found[0] / scale, found[1] * scale
    return (precision + precision.T) / 2 + 0.0, dual  # no negative zeros


def _accelerated(unit: Array, bounds: Array, aim: float, _: int) -> _Pair | None:
    try:
        found = admm(unit, bounds, aim / len(unit) / 4, _ACCELERATED)
    except (ArithmeticError, ValueError):
        return None
    return None if found.dual is None else (found.matrix, found.dual)


def _plain(unit: Array, bounds: Array, aim: float, most: int) -> _Pair | None:
    """ADMM whose rho is fixed after the first steps: it converges to the minimiser."""
    p, rho = len(unit), 1.0
    Z, U = np.eye(p), np.zeros((p, p))
    for iteration in range(1, most + 1):
        X = proximal(Z - U - unit / rho, rho)
        before, relaxed = Z, _OVER_RELAXATION * X + (1 - _OVER_RELAXATION) * Z
        Z = soft_threshold(relaxed + U, bounds / rho)
        U = U + relaxed - Z
        if iteration % _CHECK == 0 and certified_gap(unit, bounds, Z, unit + rho * U) <= aim:
            return Z, unit + rho * U
        if iteration in _BALANCED:
            primal = float(np.linalg.norm(X - Z) / np.linalg.norm(Z))
            dual = rho * float(np.linalg.norm(Z - before) / np.linalg.norm(unit + rho * U))
            wanted = rho * min(max(math.sqrt(primal / max(dual, _UNIT)), 0.1), 10.0)
            wanted = min(max(wanted, 1 / _WIDEST), _WIDEST)
            rho, U = wanted, U * (rho / wanted)
    return None
