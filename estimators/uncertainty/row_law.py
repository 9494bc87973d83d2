"""Sampling errors of a second moment under a stated law of the rows, since a release does not say.

Fourth moments of the rows are not published. The law taken is that of Gaussian rows with mean
zero, or with the means that a column of ones shows; for rows divided by their own length, the law
of such rows after division, with the second moment that was released.

With 1 / |x|^4 = integral of t exp(-t |x|^2) dt, every t makes rows that are Gaussian again, of
covariance C_t = C / (1 + 2 t C) and mean m_t = m / (1 + 2 t C), so that the fourth moments of the
divided rows are an integral of Gaussian ones,

E[x_i x_j x_k x_l] = M_ij M_kl + M_ik M_jl + M_il M_jk - 2 m_i m_j m_k m_l,  M = C_t + m_t m_t^T,

and a few dozen values of t are exact to six digits. C and m are those whose divided rows have the
released second moment: for m = 0 this is the angular central Gaussian law (Tyler 1987).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.uncertainty.entry_covariance import Spread

Array = NDArray[np.float64]

_STEP = 0.5  # of log t: the trapezoid rule converges like exp(-pi^2 / step)
_FAINT = 1e-9  # of the integral, and of an eigenvalue
_ROUNDS, _ENOUGH = 200, 1e-5  # of the released moment: errors need no more


def of_rows(moment: Array, rows: float, *, unit: bool, intercept: bool) -> Spread:
    """Sampling spread of a second moment.

    Parameters
    ----------
    moment
        Second moment, positive semidefinite, shape (p, p); with `intercept`, its first column is
        that of a constant.
    rows
        How many.
    unit
        Whether rows were divided by their own length.
    intercept
        Whether the first column is a constant (before division).
    """
    if float(np.trace(moment)) <= 0 or (unit and len(moment) == 1):
        return Spread()
    if not unit:
        root = moment / math.sqrt(rows)
        if not intercept or moment[0, 0] <= 0:
            return Spread(products=((root, root),))
        mean = moment[0] / math.sqrt(moment[0, 0])
        return Spread(products=((root, root),), squares=((-2 / rows, np.outer(mean, mean)),))
    trace = float(np.trace(moment))
    whole = moment / trace
    parts = list(_parts(_with_constant(whole) if intercept else _central(whole)))
    scale = trace * math.sqrt(1 / rows)
    products, squares = [], []
    for weight, matrix, mean in parts:
        root = matrix * (scale * math.sqrt(weight))
        products.append((root, root))
        squares.append((1.0, root))
        if intercept:
            squares.append((-2.0 * weight * scale**2, np.outer(mean, mean)))
    squares.append((-1 / rows, moment))
    return Spread(tuple(products), tuple(squares))


def in_words(*, unit: bool, intercept: bool) -> str:
    """The law of the rows that is taken."""
    centre = "the means that the column of ones shows" if intercept else "mean zero"
    return f"Gaussian rows with {centre}" + (", divided by their length" if unit else "")


@dataclass(frozen=True)
class _Law:
    """Rows before division: eigenvalues and vectors of C, and m in its own basis; or m = 0."""

    values: Array
    vectors: Array
    mean: Array
    constant: bool

    def tilted(self, t: Array) -> tuple[Array, Array, Array]:
        """E exp(-t |x|^2), and the eigenvalues of C_t and m_t; shapes (k,), (k, p), (k, p)."""
        shrink = 1 / (1 + 2 * np.outer(t, self.values))
        log = 0.5 * np.log(shrink).sum(axis=1) - t * (shrink * self.mean**2).sum(axis=1)
        return np.exp(log - t * self.constant), self.values * shrink, self.mean * shrink


def _times(law: _Law, power: int) -> tuple[Array, Array, Array, Array]:
    """Nodes t with their weights for the integral of t^(power - 1) E[...] dt, and what is there."""
    size = float(law.values.sum() + (law.mean**2).sum() + law.constant)
    log = np.arange(-21.0, 45.0, _STEP) - math.log(size)
    t = np.exp(log)
    expected, values, mean = law.tilted(t)
    weight = _STEP * t**power * expected
    # Beyond t of order 1 every M_t falls like 1 / t, or is that of the constant.
    largest = np.maximum(values.max(axis=1), (mean**2).sum(axis=1) + law.constant)
    share = weight * largest**power
    kept = share > _FAINT * share.sum()
    return weight[kept], values[kept], mean[kept], t[kept]


def _parts(law: _Law) -> Iterator[tuple[float, Array, Array]]:
    """Weights, second moments and means whose fourth moments add up to those of divided rows."""
    for weight, values, mean, _ in zip(*_times(law, 2), strict=True):
        yield float(weight), *_moment(law, values, mean)


def _moment(law: _Law, values: Array, mean: Array) -> tuple[Array, Array]:
    centre = law.vectors @ mean
    root = law.vectors * np.sqrt(values)
    matrix = root @ root.T + np.outer(centre, centre)  # symmetric to the last bit
    if not law.constant:
        return matrix, centre
    centre = np.append(1.0, centre)
    whole = np.outer(centre, centre)
    whole[1:, 1:] = matrix
    return whole, centre


def _central(moment: Array) -> _Law:
    """The law with mean zero: division keeps the eigenvectors, and shrinks the eigenvalues."""
    wanted, vectors = np.linalg.eigh(moment)
    wanted = np.maximum(wanted, _FAINT)
    wanted /= wanted.sum()
    law = _Law(wanted, vectors, np.zeros_like(wanted), constant=False)
    for _ in range(_ROUNDS):
        weight, values, _, _ = _times(law, 1)
        ratio = wanted / (weight @ values)
        law = _Law(law.values * ratio / (law.values @ ratio), vectors, law.mean, constant=False)
        if np.abs(ratio - 1).max() < _ENOUGH:
            break
    return law


def _with_constant(moment: Array) -> _Law:
    """The law of (1, x) whose division has a second moment, by steps of its Cholesky factor."""
    p = len(moment)
    ridge = _FAINT * np.eye(p)
    wanted = np.linalg.cholesky(moment + ridge)
    root = wanted
    law = _law(moment + ridge)
    for _ in range(_ROUNDS):
        weight, values, mean, _ = _times(law, 1)
        made = _mean_moment(law, weight, values, mean)
        step = np.linalg.solve(np.linalg.cholesky(made + ridge), wanted)
        root = root @ step  # triangular, as a factor: what it makes need not be factored again
        law = _law(root @ root.T)
        if np.abs(made - moment).max() < _ENOUGH:
            break
    return law


def _mean_moment(law: _Law, weight: Array, values: Array, mean: Array) -> Array:
    """The sum of `_moment` over all nodes by their weights, for a law with a constant."""
    first = law.vectors @ (weight @ mean)
    inner = np.diag(weight @ values) + (mean.T * weight) @ mean
    rest = law.vectors @ inner @ law.vectors.T
    found: Array = np.block([[weight.sum(), first], [first[:, None], rest]])
    return found


def _law(second: Array) -> _Law:
    """Of (1, x), from a second moment up to scale."""
    mean = second[0, 1:] / second[0, 0]
    values, vectors = np.linalg.eigh(second[1:, 1:] / second[0, 0] - np.outer(mean, mean))
    return _Law(np.maximum(values, _FAINT), vectors, vectors.T @ mean, constant=True)
