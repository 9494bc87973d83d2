"""The joint graphical lasso: several precision matrices that share edges, with a proven accuracy.

Danaher, Wang and Witten (2014), "The joint graphical lasso for inverse covariance estimation across
multiple classes":

minimise over positive definite T_1, ..., T_K:
sum_k (-log det T_k + tr(S_k T_k)) + sum over i != j of P(t_ij1, ..., t_ijK)

``group``: P = separate |t|_1 + shared |t|_2; ``fused``, for matrices in an order:
P = separate |t|_1 + shared sum_k |t_k+1 - t_k|. The diagonals have no penalty. The paper weighs
the terms by numbers of rows; `estimators.joint_graphical_lasso` says why they have equal weights.

Its dual: maximise sum_k (log det W_k + p), where W_k - S_k is, pair by pair, in the set whose
support function is P. A subgradient at T gives such a point; so the gap is the sum of those
of single matrices. See `estimators.solvers.block`, `estimators.solvers.admm`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import single_blas_thread
from gramercy.estimators.solvers.admm import iterate, proximal
from gramercy.estimators.solvers.block import duality_gap, soft_threshold
from gramercy.estimators.solvers.glasso import components
from gramercy.schemas import families

Array = NDArray[np.float64]
Structure = Literal["group", "fused"]

_LIMIT = 20_000  # iterations
_MAX_VIOLATION = 1e-6  # as for a single matrix, on a unit diagonal


@dataclass(frozen=True)
class JointSolution:
    """Minimisers with a proven accuracy.

    Parameters
    ----------
    precisions
        Positive definite, with exact zeros, shape (K, p, p).
    duals
        The dual point W that proves the gap; close to their inverses; shape (K, p, p).
    gap
        Duality gap per column: the objective exceeds its minimum by at most K p times this.
    """

    precisions: Array
    duals: Array
    gap: float


def joint_graphical_lasso(
    S: Array,
    separate: float,
    shared: float,
    *,
    structure: Structure = "group",
    tol: float = 1e-6,
    start: JointSolution | None = None,
    conditions: bool = True,
) -> JointSolution:
    """The unique minimiser.

    Parameters
    ----------
    S
        Positive definite, with unit diagonals, shape (K, p, p).
    separate, shared
        Penalties, not negative.
    structure
        ``group`` or ``fused``.
    tol
        Upper bound on the duality gap per column and matrix.
    start
        The solution of a similar problem with the same S.
    conditions
        Whether every inverse must be within 1e-6 of the dual point, too.

    Raises
    ------
    RequestError
        If the iteration did not converge: a matrix is nearly singular.

    Notes
    -----
    The problem is split into the connected components of its graph, which are those of the pairs at
    which P does not outweigh the S_k (Danaher et al., Theorem 2; it is exact for every P that is a
    sum over pairs, since zero then is a minimiser at all other pairs).
    """
    shrink_pairs = _SHRINK[structure]

    def shrink(state: Array, rho: float) -> Array:
        return _off_diagonal(shrink_pairs, state, separate / rho, shared / rho)

    p = S.shape[-1]
    linked = np.abs(shrink(S, 1.0)).max(axis=0)
    precisions = np.zeros_like(S)
    at = np.arange(p)
    precisions[:, at, at] = 1 / S[:, at, at]
    duals = precisions * S**2
    gap = 0.0
    with single_blas_thread():
        for block in components(linked, np.zeros((p, p))):
            inside = np.ix_(np.arange(len(S)), block, block)
            problem = _Joint(S[inside], shrink, tol, conditions)
            state = np.broadcast_to(np.eye(block.size), (len(S), block.size, block.size))
            if start is not None:
                subgradient = start.duals[inside] - S[inside]
                state = start.precisions[inside] + subgradient * (1 - np.eye(block.size))
            allowed = tol * block.size * len(S)
            outcome = iterate(problem, state, allowed, _LIMIT)
            if outcome.dual is None:
                raise families.NOT_CONVERGED(
                    "The joint graphical lasso did not converge at penalties {separate:g} and "
                    "{shared:g}: a matrix is nearly singular.",
                    "Use larger penalties.",
                    separate=separate,
                    shared=shared,
                )
            precisions[inside] = outcome.matrix
            duals[inside] = outcome.dual
            gap += outcome.gap
    return JointSolution(precisions + 0.0, duals, gap / (len(S) * p))


@dataclass(frozen=True)
class _Joint:
    """One block of the problem; see `estimators.solvers.admm.Problem`."""

    moment: Array
    shrink_: Callable[[Array, float], Array]
    tol: float
    conditions: bool

    def shrink(self, state: Array, rho: float) -> Array:
        return self.shrink_(state, rho)

    def invert(self, matrix: Array, rho: float) -> Array:
        return np.stack([proximal(own, rho) for own in matrix - self.moment / rho])

    def accepts(self, Z: Array, dual: Array) -> tuple[bool, float]:
        gap = sum(duality_gap(*each) for each in zip(Z, dual, strict=True))
        if gap > self.tol * dual.shape[0] * dual.shape[1]:
            return False, gap
        return not self.conditions or np.abs(np.linalg.inv(Z) - dual).max() <= _MAX_VIOLATION, gap

    def certificate(self, X: Array) -> Array | None:
        return None


def _off_diagonal(
    shrink: Callable[[Array, float, float], Array], state: Array, separate: float, shared: float
) -> Array:
    """`shrink` of all pairs; the diagonals are unchanged."""
    result = state.copy()
    row, column = np.triu_indices(state.shape[-1], 1)
    shrunk = shrink(state[:, row, column], separate, shared)
    result[:, row, column] = result[:, column, row] = shrunk
    return result


def shrink_group(values: Array, separate: float, shared: float) -> Array:
    """Proximal map of separate |t|_1 + shared |t|_2 at every column of `values`, shape (K, m)."""
    soft = soft_threshold(values, separate)
    norm = np.linalg.norm(soft, axis=0)
    result: Array = soft * np.maximum(1 - shared / np.maximum(norm, np.finfo(float).tiny), 0.0)
    return result


def shrink_fused(values: Array, separate: float, shared: float) -> Array:
    """Proximal map of separate |t|_1 + shared sum_k |t_k+1 - t_k| at every column, shape (K, m).

    It is the soft threshold of that of the differences alone (Friedman et al. 2007, Theorem 1).
    """
    return soft_threshold(total_variation(values, shared), separate)


def total_variation(values: Array, penalty: float) -> Array:
    """The minimisers of |x - y|^2 / 2 + penalty sum_k |x_k+1 - x_k|, y a column; shape (K, m).

    By dynamic programming over k (Johnson 2013), for all columns at once. Let d_k(b) be the
    derivative of the minimum over x_1, ..., x_k-1 of all terms up to y_k, given x_k = b. It is
    piecewise linear and increasing, and d_k+1(b) = b - y_k+1 + d_k(b), clipped at +- penalty. Where
    d_k reaches these, at `low` and `high`, the best x_k no longer follows x_k+1.
    """
    if penalty == 0:
        return values
    low: list[Array] = []
    high: list[Array] = []

    def derivative(b: Array) -> Array:
        result: Array = b - values[0]
        for y in values[1 : len(low) + 1]:
            result = b - y + np.clip(result, -penalty, penalty)
        return result

    def root(value: float) -> Array:
        """Where the derivative has this value, by interpolation between its knots."""
        known = np.stack([*low, *high, values[len(low)]])
        reach = 1 + 3 * penalty  # far enough for any penalty, however small
        ends = known.min(axis=0) - reach, known.max(axis=0) + reach
        knots = np.sort(np.stack([*low, *high, *ends]), axis=0)
        heights = derivative(knots)
        right = np.clip((heights <= value).sum(axis=0), 1, len(knots) - 1)[None]
        x, d = (
            [np.take_along_axis(each, right - left, axis=0)[0] for left in (1, 0)]
            for each in (knots, heights)
        )
        result: Array = x[0] + (value - d[0]) * (x[1] - x[0]) / (d[1] - d[0])
        return result

    for _ in values[1:]:
        ends = root(-penalty), root(penalty)
        low.append(ends[0])
        high.append(ends[1])
    x = [root(0.0)]
    for bounds in zip(reversed(low), reversed(high), strict=True):
        x.append(np.clip(x[-1], *bounds))
    return np.stack(x[::-1])


_SHRINK: Mapping[Structure, Callable[[Array, float, float], Array]] = {
    "group": shrink_group,
    "fused": shrink_fused,
}
