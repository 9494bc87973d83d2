"""The factor model R = L F L^T + U of a correlation matrix: maximum likelihood, and rotations.

For given uniquenesses U (diagonal, psi), the loadings that maximise the likelihood are known. With
t_1 >= ... >= t_p the eigenvalues of U^-1/2 R U^-1/2 and u_k their eigenvectors, the k-th column of
L is U^1/2 u_k sqrt(t_k - 1) for the m largest, and minus twice the log-likelihood per row is, up to
a constant,

f(psi) = sum_i log psi_i + sum_{k<=m} (1 + log t_k) + sum_{k>m} t_k,

whose derivative by log psi_i is 1 - sum_{k<=m} u_ki^2 - sum_{k>m} t_k u_ki^2. It is minimised over
log psi within bounds. Where t_k < 1, its term is t_k.

Jöreskog (1967), "Some contributions to maximum likelihood factor analysis"; Lawley and Maxwell
(1971), "Factor analysis as a statistical method", chapter 4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

LEAST_UNIQUENESS = 0.005  # of a correlation matrix; R's factanal has the same
_STEPS, _PRECISION = 1000, 1e-10
_ROTATIONS, _CONVERGED, _FLAT = 500, 1e-8, 1e-5  # steps, angles, and slopes of oblimin
_POWER = 4  # of promax


def most_factors(p: int) -> int:
    """The largest m for which p columns determine m factors: (p - m)^2 >= p + m."""
    return max(m for m in range(p + 1) if (p - m) ** 2 >= p + m or m == 0)


def fit_factors(
    correlation: Array,
    number: int,
    least: float = LEAST_UNIQUENESS,
    start: Array | None = None,
    precision: float = _PRECISION,
) -> tuple[Array, Array]:
    """Loadings of uncorrelated factors, shape (p, m), and uniquenesses, shape (p,).

    `correlation`: positive definite with a unit diagonal, shape (p, p). `number`: m, at least one.
    `least`: smallest uniqueness. `start`: uniquenesses to start from. `precision`: the largest
    derivative of f at the solution.

    Factors are in the order of their eigenvalues t, and their loadings have a positive sum.
    """
    if start is None:  # Jöreskog's: of the squared multiple correlations
        inverse = np.diag(np.linalg.pinv(correlation, hermitian=True))
        start = (1 - number / (2 * len(correlation))) / np.maximum(inverse, 1.0)
    found = scipy.optimize.minimize(
        _likelihood,
        np.log(np.clip(start, least, 1.0)),
        args=(correlation, number),
        jac=True,
        method="L-BFGS-B",
        bounds=[(np.log(least), 0.0)] * len(correlation),
        options={"maxiter": _STEPS, "ftol": 1e-15, "gtol": precision, "maxcor": 20},
    )
    uniqueness = np.exp(found.x)
    root = np.sqrt(uniqueness)
    values, vectors = np.linalg.eigh(correlation / np.outer(root, root))
    sizes = np.sqrt(np.maximum(values[: -number - 1 : -1] - 1, 0.0))
    loadings = root[:, None] * vectors[:, : -number - 1 : -1] * sizes
    return loadings * np.where(loadings.sum(axis=0) < 0, -1.0, 1.0), uniqueness


def _likelihood(log: Array, correlation: Array, number: int) -> tuple[float, Array]:
    root = np.exp(log / 2)
    values, vectors = np.linalg.eigh(correlation / np.outer(root, root))
    weights = values.copy()
    common = values[-number:]
    weights[-number:] = np.minimum(common, 1.0)
    logs = np.log(np.maximum(common, 1.0)).sum()
    return float(log.sum() + weights.sum() + logs), 1 - vectors**2 @ weights


def varimax(loadings: Array) -> tuple[Array, Array]:
    """Kaiser's varimax of normalised loadings: the largest variance of squared loadings.

    Kaiser (1958), "The varimax criterion for analytic rotation in factor analysis".
    """
    m = loadings.shape[1]
    rows, rotation = loadings / _lengths(loadings), np.eye(m)
    for _ in range(_ROTATIONS):
        largest = 0.0
        for j, k in itertools.combinations(range(m), 2):  # Kaiser's plane rotations
            x, y = rows[:, j], rows[:, k]
            u, v = x**2 - y**2, 2 * x * y
            u, v = u - u.mean(), v - v.mean()
            angle = math.atan2(2 * float(u @ v), float(u @ u - v @ v)) / 4
            turn = np.array(
                [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
            )
            rows[:, [j, k]] = rows[:, [j, k]] @ turn
            rotation[:, [j, k]] = rotation[:, [j, k]] @ turn
            largest = max(largest, abs(angle))
        if largest < _CONVERGED:
            break
    return loadings @ rotation, np.eye(m)


def promax(loadings: Array) -> tuple[Array, Array]:
    """Promax: the least-squares fit of varimax loadings to their fourth powers.

    Hendrickson and White (1964), "Promax: a quick method for rotation to oblique simple structure".
    """
    upright = varimax(loadings)[0]
    scale = _lengths(upright)
    rows = upright / scale
    turn = np.linalg.lstsq(rows, rows * np.abs(rows) ** (_POWER - 1), rcond=None)[0]
    turn = turn * np.sqrt(np.diag(np.linalg.inv(turn.T @ turn)))
    inverse = np.linalg.inv(turn)
    return upright @ turn, inverse @ inverse.T


def oblimin(loadings: Array) -> tuple[Array, Array]:
    """Direct oblimin (quartimin) of normalised loadings, from varimax, by projected gradients.

    Jennrich and Sampson (1966), "Rotation for simple loadings"; Jennrich (2002), "A simple general
    method for oblique rotation".
    """
    upright = varimax(loadings)[0]
    m = upright.shape[1]
    scale = _lengths(upright)
    rows, others = upright / scale, 1 - np.eye(m)

    def turned(axes: Array) -> tuple[Array, float]:
        found: Array = rows @ np.linalg.inv(axes).T
        squares = found**2
        return found, float((squares * (squares @ others)).sum()) / 4

    axes, step = np.eye(m), 1.0
    found, value = turned(axes)
    for _ in range(_ROTATIONS):
        gradient = -(found.T @ (found * (found**2 @ others)) @ np.linalg.inv(axes)).T
        along = gradient - axes * (axes * gradient).sum(axis=0)
        square = float((along**2).sum())
        if square < _FLAT**2:
            break
        step *= 2
        for _ in range(20):
            moved = axes - step * along
            moved = moved / np.linalg.norm(moved, axis=0)
            new, lower = turned(moved)
            if value - lower > square * step / 2:
                break
            step /= 2
        axes, found, value = moved, new, lower
    return found * scale, axes.T @ axes


ROTATIONS: Mapping[str, Callable[[Array], tuple[Array, Array]]] = {
    "none": lambda loadings: (loadings, np.eye(loadings.shape[1])),
    "varimax": varimax,
    "promax": promax,
    "oblimin": oblimin,
}


def _lengths(loadings: Array) -> Array:
    """Kaiser's normalisation: the root of every communality; shape (p, 1)."""
    lengths = np.linalg.norm(loadings, axis=1, keepdims=True)
    floored: Array = np.maximum(lengths, 1e-12)
    return floored


