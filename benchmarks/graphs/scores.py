"""Scores of estimated graphs, precision matrices and covariance matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.arrays import Array

Edges = NDArray[np.bool_]

NO_EDGE = 1e-8  # entries of a precision matrix up to it are rounding errors


@dataclass(frozen=True)
class Target:
    """The truth that an estimate is compared with.

    Parameters
    ----------
    moment
        Second moment, shape (p, p).
    edges
        Graph, shape (p, p).
    invertible
        Whether the moment has an inverse, which precision matrices are compared with.
    """

    moment: Array
    edges: Edges
    invertible: bool


@dataclass(frozen=True)
class Scores:
    """Scores of one estimate; None for each score that does not apply.

    Parameters
    ----------
    auc
        Area under the ROC curve of the ranked pairs.
    f1
        F1 score of the edges.
    stein
        Stein loss tr(P T) - log det(P T) - p of the precision matrix T; P is the true moment.
    covariance
        Frobenius error of the covariance, divided by the norm of P.
    false
        Share of false edges among the found ones.
    """

    auc: float | None = None
    f1: float | None = None
    stein: float | None = None
    covariance: float | None = None
    false: float | None = None


def auc(ranks: Array, edges: Edges) -> float | None:
    """Area under the ROC curve of pairs ranked by `ranks`, shape (p, p)."""
    upper = np.triu_indices(len(ranks), 1)
    true = edges[upper]
    if true.all() or not true.any():
        return None
    return _rounded(roc_auc_score(true, ranks[upper]))


def entry(path: list[Array | None]) -> Array:
    """Rank pairs by how early they enter a path, then by their weight at its end."""
    known = [T for T in path if T is not None]
    if not known:
        return np.zeros((1, 1))
    last = np.abs(known[-1]) / np.abs(known[-1]).max()
    counts: Array = sum((T != 0).astype(float) for T in known) + last / 2
    return counts


def f1(edges: Edges, target: Target) -> float:
    both = (edges & target.edges).sum()
    return _rounded(2 * both / max(edges.sum() + target.edges.sum(), 1))


def false(edges: Edges, target: Target) -> float:
    """The share of false edges; 0 without edges."""
    return _rounded((edges & ~target.edges).sum() / max(edges.sum(), 1))


def stein(precision: Array, target: Target) -> float | None:
    if not target.invertible:
        return None
    product = target.moment @ precision
    return _rounded(np.trace(product) - np.linalg.slogdet(product)[1] - len(product))


def covariance(matrix: NDArray[Any], target: Target) -> float:
    return _rounded(np.linalg.norm(matrix - target.moment) / np.linalg.norm(target.moment))


def _rounded(value: Any) -> float:
    return float(f"{value:.5g}")
