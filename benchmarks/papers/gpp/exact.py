"""The paper's tasks at an exact guarantee, from noisy rows and from one noisy matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.graphs.releases import noisy_rows
from benchmarks.papers import data, scores, sound
from benchmarks.papers.experiment import Experiment, Measured, Verdict
from benchmarks.papers.gpp import synthetic
from benchmarks.papers.gpp.protocol import lasso, penalty
from benchmarks.papers.gpp.real import TABLES
from benchmarks.papers.task import Sample, Task, Variant
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.ridge import Ridge
from gramercy.schemas.evidence import Evidence

ROWS = 5000  # rows of the synthetic tables
ZEROS = 95  # percent of zeros in random graphs
_SCORE = "area under the curve of the graph's pairs"


def debiased(evidence: Evidence, sample: Sample) -> float:
    """Score of the paper's method: graphical lasso of the raw matrix, with its penalty.

    The mean square of a cell of unit rows is 1 / p, which is public. If no penalty has a solution,
    the raw entries rank the pairs.
    """
    n, p = sample.rows.shape
    result = lasso(evidence.raw, penalty(n, p) / p)
    return scores.auc(ranked(result.weights, evidence.raw), sample.truth)


def default(evidence: Evidence, sample: Sample) -> float:
    """Score of Gramercy's default: pairs ranked by partial correlations of the ridge."""
    return scores.auc(scores.partial_correlations(Ridge().fit(evidence).matrix), sample.truth)


def by_lasso(evidence: Evidence, sample: Sample) -> float:
    """Score of Gramercy's graphical lasso with default settings."""
    edges = GraphicalLasso().fit(evidence).edges
    assert edges is not None
    return scores.auc(ranked(edges, evidence.repaired), sample.truth)


def ranked(weights: Array, matrix: Array) -> Array:
    """Rank pairs by weight; pairs without an edge come after them, ranked by matrix entry."""
    size = np.abs(weights)
    np.fill_diagonal(size, 0.0)
    entries = np.abs(matrix)
    np.fill_diagonal(entries, 0.0)
    least = size[size > 0].min(initial=1.0)
    after = entries / max(entries.max(), np.finfo(float).tiny) * least / 2
    result: Array = np.where(size > 0, size, after)
    return result


def _drawn(precision: Array, rng: Rng) -> Sample:
    root = np.linalg.cholesky(np.linalg.inv(precision))
    rows = rng.standard_normal((ROWS, len(precision))) @ root.T
    return Sample(data.unit(rows), synthetic.graph(precision))


def chain(rng: Rng) -> Sample:
    return _drawn(synthetic.chain(synthetic.COLUMNS), rng)


def random(rng: Rng) -> Sample:
    return _drawn(synthetic.random(synthetic.MANY, ZEROS / 100, rng), rng)


def table(_: Rng, *, key: str) -> Sample:
    return _read(key)


@lru_cache(maxsize=2)
def _read(key: str) -> Sample:
    of = TABLES[key]
    rows = data.unit_rows(of.name)
    n, p = rows.shape
    truth = data.truth(of.name) if of.truth else lasso(rows.T @ rows / n, penalty(n, p) / p).edges
    return Sample(rows, truth)


def _task(title: str, sample: Callable[[Rng], Sample], table: str | None = None) -> Task:
    return Task(
        title=title,
        score=_SCORE,
        how=(
            "one noisy matrix, which protects a row from readers of the release, not from the "
            "curator, as the paper's noisy rows do; pairs ranked by partial "
            "correlation, of the ridge, `penalty: auto`"
        ),
        variants=(Variant("ours, graphical lasso, `penalty: auto`", by_lasso),),
        sample=sample,
        paper=debiased,
        default=default,
        nothing=lambda _: 0.5,
        larger=True,
        release=noisy_rows,
        covariance=False,
        moment=True,
        table=table,
    )


def _experiment(task: Task) -> Experiment:
    return replace(sound.experiment(task), verdicts=partial(_verdicts, task=task))


def _verdicts(measured: Measured, *, task: Task) -> Iterator[Verdict]:
    lines = list(sound.lines_of(measured, task))
    yield Verdict(
        f"{task.title}: at an exact guarantee one noisy matrix ranks the edges better than noisy "
        "rows, at every epsilon",
        all(line.default.mean > line.paper.mean for line in lines),
        "; ".join(
            f"{line.default.mean:.3f} against {line.paper.mean:.3f} at {line.epsilon:g}"
            for line in lines
        ),
    )
    yield Verdict(
        f"{task.title}: exactly calibrated, noisy rows are not useful, at every epsilon "
        f"(at most {sound.USEFUL:.0%} of the largest gain, and two standard errors)",
        all(line.share(line.paper) - 2 * _error(line) <= sound.USEFUL for line in lines),
        ", ".join(f"{line.share(line.paper):+.0%} at {line.epsilon:g}" for line in lines)
        + " of the largest gain",
    )


def _error(line: sound.Line) -> float:
    """Standard error of the paper's share of the gain; zero with a single repetition."""
    return float(np.nan_to_num(line.paper.error)) / (line.best - line.nothing.mean)


EXPERIMENTS: dict[str, Experiment] = {
    "sound-chain": _experiment(_task(f"AR(1), {synthetic.COLUMNS} columns, {ROWS:,} rows", chain)),
    "sound-random": _experiment(
        _task(f"Random graphs, {synthetic.MANY} columns, {ZEROS} % zeros, {ROWS:,} rows", random)
    ),
    **{
        f"sound-{key}": _experiment(_task(of.title, partial(table, key=key), of.name))
        for key, of in TABLES.items()
    },
}
