"""Functions that all rules for penalty selection share.

A rule receives a path: a function of `Evidence` and a public grid of penalties that returns a
precision matrix for each penalty. So the rule can evaluate it for derived evidence, too: the other
folds, or a simulated release. All of this is post-processing, with public seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from gramercy.estimators.noise.nearest_metric import denoise_in_metric
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence, NoiseTerm
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
# One precision matrix for each penalty, None without a minimiser; penalties are descending.
Path = Callable[[Evidence, Array], Sequence[Array | None]]

COUNT = 20  # penalties in a grid
_RATIO = 100.0  # ratio of the largest penalty to the smallest
MAX_DENSITY = 0.5  # largest share of pairs that are edges, in rules that choose a graph


@dataclass(frozen=True)
class Choice:
    """The result of a rule."""

    penalty: float  # the chosen penalty
    penalties: Array  # the grid, descending; shape (m,)
    # value of the criterion at each penalty; the smallest is best, infinity means no value
    scores: Array
    edges: NDArray[np.int64]  # number of edges of each estimate, -1 without an estimate; shape (m,)
    # share of draws in which each pair is an edge at `penalty`, for `stars`; shape (p, p)
    frequencies: Array | None = None

    @property
    def table(self) -> pd.DataFrame:
        """A row for each penalty that has an estimate, for the report."""
        columns = {"penalty": self.penalties, "score": self.scores, "edges": self.edges}
        return pd.DataFrame(columns)[self.edges >= 0].reset_index(drop=True)


def penalty_grid(*matrices: Array, count: int = COUNT, ratio: float = _RATIO) -> Array:
    """A grid down from the largest off-diagonal entry, at which the graph is empty.

    `matrices`: input matrices of the estimator, symmetric, shape (p, p). The grid covers all of
    them, for example those of the folds. `count`: number of penalties. `ratio`: ratio of the
    largest penalty to the smallest, for one matrix. Returns shape (count,): descending, geometric.
    """
    largest = [float(np.abs(matrix - np.diag(np.diagonal(matrix))).max()) for matrix in matrices]
    largest = [entry for entry in largest if entry > 0] or [1.0]  # diagonal: any penalty works
    return np.geomspace(max(largest), min(largest) / ratio, count)


def grid_around(penalty: float, count: int = COUNT, ratio: float = _RATIO) -> Array:
    """A descending geometric grid from `ratio` times a penalty down to the penalty over `ratio`."""
    return np.geomspace(penalty * ratio, penalty / ratio, count)


def derived_evidence(
    like: Evidence, raw: Array, law: NoiseLaw, terms: tuple[NoiseTerm, ...], rows: float
) -> Evidence:
    """Evidence with the same columns and another matrix, denoised like a release; no folds.

    `law`, `terms`: of the noise of `raw`, as of `Evidence`.
    """
    repaired = denoise_in_metric(raw, law, terms, like.trace, rows, unit=like.unit)
    return replace(like, raw=raw, repaired=repaired, law=law, rows=rows, folds=(), terms=terms)


def loss(matrix: Array, precision: Array) -> float:
    """-log det T + tr(S T); infinite unless T is positive definite.

    It is linear in S, so for a T that does not depend on S it is unbiased if S is.
    """
    factor, failed = dpotrf(precision, lower=1)
    if failed:
        return np.inf
    return float((matrix * precision).sum() - 2 * np.log(np.diagonal(factor)).sum())


def edge_mask(precision: Array) -> NDArray[np.bool_]:
    """Whether each pair is an edge: a nonzero entry off the diagonal; shape (p, p)."""
    edges: NDArray[np.bool_] = precision != 0
    np.fill_diagonal(edges, False)
    return edges


def edge_counts(path: Sequence[Array | None]) -> NDArray[np.int64]:
    """Number of edges of each estimate, -1 without an estimate."""
    return np.array(
        [-1 if T is None else int(edge_mask(T).sum()) // 2 for T in path], dtype=np.int64
    )


def best_choice(grid: Array, scores: Array, path: Sequence[Array | None]) -> Choice:
    """The penalty with the smallest score; in a tie, the largest penalty.

    Raises RequestError if no score is finite.
    """
    if not np.isfinite(scores).any():
        raise families.ESTIMATE(
            "The estimator has no solution at any penalty of the grid.",
            "Use the denoised matrix ('input: denoised'), or give a penalty.",
        )
    best = int(np.argmin(scores))
    return Choice(float(grid[best]), grid, scores, edge_counts(path))
