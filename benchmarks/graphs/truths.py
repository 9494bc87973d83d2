"""Synthetic populations with known truth: three kinds of graphs, normalised Gaussian rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rng = np.random.Generator
KINDS = ("ar1", "hub", "random")


@dataclass(frozen=True)
class Truth:
    """The truth that a release is compared with.

    Parameters
    ----------
    moment
        Second moment of the population of unit rows, shape (p, p).
    edges
        The graph, shape (p, p).
    root
        Square root of the covariance of the Gaussian rows before normalisation.
    """

    moment: Array
    edges: NDArray[np.bool_]
    root: Array

    def rows(self, n: int, rng: Rng) -> Array:
        """Draw n rows of length one."""
        drawn = rng.standard_normal((n, len(self.root))) @ self.root.T
        unit: Array = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        return unit


def truth(kind: str, p: int, rng: Rng) -> Truth:
    """Build a graph of that kind; its covariance has a unit diagonal."""
    precision = {"ar1": _ar1, "hub": _hub, "random": _random}[kind](p, rng)
    covariance = np.linalg.inv(precision)
    root = np.sqrt(np.diag(covariance))
    covariance /= np.outer(root, root)
    edges = np.abs(precision) > 1e-8
    np.fill_diagonal(edges, False)
    return Truth(of_unit_rows(covariance), edges, np.linalg.cholesky(covariance))


def of_unit_rows(covariance: Array) -> Array:
    """Return E[x x^T / |x|^2] for x ~ N(0, covariance).

    The eigenvectors stay; an eigenvalue w_i becomes the integral over t > 0 of
    w_i / (1 + 2 w_i t) prod_j (1 + 2 w_j t)^(-1/2). So a zero of the precision matrix stays nearly
    zero, not exactly, unless eigenvalues are equal.
    """
    values, vectors = np.linalg.eigh(covariance)
    at, weights = np.polynomial.legendre.leggauss(400)
    share = (at + 1) / 2
    t = share / (1 - share) / values.size
    steps = weights / 2 / (1 - share) ** 2 / values.size
    product = np.exp(-0.5 * np.log1p(2 * np.outer(values, t)).sum(axis=0))
    new = (values[:, None] / (1 + 2 * np.outer(values, t)) * product * steps).sum(axis=1)
    result: Array = (vectors * new) @ vectors.T
    return result


def _ar1(p: int, _rng: Rng) -> Array:
    covariance: Array = 0.6 ** np.abs(np.subtract.outer(range(p), range(p)))
    return np.asarray(np.linalg.inv(covariance), dtype=np.float64)


def _hub(p: int, _rng: Rng) -> Array:
    links = np.zeros((p, p))
    for hub in range(0, p, 10):
        links[hub, hub + 1 : hub + 10] = 0.3
    return _definite(links + links.T)


def _random(p: int, rng: Rng) -> Array:
    """Draw a precision matrix with three edges per column on average, of both signs."""
    some = np.triu(rng.random((p, p)) < 3 / p, 1)
    links = some * rng.uniform(0.3, 0.6, (p, p)) * rng.choice([-1, 1], (p, p))
    return _definite(links + links.T)


def _definite(links: Array) -> Array:
    made: Array = links + (0.2 - np.linalg.eigvalsh(links)[0]) * np.eye(len(links))
    return made
