"""Symmetric random matrices for noise, and projections that any method may apply for free."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.isotonic import isotonic_regression

from benchmarks.arrays import Array, Rng


def goe(rng: Rng, p: int, scale: float) -> Array:
    """Draw white noise in svec: N(0, scale^2) on the diagonal, N(0, scale^2 / 2) elsewhere."""
    half = rng.standard_normal((p, p)) * (scale / 2)
    return half + half.T


def triangle(draw: Callable[[tuple[int, int]], Array], p: int) -> Array:
    """Draw a symmetric matrix with independent entries of one law in the upper triangle."""
    upper = np.triu(draw((p, p)))
    return upper + np.triu(upper, 1).T


def haar(rng: Rng, p: int) -> Array:
    """Draw a uniformly random orthogonal matrix."""
    q, r = np.linalg.qr(rng.standard_normal((p, p)))
    return q * np.sign(np.diag(r))


def assemble(vectors: Array, values: Array) -> Array:
    """V diag(values) V^T."""
    return (vectors * values) @ vectors.T


def clipped(matrix: Array) -> Array:
    """Clip every eigenvalue to [0, 1], as the code of Dong, Liang and Yi does."""
    values, vectors = np.linalg.eigh(matrix)
    return assemble(vectors, np.clip(values, 0, 1))


def projected(matrix: Array) -> Array:
    """The nearest positive semidefinite matrix of trace at most 1."""
    values, vectors = np.linalg.eigh(matrix)
    return assemble(vectors, plausible(values))


def plausible(rising: Array) -> Array:
    """The nearest increasing, non-negative sequence with sum at most 1."""
    fitted = isotonic_regression(rising)
    kept: Array = np.maximum(fitted, 0)
    if kept.sum() <= 1:
        return kept
    falling = fitted[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, falling.size + 1)
    lowered: Array = np.maximum(fitted - excess[np.flatnonzero(falling > excess)[-1]], 0)
    return lowered
