"""Stability of edges under a parametric bootstrap, with public seeds.

A matrix is used as the truth; a sample of as many rows is drawn from it, with the noise law of the
release, and the graph is estimated again. Edges that are not in most draws are unstable. Liu,
Roeder and Wasserman (2010), "Stability approach to regularization selection (StARS)", choose the
smallest penalty at which the graph is still stable. They subsample the rows, which a release does
not have; the bootstrap replaces that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.estimators.estimator import Estimate, Estimator
from gramercy.estimators.noise.draws import (
    draw_noise,
    stream,
    symmetric_root,
    wishart,
)
from gramercy.estimators.tuning.parallel import parallel_map
from gramercy.estimators.tuning.penalty_rule import (
    MAX_DENSITY,
    Choice,
    Path,
    derived_evidence,
    edge_counts,
    edge_mask,
)
from gramercy.estimators.uncertainty.moment_errors import has_intercept
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

DRAWS = 20
THRESHOLD = 0.05
_FEW_DRAWS, FEW_DRAWS_ABOVE = 8, 300  # columns: a draw takes about a second
# Draws, and factor of the threshold, for early stopping: above so many columns, the mean over pairs
# is precise from two draws.
_FIRST_DRAWS, _EARLY_FACTOR = 5, 3.0
_MANY_COLUMNS, _FEW_FIRST_DRAWS, _PRECISE_FACTOR = 100, 2, 1.5


@dataclass(frozen=True)
class Stability:
    """Frequencies of edges at every penalty."""

    penalties: Array  # descending; shape (m,)
    # share of the draws in which each pair is an edge, zero on the diagonal; shape (m, p, p)
    frequencies: Array
    draws: int  # number of draws

    @property
    def instability(self) -> Array:
        """Mean over pairs of 2 f (1 - f), as 20 draws show it; shape (m,).

        It is the chance that two draws disagree, of which n draws show (n - 1) / n.
        """
        p, f = self.frequencies.shape[1], self.frequencies
        of_twenty = (1 - 1 / DRAWS) / (1 - 1 / max(self.draws, 2))
        varying = f.sum(axis=(1, 2)) - np.einsum("kij,kij->k", f, f)  # without a copy of f
        instability: Array = 2 * varying / max(p * (p - 1), 1)
        return instability * of_twenty

    def stable(self, threshold: float) -> NDArray[np.intp]:
        """Indices of the penalties whose graphs are stable and, on average, sparse."""
        return np.flatnonzero(self.sparse & (self.instability <= threshold))

    @property
    def sparse(self) -> NDArray[np.bool_]:
        """Whether the mean graph has at most half of all pairs; shape (m,)."""
        p = self.frequencies.shape[1]
        sparse: NDArray[np.bool_] = self.frequencies.sum(axis=(1, 2)) <= MAX_DENSITY * p * (p - 1)
        return sparse


def bootstrap(
    evidence: Evidence,
    truth: Array,
    path: Path,
    grid: Array,
    draws: int = DRAWS,
    threshold: float = 1.0,
) -> Stability:
    """Frequencies of edges over releases simulated with `truth` as the second moment.

    `evidence`: number of rows and noise law of the draws. `truth`: positive semidefinite, shape (p,
    p). `path`: path of an estimator with exact zeros. Without an estimate all pairs count as edges:
    the graph is too dense, or the estimate does not exist, and neither is sparse and stable.
    `threshold`: largest instability of interest. Penalties that are far above it in the first draws
    are left out of the others, which saves time, and count as complete graphs.

    Rows are Gaussian; their second moment is drawn from a Wishart law. For rows of length one the
    trace would vary less.
    """
    raw = list(islice(redraws(evidence, truth), draws))
    many = len(truth) > _MANY_COLUMNS
    first = min(_FEW_FIRST_DRAWS if many else _FIRST_DRAWS, draws)
    counts = _counts(evidence, path, grid, raw[:first])
    if draws > first:
        factor = _PRECISE_FACTOR if many else _EARLY_FACTOR
        candidates = Stability(grid, counts / first, first).stable(factor * threshold)
        kept = int(candidates[-1]) + 1 if candidates.size else 1
        counts[:kept] += _counts(evidence, path, grid[:kept], raw[first:])
        counts[kept:] = draws * ~np.eye(len(truth), dtype=bool)
    return Stability(grid, counts / draws, draws)


def _counts(evidence: Evidence, path: Path, grid: Array, raw: list[Array]) -> Array:
    """Number of draws in which each pair is an edge, at each penalty; shape (m, p, p)."""
    p = len(raw[0])
    counts = np.zeros((len(grid), p, p))
    graphs_of = partial(_graphs, evidence, path, grid)
    for graphs in parallel_map(graphs_of, raw, long=p > FEW_DRAWS_ABOVE):
        counts += np.unpackbits(graphs, axis=2, count=p)
    return counts


def _graphs(evidence: Evidence, path: Path, grid: Array, raw: Array) -> NDArray[np.uint8]:
    """Graphs of one draw at each penalty; shape (m, p, p), with eight pairs in a byte."""
    drawn = derived_evidence(evidence, raw, evidence.law, evidence.terms, evidence.rows)
    all_pairs = ~np.eye(len(raw), dtype=bool)
    graphs = [all_pairs if T is None else edge_mask(T) for T in path(drawn, grid)]
    return np.packbits(graphs, axis=2)  # they travel between processes


def redraws(evidence: Evidence, truth: Array) -> Iterator[Array]:
    """Simulated raw matrices without end, from a public seed.

    Each is of as many rows with second moment `truth`, and has the same noise law.
    """
    root, source = symmetric_root(truth), stream()
    while True:
        rows = max(round(evidence.rows), 1)
        if rows >= len(root):
            white = wishart(source, len(root), rows) / rows
        else:
            few = source.standard_normal((rows, len(root)))
            white = few.T @ few / rows
        sample = congruence(root, white)
        noise = draw_noise(source, evidence, sample)
        yield sample + noise


def stars(
    evidence: Evidence,
    truth: Array,
    path: Path,
    grid: Array,
    *,
    threshold: float = THRESHOLD,
    draws: int | None = None,
) -> Choice:
    """The smallest penalty at which the graph is stable (StARS).

    `threshold`: largest instability, between 0 and 1/2. `draws`: number of draws; by default 20,
    and 8 above 300 columns. Scores are the instabilities, infinite where graphs are
    not sparse or far from stable; the graphs of these penalties are not estimated. If no graph is
    stable, the largest penalty is chosen.

    Graphs with more than half of all pairs, on average over the draws, are excluded, since nearly
    complete graphs are stable again. StARS makes the instability monotone; here it may decrease
    with the penalty. The edges of a chain, for example, are equally strong: they all enter near one
    penalty, where each is unstable, and are stable at slightly smaller penalties.
    """
    if draws is None:
        draws = DRAWS if len(truth) <= FEW_DRAWS_ABOVE else _FEW_DRAWS
    stability = bootstrap(evidence, truth, path, grid, draws, threshold)
    scores = np.where(stability.sparse, stability.instability, np.inf)
    stable = stability.stable(threshold)
    chosen = int(stable[-1]) if stable.size else 0
    kept = max(np.flatnonzero(np.isfinite(scores)), default=0) + 1
    edges = np.full(len(grid), -1)
    edges[:kept] = edge_counts(path(evidence, grid[:kept]))
    return Choice(float(grid[chosen]), grid, scores, edges, stability.frequencies[chosen])


Rule = Literal["ebic", "cross-validation", "first-drop", "stability"]


_MOST_COLUMNS = 64  # redraws of wider releases would take more than a few seconds


def with_stability(evidence: Evidence, estimator: Estimator, estimate: Estimate) -> Estimate:
    """The estimate with the share of redraws in which each pair is an edge, if it is known.

    It is the matrix ``stability``, which a rule may have computed before. Unknown are the graphs of
    releases with more than 64 columns, and of estimates that are not of one sparse graph.
    """
    edges, p = estimate.edges, len(evidence.raw)
    is_known = "stability" in estimate.matrices or edges is None or not estimator.redrawn
    if is_known or edges is None or p > _MOST_COLUMNS:
        return estimate
    q = p - int(has_intercept(evidence))
    if np.count_nonzero(edges) == q * (q - 1):  # every pair is an edge in all redraws
        return estimate
    stability = edge_frequencies(evidence, estimator, estimate.tuning)
    return replace(estimate, matrices={**estimate.matrices, "stability": stability})


def edge_frequencies(
    evidence: Evidence, estimator: Estimator, tuning: Mapping[str, float], draws: int = DRAWS
) -> Array:
    """Share of draws in which every pair is an edge; shape (p, p).

    `evidence`: evidence of the release; its denoised matrix is used as the truth. `estimator`:
    estimator of a graph. If a rule chose its penalty, that penalty is kept. `tuning`: tuning
    parameters of the estimate. `draws`: number of draws. A draw without an estimate counts as an
    empty graph.

    A parametric bootstrap: see `estimators.tuning.stability.redraws`.
    """
    if getattr(estimator, "penalty", None) in get_args(Rule):
        estimator = estimator.model_copy(update={"penalty": tuning["penalty"]})
    raw = islice(redraws(evidence, evidence.repaired), draws)
    edges = parallel_map(partial(_edges, evidence, estimator), raw)
    frequencies: Array = np.mean(edges, axis=0, dtype=np.float64)
    return frequencies


def _edges(evidence: Evidence, estimator: Estimator, raw: Array) -> NDArray[np.bool_]:
    drawn = derived_evidence(evidence, raw, evidence.law, evidence.terms, evidence.rows)
    try:
        edges = estimator.fit(drawn).edges
    except RequestError:
        edges = None
    return np.zeros(raw.shape, dtype=bool) if edges is None else edges != 0
