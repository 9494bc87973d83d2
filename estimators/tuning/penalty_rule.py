"""Tuning without private data: what every rule of choosing a penalty shares.

A rule sees a path: the precision matrices of an estimator, one for every penalty of a public grid,
as a function of `Evidence`. So it can be asked again for evidence that a rule has made: the other
folds, or a release that was drawn. All of it is post-processing, from public seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from gramercy.estimators.noise.denoise import denoise
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
# One precision matrix a penalty, None where there is no minimiser; penalties fall.
Path = Callable[[Evidence, Array], Sequence[Array | None]]

COUNT = 20  # penalties on a grid
_REACH = 100.0  # from the largest penalty to the least
MOST = 0.5  # of all pairs: rules that choose a graph look at sparse ones alone


@dataclass(frozen=True)
class Choice:
    """What a rule found.

    Parameters
    ----------
    penalty
        The one that it chose.
    penalties
        The grid, falling; shape (m,).
    scores
        The rule's criterion at each, the least of them best; infinite where it has none.
    edges
        Number of edges of each estimate, -1 where there is none; shape (m,).
    frequencies
        How often each pair was an edge at `penalty`, for rules that count; shape (p, p).
    """

    penalty: float
    penalties: Array
    scores: Array
    edges: NDArray[np.int64]
    frequencies: Array | None = None

    @property
    def table(self) -> pd.DataFrame:
        """One line a penalty that has an estimate, as a report shows it."""
        columns = {"penalty": self.penalties, "score": self.scores, "edges": self.edges}
        return pd.DataFrame(columns)[self.edges >= 0].reset_index(drop=True)


def penalties(*matrices: Array, count: int = COUNT, reach: float = _REACH) -> Array:
    """A grid from the largest entry off the diagonal, where no edge is left, downwards.

    Parameters
    ----------
    matrices
        What the estimator works from, symmetric, shape (p, p); of several, as of folds, the grid
        suits all.
    count
        How many.
    reach
        The largest over the least, for one matrix.

    Returns
    -------
    ndarray, shape (count,)
        Falling, geometric.
    """
    tops = [float(np.abs(each - np.diag(np.diagonal(each))).max()) for each in matrices]
    tops = [top for top in tops if top > 0] or [1.0]  # nothing to choose: any gives the diagonal
    grid: Array = np.geomspace(max(tops), min(tops) / reach, count)
    return grid


def around(penalty: float, count: int = COUNT, reach: float = _REACH) -> Array:
    """A grid about a penalty: falling, geometric, from `reach` times it to as little of it."""
    grid: Array = np.geomspace(penalty * reach, penalty / reach, count)
    return grid


def made(like: Evidence, raw: Array, law: NoiseLaw, rows: float) -> Evidence:
    """Evidence of the same columns with another matrix, repaired as a release is, and no folds."""
    repaired = denoise(raw, law, like.trace, rows)
    return replace(like, raw=raw, repaired=repaired, law=law, rows=rows, folds=())


def loss(matrix: Array, precision: Array) -> float:
    """-log det T + tr(S T); infinite unless T is positive definite.

    For a T that does not depend on S it is linear in S: where S has no bias, nor has the loss.
    """
    factor, failed = dpotrf(precision, lower=1)
    if failed:
        return np.inf
    return float((matrix * precision).sum() - 2 * np.log(np.diagonal(factor)).sum())


def graph(precision: Array) -> NDArray[np.bool_]:
    """Where it is not zero, off the diagonal; shape (p, p)."""
    edges: NDArray[np.bool_] = precision != 0
    np.fill_diagonal(edges, False)
    return edges


def sizes(path: Sequence[Array | None]) -> NDArray[np.int64]:
    """Number of edges of every estimate, -1 where there is none."""
    return np.array([-1 if T is None else int(graph(T).sum()) // 2 for T in path], dtype=np.int64)


def best(grid: Array, scores: Array, path: Sequence[Array | None]) -> Choice:
    """The penalty of the least score; the largest of them, if several have it.

    Raises
    ------
    RequestError
        If no score is finite.
    """
    if not np.isfinite(scores).any():
        raise RequestError(
            "No penalty of the grid has an estimate to choose from.",
            "Use the denoised matrix ('input: denoised'), or give a penalty.",
        )
    at = int(np.argmin(scores))
    return Choice(float(grid[at]), grid, scores, sizes(path))
