"""Pairs of releases of the same rows with private constants: in one stage, and in two.

In two stages the matrix is drawn in the metric of a pilot matrix, if that pays.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.graphs import scores
from benchmarks.graphs.scores import Edges, Scores, Target
from benchmarks.graphs.truths import correlations
from gramercy.estimators.discoveries import Discoveries
from gramercy.estimators.estimator import Estimator
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.neighbourhood import NeighbourhoodSelection
from gramercy.estimators.ridge import Ridge
from gramercy.estimators.scio import Scio
from gramercy.estimators.threshold import ThresholdedCovariance
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from tests.support.private_release import numeric_columns, privately_scaled

KINDS = {
    "autoregressive": "AR(1) with correlation 0.9",
    "blocks": "blocks of five columns with correlations of 0.64",
    "hub": "the hub graph of the other sections",
    "random": "the random graph of the other sections",
}
COLUMNS, ROWS, _FAR = 20, 20_000, 10.0  # standard deviations between a bound and the mean
STAGES = ("one", "two")
ESTIMATORS: dict[str, tuple[str, Estimator]] = {
    "discoveries": ("discoveries", Discoveries()),
    "lasso-ebic": ("graphical lasso, ebic, refit", GraphicalLasso(penalty="ebic", refit=True)),
    "neighbourhood": ("neighbourhood selection, auto", NeighbourhoodSelection()),
    "scio": ("SCIO, auto", Scio()),
    "ridge": ("ridge, auto", Ridge()),
    "threshold": ("thresholding, auto", ThresholdedCovariance()),
}


def measured(kind: str, n: int, p: int, epsilon: float, rng: Rng) -> Iterator[tuple[str, Scores]]:
    """Yield the scores of every estimator after one and after two stages, by stages and name."""
    truth = correlations(kind, p, rng)
    rows = rng.standard_normal((n, p)) @ np.linalg.cholesky(truth).T
    for stages in STAGES:
        evidence = _released(rows, epsilon, rng, whitened=stages == "two")
        for name, (_, estimator) in ESTIMATORS.items():
            yield f"{stages}-{name}", _scores(estimator, evidence, truth)


def _released(rows: Array, epsilon: float, rng: Rng, *, whitened: bool) -> Evidence:
    bounds = numeric_columns([(-_FAR, _FAR)] * rows.shape[1])
    scaled = privately_scaled(rows, bounds, epsilon, rng, whitened=whitened)
    if scaled is None:
        raise ValueError(f"private constants need more rows than {len(rows)}")
    return scaled.release(rng)


def _scores(estimator: Estimator, evidence: Evidence, truth: Array) -> Scores:
    estimate = estimator.fit(evidence)
    matrix = truth if estimator.name == "thresholded" else np.linalg.inv(truth)
    edges: Edges = np.abs(matrix) > scores.NO_EDGE
    np.fill_diagonal(edges, False)
    target, loss = Target(truth, edges, True), None
    if estimate.kind == "precision":
        scale = np.array([each.scale for each in evidence.columns if isinstance(each, ColumnFacts)])
        own = estimate.matrix[1:, 1:] / np.outer(scale, scale)
        # Up to its size, which depends on the weights of clipped rows.
        loss = scores.stein(own * (len(own) / np.trace(own @ truth)), target)
    if estimator.name == "ridge" or estimate.edges is None:
        return Scores(stein=loss)
    found = estimate.edges[1:, 1:] != 0
    return Scores(f1=scores.f1(found, target), stein=loss, false=scores.false(found, target))
