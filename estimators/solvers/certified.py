"""The graphical lasso for output perturbation: a proven accuracy for every table.

Boyd et al. (2011), section 6.5. The mechanism charges before it solves, so a failure that depends
on the table would reveal information. Hence the accelerated iteration is tried first; if it fails,
the plain iteration follows, which converges for every positive semidefinite matrix. Either result
is accepted only with a certificate that accounts for rounding; docs/mechanisms/output.md has the
proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gramercy.estimators.solvers.admm import admm, proximal
from gramercy.estimators.solvers.block import soft_threshold
from gramercy.schemas import families

Array = NDArray[np.float64]

_UNIT = 2.0**-53
_UP = 1 + 1e-9  # exceeds the rounding error of sums of p^2 terms of one sign
_ACCELERATED = 5000  # limit of iterations of the accelerated solver
_OVER_RELAXATION = 1.6
_CHECK = 10  # plain iterations between certificates
_BALANCED = (5, 10, 20, 40, 80, 160, 320)  # iterations after which rho changes; then it is fixed
_MAX_RHO = 1e8  # upper bound on rho and on 1 / rho, on a unit diagonal
_MAX_ROOT = 2.0**-3  # upper bound on sqrt(2 gap)


def solve_within(S: Array, penalty: float, distance: float) -> Array:
    """The minimiser of -log det T + tr(S T) + penalty sum |T_ij|, within a proven distance.

    `S`: positive semidefinite, with trace at most 1, up to rounding; shape (p, p). `penalty`:
    positive. `distance`: upper bound in the Frobenius norm, at least that of
    `mechanisms.output_perturbation`. Raises StepFailed if a certificate was not found. The message
    is the same for every table.
    """
    try:
        solution = _solve((S + S.T) / 2, penalty, distance)
    except (ArithmeticError, ValueError):  # LinAlgError is a ValueError
        solution = None
    if solution is None:
        raise families.NOT_CERTIFIED("output: the solution could not be certified.")
    return solution


def iteration_limit(p: int, penalty: float) -> int:
    """Limit of plain iterations of a block: many times what any table has needed."""
    return 20_000 + math.ceil(20 * math.sqrt(p) / penalty)


def distance_bound(p: int, penalty: float, gap: float) -> float:
    """Upper bound on the distance from the true minimiser, given the gap; includes rounding."""
    rounding = _UNIT * (4 + p * penalty)  # rounding error of S, in the Frobenius norm
    largest = p / (penalty - rounding)
    root = math.sqrt(2 * gap)
    if not 0 < largest < math.inf or not root < 0.5:
        return math.inf
    distance = largest * root / (1 - root) + 4 * (p + 1) * _UNIT * largest + largest**2 * rounding
    return distance * _UP


def certified_gap(S: Array, penalties: Array | float, Z: Array, dual: Array) -> float:
    """Upper bound on the objective at Z minus its minimum; accounts for rounding.

    `dual` is any matrix; it is clipped to the dual's box. Infinite if the two prove nothing.
    """
    bounds: Array = np.broadcast_to(np.asarray(penalties, dtype=np.float64), S.shape)
    try:
        R = np.linalg.cholesky(Z).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return math.inf
    U: Array = np.clip((dual + dual.T) / 2 - S, -bounds, bounds)
    U[np.diag_indices(len(S))] = np.diagonal(bounds)
    boundary: Array = np.where(Z == 0, U, np.sign(Z) * bounds)
    # Where Z is not zero, the minimiser's U is on the boundary; either may give the smaller gap.
    return min(_gap(S, bounds, Z, R, candidate) for candidate in (U, boundary))


def _gap(S: Array, bounds: Array, Z: Array, R: Array, U: Array) -> float:
    """phi(R' W R) + sum (bounds |Z| - U Z), without cancellation."""
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


def _solve(S: Array, penalty: float, distance: float) -> Array | None:
    p = len(S)
    spare = distance - distance_bound(p, penalty, 0.0)
    if not (spare > 0 and np.isfinite(S).all()):
        return None
    root = min(spare * penalty / p / _UP, _MAX_ROOT)
    root /= 1 + 2 * root
    # Half of the gap, because blocks are certified in their own units first, then together.
    target = (root * root / 2 - 16.0 * p**3 * _UNIT) / 2
    for solver in (_accelerated, _plain):
        pair = _by_blocks(S, penalty, target, solver)
        if pair is None:
            continue
        gap = certified_gap(S, penalty, *pair)
        if gap < math.inf and distance_bound(p, penalty, gap) <= distance:
            return pair[0]
    return None


_Pair = tuple[Array, Array]  # the precision matrix and its dual
_Solver = Callable[[Array, Array, float, int], _Pair | None]


def _by_blocks(S: Array, penalty: float, target: float, solver: _Solver) -> _Pair | None:
    """Solve each connected component with a unit diagonal; see `graphical_lasso`."""
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
        limit = iteration_limit(p, penalty)
        pair = (unit, unit) if size == 1 else solver(unit, bounds, target * size / p, limit)
        if pair is None:
            return None
        precision[here], dual[here] = pair[0] / scale, pair[1] * scale
    return (precision + precision.T) / 2 + 0.0, dual  # no negative zeros


def _accelerated(unit: Array, bounds: Array, target: float, _: int) -> _Pair | None:
    try:
        outcome = admm(unit, bounds, target / len(unit) / 4, _ACCELERATED)
    except (ArithmeticError, ValueError):
        return None
    return None if outcome.dual is None else (outcome.matrix, outcome.dual)


def _plain(unit: Array, bounds: Array, target: float, limit: int) -> _Pair | None:
    """ADMM with a rho that is fixed after the first steps, so that it converges."""
    p, rho = len(unit), 1.0
    Z, U = np.eye(p), np.zeros((p, p))
    for iteration in range(1, limit + 1):
        X = proximal(Z - U - unit / rho, rho)
        before, relaxed = Z, _OVER_RELAXATION * X + (1 - _OVER_RELAXATION) * Z
        Z = soft_threshold(relaxed + U, bounds / rho)
        U = U + relaxed - Z
        if iteration % _CHECK == 0 and certified_gap(unit, bounds, Z, unit + rho * U) <= target:
            return Z, unit + rho * U
        if iteration in _BALANCED:
            primal = float(np.linalg.norm(X - Z) / np.linalg.norm(Z))
            dual = rho * float(np.linalg.norm(Z - before) / np.linalg.norm(unit + rho * U))
            balanced = rho * min(max(math.sqrt(primal / max(dual, _UNIT)), 0.1), 10.0)
            balanced = min(max(balanced, 1 / _MAX_RHO), _MAX_RHO)
            rho, U = balanced, U * (rho / balanced)
    return None
