"""Tasks at an exact (epsilon, delta): precision matrices by the paper and by Gramercy."""

from __future__ import annotations

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.graphs.methods import REFERENCE
from benchmarks.graphs.truths import truth
from benchmarks.papers.experiment import Experiment
from benchmarks.papers.scores import relative
from benchmarks.papers.sound import experiment as sound
from benchmarks.papers.task import Sample, Task, Variant
from benchmarks.papers.whx.noise import PENALTY
from benchmarks.papers.whx.published import TABLES, rows_of
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.solvers.glasso import graphical_lasso
from gramercy.schemas.evidence import Evidence

P, N = 20, 20_000
AS_PRINTED = GraphicalLasso(input="raw", penalize_diagonal=True)
AT_PENALTY = GraphicalLasso(penalty=PENALTY, penalize_diagonal=True)
_PENALTIES, _LEAST = 40, 1e-5  # the least penalty suffices for a matrix without noise


def drawn(rng: Rng) -> Sample:
    """Draw rows from a random graph with three edges per column, and its precision matrix."""
    model = truth("random", P, rng)
    return Sample(model.rows(N, rng), np.linalg.inv(model.moment))


def theirs(evidence: Evidence, sample: Sample) -> float:
    """Error of the paper's graphical lasso of the raw matrix, at the best feasible penalty.

    This requires the truth: an advantage that no user could have.
    """
    most = 2 * float(np.abs(evidence.raw).max())
    grid = np.geomspace(most, most * _LEAST, _PENALTIES)
    result = AS_PRINTED.path(evidence, grid)
    return min(relative(T, sample.truth) for T in result if T is not None)


def ours(evidence: Evidence, sample: Sample) -> float:
    """Error of Gramercy's: graph and penalty chosen on the release, then refitted unpenalised."""
    return relative(REFERENCE.fit(evidence).matrix, sample.truth)


def automatic(evidence: Evidence, sample: Sample) -> float:
    return relative(GraphicalLasso().fit(evidence).matrix, sample.truth)


def at_penalty(evidence: Evidence, sample: Sample) -> float:
    """Error of the graphical lasso of the denoised matrix, at the public penalty of the truth.

    Rounded to four digits: without noise the estimate is the truth, except for the floor on the
    diagonal.
    """
    return round(relative(AT_PENALTY.fit(evidence).matrix, sample.truth), 4)


def by_length(sample: Sample) -> float:
    """Error of the estimate p I, which assumes unit rows with uniform directions."""
    p = sample.rows.shape[1]
    return relative(p * np.eye(p), sample.truth)


def by_length_at_penalty(sample: Sample) -> float:
    """Error of that estimate when solved at the penalty of the truth."""
    p = sample.rows.shape[1]
    return relative(np.eye(p) / (1 / p + PENALTY), sample.truth)


def solved(rows: Array) -> Sample:
    """Build the sample of a real table; the truth is the non-private estimate."""
    moment = rows.T @ rows / len(rows)
    return Sample(rows, graphical_lasso(moment, PENALTY, penalize_diagonal=True).precision)


def synthetic() -> Experiment:
    """Build the synthetic experiment, with enough rows for useful results."""
    return sound(
        Task(
            title=f"precision matrix of a random graph, {N:,} rows",
            score="relative Frobenius error (the paper's: with its best penalty)",
            how="the graphical lasso of the denoised matrix, `penalty: ebic, refit: true`",
            variants=(Variant("ours, `penalty: auto`", automatic),),
            sample=drawn,
            paper=theirs,
            default=ours,
            nothing=by_length,
        )
    )


def real(column: str) -> Experiment:
    """Build the experiment of a real table with the paper's error, at a public penalty."""
    return sound(
        Task(
            title=f"{column}, the estimate without privacy at the penalty {PENALTY:g}",
            score="relative Frobenius error (the paper's: with its best penalty)",
            how=f"the graphical lasso of the denoised matrix at the truth's penalty, {PENALTY:g}",
            sample=lambda rng: solved(rows_of(column, rng)),
            paper=theirs,
            default=at_penalty,
            nothing=by_length_at_penalty,
            repetitions=10,
            table=TABLES[column],
        )
    )
