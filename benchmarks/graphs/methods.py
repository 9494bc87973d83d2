"""The compared methods: Gramercy's with default tuning, the papers' with the best tuning.

The papers tune on the private rows, which no guarantee covers. Here their methods get the penalty
that is best for each measure. That requires the truth, an advantage that no user could have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.graphs import releases, scores
from benchmarks.graphs.scores import Scores, Target
from gramercy.estimators.clime import Clime
from gramercy.estimators.estimator import Estimate
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.neighbourhood import NeighbourhoodSelection
from gramercy.estimators.ridge import Ridge
from gramercy.estimators.scio import Scio
from gramercy.estimators.threshold import ThresholdedCovariance
from gramercy.estimators.tuning.penalty_rule import edge_mask, grid_around, penalty_grid
from gramercy.schemas.evidence import Evidence


@dataclass(frozen=True)
class Method:
    """A method and its description on the page."""

    title: str
    note: str
    ours: bool = True


METHODS = {
    "lasso-auto": Method("graphical lasso, auto", "`penalty: auto`."),
    "lasso-ebic": Method("graphical lasso, ebic", "`penalty: ebic`."),
    "lasso-ebic-refit": Method(
        "graphical lasso, ebic, refit", "`penalty: ebic, refit: true`, the method that is compared."
    ),
    "lasso-stability": Method("graphical lasso, stability", "`penalty: stability`."),
    "lasso-cv": Method(
        "graphical lasso, cross-validation",
        f"`penalty: cross-validation`, from a release in {releases.FOLDS} folds.",
    ),
    "lasso-cv-refit": Method(
        "graphical lasso, cross-validation, refit",
        "The same with `refit: true`, which scores graphs.",
    ),
    "lasso-first-drop": Method(
        "graphical lasso, first drop", "`penalty: first-drop`, from the same folds."
    ),
    "lasso-oracle": Method(
        "graphical lasso, best penalty",
        "The best penalty for each measure, which requires the truth.",
    ),
    "ridge-auto": Method("ridge, auto", "`penalty: auto`."),
    "ridge-cv": Method("ridge, cross-validation", "It uses the release in folds."),
    "ridge-oracle": Method("ridge, best penalty", "As above."),
    "threshold": Method(
        "thresholding, auto", "It estimates the covariance, whose graph is a different one."
    ),
    "threshold-adaptive": Method(
        "thresholding, adaptive", "`threshold: adaptive`, from the release in folds."
    ),
    "threshold-cv": Method(
        "thresholding, adaptive, cross-validation",
        "The same with `constant: cross-validation`.",
    ),
    "threshold-wx-cv": Method(
        "thresholding, wx, cross-validation",
        "WX's threshold with gamma by cross-validation over the folds.",
    ),
    "neighbourhood": Method("neighbourhood selection, auto", "Graph alone."),
    "scio": Method("SCIO, auto", ""),
    "clime": Method("CLIME, auto", ""),
    "sgz-ridge": Method(
        "SGZ ridge, best penalty", "Independent noise of one scale, raw matrix.", ours=False
    ),
    "sgz-lasso": Method(
        "SGZ graphical lasso, best penalty",
        "The same; the diagonal is penalized, as in the paper. Penalties without a minimizer are "
        "not candidates.",
        ours=False,
    ),
    "wx": Method(
        "WX thresholding",
        "The paper's threshold, with gamma as in `estimators.threshold`.",
        ours=False,
    ),
    "lw": Method("LW thresholding", "Theirs, theta likewise.", ours=False),
    "gpp": Method(
        "GPP, best penalty",
        "Noise on every row, 2 / sigma-GDP; the variance subtracted; the graphical lasso as for "
        "SGZ. It publishes rows, which requires far more noise than one matrix.",
        ours=False,
    ),
    "exact": Method("no privacy: graphical lasso, ebic, refit", "From the exact matrix."),
}
HEADLINE = "lasso-ebic-refit"
REFERENCE = GraphicalLasso(penalty="ebic", refit=True)


def measured(rows: Array, target: Target, epsilon: float, rng: Rng) -> Iterator[tuple[str, Scores]]:
    """Apply every method once, and yield the scores of its estimate."""
    whole = releases.isotropic(rows, epsilon, rng)
    folds = releases.folded(rows, epsilon, rng)
    independent = releases.independent(rows, epsilon, rng)
    yield from _lassos(whole, folds, target)
    yield from _ridges(whole, folds, target)
    for name, estimator in (
        ("threshold", ThresholdedCovariance()),
        ("neighbourhood", NeighbourhoodSelection()),
        ("scio", Scio()),
        ("clime", Clime()),
    ):
        yield name, _scores_of(estimator.fit(whole), target)
    for name, keys in (
        ("threshold-adaptive", {"threshold": "adaptive"}),
        ("threshold-cv", {"threshold": "adaptive", "constant": "cross-validation"}),
        ("threshold-wx-cv", {"threshold": "wx", "constant": "cross-validation"}),
    ):
        yield name, _scores_of(ThresholdedCovariance.model_validate(keys).fit(folds), target)
    as_printed = GraphicalLasso(input="raw", penalize_diagonal=True)
    yield "sgz-ridge", _best_ridge(Ridge(input="raw"), independent, target)
    yield "sgz-lasso", _best_lasso(as_printed, independent, target)
    ranked = scores.auc(np.abs(independent.raw), target.edges)
    for paper in ("wx", "lw"):
        result = ThresholdedCovariance.model_validate({"threshold": paper, "keep_diagonal": False})
        yield paper, _scores_of(result.fit(independent), target, ranked)
    noisy = releases.noisy_rows(rows, epsilon, rng)
    yield "gpp", _best_lasso(as_printed, noisy, target)
    yield "exact", _scores_of(REFERENCE.fit(releases.exact(rows)), target)


def _lassos(whole: Evidence, folds: Evidence, target: Target) -> Iterator[tuple[str, Scores]]:
    plain = GraphicalLasso()
    by_folds = [_ranked(plain, each, target) for each in (whole, folds)]
    asked: dict[str, tuple[Evidence, dict[str, object]]] = {
        "lasso-auto": (whole, {}),
        "lasso-ebic": (whole, {"penalty": "ebic"}),
        "lasso-ebic-refit": (whole, {"penalty": "ebic", "refit": True}),
        "lasso-stability": (whole, {"penalty": "stability"}),
        "lasso-cv": (folds, {"penalty": "cross-validation"}),
        "lasso-cv-refit": (folds, {"penalty": "cross-validation", "refit": True}),
        "lasso-first-drop": (folds, {"penalty": "first-drop"}),
    }
    for name, (evidence, keys) in asked.items():
        estimate = GraphicalLasso.model_validate(keys).fit(evidence)
        yield name, _scores_of(estimate, target, by_folds[evidence is folds])
    yield "lasso-oracle", _best_lasso(plain, whole, target)


def _ridges(whole: Evidence, folds: Evidence, target: Target) -> Iterator[tuple[str, Scores]]:
    yield "ridge-auto", _dense(_scores_of(Ridge().fit(whole), target))
    yield "ridge-cv", _dense(_scores_of(Ridge(penalty="cross-validation").fit(folds), target))
    yield "ridge-oracle", _best_ridge(Ridge(), whole, target)


def _scores_of(estimate: Estimate, target: Target, ranked: float | None = None) -> Scores:
    edges = estimate.edges if estimate.edges is not None else np.zeros_like(target.moment)
    ranked = scores.auc(np.abs(edges), target.edges) if ranked is None else ranked
    result = scores.f1(edges != 0, target)
    if estimate.kind == "covariance":
        return Scores(ranked, result, None, scores.covariance(estimate.matrix, target))
    if estimate.kind == "graph":
        return Scores(ranked, result)
    T = estimate.matrix
    return Scores(
        ranked, result, scores.stein(T, target), scores.covariance(np.linalg.inv(T), target)
    )


def _dense(result: Scores) -> Scores:
    """Scores of a dense estimate, without F1, because all pairs are edges."""
    return Scores(result.auc, None, result.stein, result.covariance)


def _ranked(estimator: GraphicalLasso, evidence: Evidence, target: Target) -> float | None:
    path = estimator.path(evidence, penalty_grid(estimator.matrix(evidence)))
    return scores.auc(_entries(path, target), target.edges)


def _best_lasso(estimator: GraphicalLasso, evidence: Evidence, target: Target) -> Scores:
    path = estimator.path(evidence, _grid(estimator, evidence))
    known = [T for T in path if T is not None]
    return Scores(
        scores.auc(_entries(path, target), target.edges),
        max((scores.f1(edge_mask(T), target) for T in known), default=0.0),
        _smallest_score(scores.stein(T, target) for T in known),
        _smallest_score(scores.covariance(np.linalg.inv(T), target) for T in known),
    )


def _grid(estimator: GraphicalLasso, evidence: Evidence) -> Array:
    """Penalties up to one at which any raw matrix has a minimiser (the diagonal is penalised)."""
    matrix = estimator.matrix(evidence)
    usual = penalty_grid(matrix)
    if estimator.input == "denoised":
        return usual
    return np.geomspace(2 * np.abs(matrix).max(), usual[-1], 30)


def _best_ridge(estimator: Ridge, evidence: Evidence, target: Target) -> Scores:
    usual = estimator.fit(evidence).tuning["penalty"]
    path = [T for T in estimator.path(evidence, grid_around(usual, 30, 1e4)) if T is not None]
    areas = [scores.auc(np.abs(T), target.edges) for T in path]
    return Scores(
        max((area for area in areas if area is not None), default=None),
        None,
        _smallest_score(scores.stein(T, target) for T in path),
        _smallest_score(scores.covariance(np.linalg.inv(T), target) for T in path),
    )


def _entries(path: list[Array | None], target: Target) -> Array:
    result = scores.entry(path)
    return result if result.shape == target.moment.shape else np.zeros_like(target.moment)


def _smallest_score(values: Iterator[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)
