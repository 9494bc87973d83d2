"""Synthetic populations with known truth: three kinds of graphs, normalised Gaussian rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import Array, Rng
from benchmarks.utility.data import unit

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
    return of_precision(precision(kind, p, rng))


def precision(kind: str, p: int, rng: Rng) -> Array:
    """The precision matrix of a graph of that kind."""
    return _PRECISIONS[kind](p, rng)


def of_precision(matrix: Array) -> Truth:
    """The graph of a precision matrix; its covariance has a unit diagonal."""
    covariance = _correlations(matrix)
    edges = np.abs(matrix) > 1e-8
    np.fill_diagonal(edges, False)
    root = np.asarray(np.linalg.cholesky(covariance), np.float64)
    return Truth(of_unit_rows(covariance), edges, root)


def correlations(kind: str, p: int, rng: Rng) -> Array:
    """The correlation matrix of a graph of that kind."""
    return _correlations(_PRECISIONS[kind](p, rng))


def _correlations(precision: Array) -> Array:
    covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    root = np.sqrt(np.diag(covariance))
    scaled: Array = covariance / np.outer(root, root)
    return scaled


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


def _autoregressive(p: int, _rng: Rng) -> Array:
    covariance: Array = 0.9 ** np.abs(np.subtract.outer(range(p), range(p)))
    return np.asarray(np.linalg.inv(covariance), dtype=np.float64)


def _blocks(p: int, _rng: Rng) -> Array:
    same = np.equal.outer(np.arange(p) // 5, np.arange(p) // 5)
    return np.asarray(np.linalg.inv(0.64 * same + 0.36 * np.eye(p)), dtype=np.float64)


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


_PRECISIONS = {
    "ar1": _ar1,
    "hub": _hub,
    "random": _random,
    "autoregressive": _autoregressive,
    "blocks": _blocks,
}

# Next to the checkout, unless the environment variable names another folder.
FOLDER = Path(os.environ.get("GRAMERCY_TABLES", Path(__file__).parents[3] / "shared" / "data"))


@dataclass(frozen=True)
class Table:
    """A table in the data folder.

    Parameters
    ----------
    title
        Description on the page.
    logarithm
        Whether columns x are replaced by log(1 + x).
    """

    title: str
    logarithm: bool = False


TABLES = {
    "sachs": Table("flow cytometry, Sachs et al. (2005), logarithms", logarithm=True),
    "wine_quality": Table("wine quality, Cortez et al. (2009)"),
    "credit_default_tw": Table("credit card clients, Yeh and Lien (2009)"),
    "ecoli70_gaussian": Table("draws from the ecoli70 network of the bnlearn repository"),
    "ionosphere": Table("radar returns, Sigillito et al. (1989)"),
    "parkinsons": Table("voice recordings, Little et al. (2007)"),
}


def present() -> list[str]:
    """Return the names of the tables that are on disk."""
    return [name for name in TABLES if (FOLDER / name / "data.csv").exists()]


def load(name: str) -> Array:
    """Load the table of that name, with rows of length one."""
    table = pd.read_csv(FOLDER / name / "data.csv").dropna().to_numpy(float)
    return normalised(np.log1p(table) if TABLES[name].logarithm else table)


def normalised(table: Array) -> Array:
    """Centre and scale the columns by constants of one digit, and scale rows to length one.

    A data steward would declare these constants in the contract. Constant columns are dropped.
    """
    table = table[:, table.std(axis=0) > 0]
    return unit((table - centres(table)) / scales(table))


def centres(table: Array) -> Array:
    """Return the centre of every column, rounded to one digit of its scale."""
    scale = scales(table)
    result: Array = np.round(table.mean(axis=0) / scale) * scale
    return result


def scales(table: Array) -> Array:
    """Return the standard deviation of every column, rounded to one digit."""
    deviations = table.std(axis=0)
    power = 10.0 ** np.floor(np.log10(deviations))
    rounded: Array = np.round(deviations / power) * power
    return rounded
