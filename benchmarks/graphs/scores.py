"""How good a graph, a precision matrix and a covariance matrix are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

Array = NDArray[np.float64]
Edges = NDArray[np.bool_]


@dataclass(frozen=True)
class Target:
    """What is aimed at.

    Parameters
    ----------
    moment
        Second moment, shape (p, p).
    edges
        Graph, shape (p, p).
    invertible
        Whether the moment has a precision matrix to compare with.
    """

    moment: Array
    edges: Edges
    invertible: bool


@dataclass(frozen=True)
class Scores:
    """Of one estimate; None where it has no such thing.

    Parameters
    ----------
    auc
        Area under the curve of true against false edges, as pairs are ranked.
    f1
        Of the edges.
    stein
        tr(P T) - log det(P T) - p, of the precision matrix T, P the second moment.
    covariance
        Frobenius error of the covariance over the norm of P.
    """

    auc: float | None = None
    f1: float | None = None
    stein: float | None = None
    covariance: float | None = None


def auc(ranks: Array, edges: Edges) -> float | None:
    """Of pairs ranked by a number each, shape (p, p)."""
    upper = np.triu_indices(len(ranks), 1)
    true = edges[upper]
    if true.all() or not true.any():
        return None
    return _digits(roc_auc_score(true, ranks[upper]))


def entry(path: list[Array | None]) -> Array:
    """Pairs ranked by how early they enter a path, and then by weight at its end."""
    known = [T for T in path if T is not None]
    if not known:
        return np.zeros((1, 1))
    last = np.abs(known[-1]) / np.abs(known[-1]).max()
    counts: Array = sum((T != 0).astype(float) for T in known) + last / 2
    return counts


def f1(edges: Edges, target: Target) -> float:
    both = (edges & target.edges).sum()
    return _digits(2 * both / max(edges.sum() + target.edges.sum(), 1))


def stein(precision: Array, target: Target) -> float | None:
    if not target.invertible:
        return None
    product = target.moment @ precision
    return _digits(np.trace(product) - np.linalg.slogdet(product)[1] - len(product))


def covariance(matrix: NDArray[Any], target: Target) -> float:
    return _digits(np.linalg.norm(matrix - target.moment) / np.linalg.norm(target.moment))


def _digits(value: Any) -> float:
    return float(f"{value:.5g}")