def ordered(loadings: Array, factors: Array) -> tuple[Array, Array]:
    """Factors with the largest sum of squared loadings first, and loadings of positive sum."""
    order = np.argsort(-(loadings**2).sum(axis=0), kind="stable")
    signs = np.where(loadings.sum(axis=0) < 0, -1.0, 1.0)[order]
    return loadings[:, order] * signs, factors[np.ix_(order, order)] * np.outer(signs, signs)


def matched(loadings: Array, factors: Array, like: Array) -> tuple[Array, Array, Array]:
    """The factors in the order and with the signs of others, and their congruences.

    `like`: loadings of shape (p, m). Congruences are Tucker's, of absolute value at most 1.
    """
    norms = np.outer(np.linalg.norm(like, axis=0), np.linalg.norm(loadings, axis=0))
    congruence = like.T @ loadings / np.maximum(norms, 1e-300)
    _, order = scipy.optimize.linear_sum_assignment(-np.abs(congruence))
    found = congruence[np.arange(len(order)), order]
    signs = np.where(found < 0, -1.0, 1.0)
    both = np.outer(signs, signs)
    return loadings[:, order] * signs, factors[np.ix_(order, order)] * both, np.abs(found)


def nearest_turn(loadings: Array, target: Array) -> Array:
    """The loadings after the orthogonal rotation that brings them nearest to a target."""
    left, _, right = np.linalg.svd(loadings.T @ target)
    turned: Array = loadings @ left @ right
    return turned
