"""Stability: which edges come back when the release is drawn again, from public seeds.

Parametric bootstrap: take a matrix as the truth, draw a sample of so many rows from it and the
release's own noise on top, and estimate again. Edges that come and go are noise. Liu, Roeder and
Wasserman (2010), "Stability approach to regularization selection (StARS)", choose the least penalty
at which the graph is still stable; they subsample the rows, which nobody has here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.noise.draws import Stream, draw, of_rows, rows_like, stream, wishart
from estimators.tuning.path import Choice, Path, graph, made, sizes
from schemas.evidence import Evidence

Array = NDArray[np.float64]

DRAWS = 20
THRESHOLD = 0.05
_MOST = 0.5  # of all pairs


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


def bootstrap(
    evidence: Evidence, truth: Array, path: Path, grid: Array, draws: int = DRAWS
) -> Stability:
    """Frequencies of edges over releases drawn as if `truth` were the second moment.

    Parameters
    ----------
    evidence
        Its number of rows and noise law are those of the draws.
    truth
        Positive semidefinite, shape (p, p).
    path
        Of an estimator with exact zeros.
    grid
        Penalties, falling.
    draws
        How many.

    Notes
    -----
    Rows are drawn as Gaussian, through their Wishart second moment. Rows of length one vary a
    little less, along the trace.
    """
    source = stream()
    counts = np.zeros((len(grid), *truth.shape))
    for _ in range(draws):
        again = made(evidence, redrawn(evidence, truth, source), evidence.law, evidence.rows)
        for at, T in enumerate(path(again, grid)):
            counts[at] += 0.0 if T is None else graph(T)
    return Stability(grid, counts / draws)


def redrawn(evidence: Evidence, truth: Array, source: Stream) -> Array:
    """A raw matrix of as many rows with the second moment `truth`, and the same noise."""
    p, rows, law = len(truth), max(round(evidence.rows), 1), evidence.law
    values, vectors = np.linalg.eigh(truth)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
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
        Scores are the instabilities. The largest penalty is chosen where none is stable.

    Notes
    -----
    Only graphs with at most half of all pairs are looked at, on average over the draws: those with
    nearly all are stable again. StARS lets the instability rise only; here it may fall, since
    edges of one strength, as those of a chain, all enter at one penalty, where each of them is a
    toss-up, and are all stable a little below it.
    """
    found = bootstrap(evidence, truth, path, grid, draws)
    p = len(truth)
    sparse = found.frequencies.sum(axis=(1, 2)) <= _MOST * p * (p - 1)
    stable = np.flatnonzero(sparse & (found.instability <= threshold))
    at = int(stable[-1]) if stable.size else 0
    whole = sizes(path(evidence, grid))
    return Choice(float(grid[at]), grid, found.instability, whole, found.frequencies[at])
