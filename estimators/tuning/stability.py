"""Stability: which edges come back when the release is drawn again, from public seeds.

Parametric bootstrap: take a matrix as the truth, draw a sample of so many rows from it and the
release's own noise on top, and estimate again. Edges that come and go are noise. Liu, Roeder and
Wasserman (2010), "Stability approach to regularization selection (StARS)", choose the least penalty
at which the graph is still stable; they subsample the rows, which nobody has here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.draws import Stream, draw, of_rows, rows_like, stream, wishart
from gramercy.estimators.tuning.parallel import side_by_side
from gramercy.estimators.tuning.penalty_rule import MOST, Choice, Path, graph, made, sizes
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

DRAWS = 20
THRESHOLD = 0.05
_GLANCE, _HOPELESS = 5, 3.0  # after so many draws, so many times the threshold


@dataclass(frozen=True)
class Stability:
    """How often every pair was an edge.

    Parameters
    ----------
    penalties
        Falling; shape (m,).
    frequencies
        Shape (m, p, p), between 0 and 1; zero on the diagonal.
    """

    penalties: Array
    frequencies: Array

    @property
    def instability(self) -> Array:
        """Mean over pairs of 2 f (1 - f), the chance that two draws disagree; shape (m,)."""
        p = self.frequencies.shape[1]
        f = self.frequencies
        found: Array = (2 * f * (1 - f)).sum(axis=(1, 2)) / max(p * (p - 1), 1)
        return found

    def stable(self, threshold: float) -> NDArray[np.intp]:
        """Places of the penalties whose graphs are sparse, on average, and stable."""
        return np.flatnonzero(self.sparse & (self.instability <= threshold))

    @property
    def sparse(self) -> NDArray[np.bool_]:
        """Where the mean graph has at most half of all pairs; shape (m,)."""
        p = self.frequencies.shape[1]
        sparse: NDArray[np.bool_] = self.frequencies.sum(axis=(1, 2)) <= MOST * p * (p - 1)
        return sparse


def bootstrap(
    evidence: Evidence,
    truth: Array,
    path: Path,
    grid: Array,
    draws: int = DRAWS,
    threshold: float = 1.0,
) -> Stability:
    """Frequencies of edges over releases drawn as if `truth` were the second moment.

    Parameters
    ----------
    evidence
        Its number of rows and noise law are those of the draws.
    truth
        Positive semidefinite, shape (p, p).
    path
        Of an estimator with exact zeros. Where it has no estimate all pairs are counted as edges:
        either the graph got too dense to go on, or there is none, and neither is sparse and stable.
    grid
        Penalties, falling.
    draws
        How many.
    threshold
        Largest instability of interest. Penalties below the last that comes near it in the first
        draws are left out of the others, and count as graphs of all pairs: they take the longest.

    Notes
    -----
    Rows are drawn as Gaussian, through their Wishart second moment. Rows of length one vary a
    little less, along the trace.
    """
    source = stream()
    raw = [redrawn(evidence, truth, source) for _ in range(draws)]
    glance = min(_GLANCE, draws)
    counts = _counts(evidence, path, grid, raw[:glance])
    if draws > glance:
        near = Stability(grid, counts / glance).stable(_HOPELESS * threshold)
        kept = int(near[-1]) + 1 if near.size else 1
        counts[:kept] += _counts(evidence, path, grid[:kept], raw[glance:])
        counts[kept:] = draws * ~np.eye(len(truth), dtype=bool)
    return Stability(grid, counts / draws)


def _counts(evidence: Evidence, path: Path, grid: Array, raw: list[Array]) -> Array:
    """How often every pair is an edge, at every penalty; shape (m, p, p)."""
    graphs = side_by_side(partial(_graphs, evidence, path, grid), raw)
    counts: Array = np.sum(graphs, axis=0, dtype=np.float64)
    return counts


def _graphs(evidence: Evidence, path: Path, grid: Array, raw: Array) -> NDArray[np.bool_]:
    """Of one draw, at every penalty; shape (m, p, p)."""
    again = made(evidence, raw, evidence.law, evidence.rows)
    all_pairs = ~np.eye(len(raw), dtype=bool)
    return np.array([all_pairs if T is None else graph(T) for T in path(again, grid)])


def redrawn(evidence: Evidence, truth: Array, source: Stream) -> Array:
    """A raw matrix of as many rows with the second moment `truth`, and the same noise."""
    p, rows, law = len(truth), max(round(evidence.rows), 1), evidence.law
    values, vectors = np.linalg.eigh(truth)
    # The one root that is the same whatever signs, and turns of ties, the vectors come with.
    root: Array = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    if rows >= p:
        white = wishart(source, p, rows) / rows
    else:
        few = source.standard_normal((rows, p))
        white = few.T @ few / rows
    sample: Array = root @ white @ root.T
    sample = (sample + sample.T) / 2
    if law.family == "none":
        noise = np.zeros_like(sample)
    elif law.cell_variance is not None:
        noise = of_rows(source, rows_like(sample, rows), law.cell_variance, rows)
    else:
        noise = draw(source, p, law)
    return sample + noise


def stars(
    evidence: Evidence,
    truth: Array,
    path: Path,
    grid: Array,
    *,
    threshold: float = THRESHOLD,
    draws: int = DRAWS,
) -> Choice:
    """The least penalty down to which the graph is stable.

    Parameters
    ----------
    evidence, truth, path, grid, draws
        See `bootstrap`.
    threshold
        Largest instability, between 0 and 1/2.

    Returns
    -------
    Choice
        Scores are the instabilities, infinite where graphs are not sparse or far from stable. The
        largest penalty is chosen where none is stable.

    Notes
    -----
    Only graphs with at most half of all pairs are looked at, on average over the draws: those with
    nearly all are stable again. StARS lets the instability rise only; here it may fall, since
    edges of one strength, as those of a chain, all enter at one penalty, where each of them is a
    toss-up, and are all stable a little below it.
    """
    found = bootstrap(evidence, truth, path, grid, draws, threshold)
    scores = np.where(found.sparse, found.instability, np.inf)
    stable = found.stable(threshold)
    at = int(stable[-1]) if stable.size else 0
    whole = sizes(path(evidence, grid))
    return Choice(float(grid[at]), grid, scores, whole, found.frequencies[at])
