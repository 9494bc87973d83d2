"""Cross-validation over the published folds of a release: unbiased, and without private data.

The matrix of each fold is from its own rows, with independent noise. So the loss on it of an
estimate from the other folds is unbiased at every penalty. The price is noise: K folds together
have K times the noise variance of one release.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.input_matrix import with_diagonal_floor
from gramercy.estimators.tuning.information import refit_or_none
from gramercy.estimators.tuning.parallel import parallel_map
from gramercy.estimators.tuning.penalty_rule import (
    Choice,
    Path,
    best_choice,
    derived_evidence,
    edge_mask,
    loss,
)
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
Scored = Literal["estimate", "graph"]
_DRAMATIC = 0.75  # of the largest drop
_MAX_DENSITY = 0.5  # largest share of pairs that are edges, where graphs are scored


def cross_validation(
    evidence: Evidence, path: Path, grid: Array, *, scored: Scored = "estimate"
) -> Choice:
    """The penalty with the smallest loss -log det T + tr(S_f T) on held-out folds.

    `scored`: ``estimate``: score the penalised estimate, which predicts best with many weak edges;
    ``graph``: score the estimate refitted without a penalty on its edges, to choose a graph.
    Scores are means over the folds, weighted by their rows. Raises RequestError if the release has
    fewer than two folds.
    """
    check_folds(len(evidence.folds))
    scores = _mean_on_folds(evidence, partial(_losses, evidence, path, grid, scored))
    return best_choice(grid, scores, path(evidence, grid))


def first_drop(evidence: Evidence, path: Path, grid: Array) -> Choice:
    """The first penalty at which the error of the covariance on held-out folds drops sharply.

    "Graph structure learning with privacy guarantees for open graph data" (2025), sections 5.1 and
    8.2, takes "the first to cause a dramatic MSE drop" of the predicted covariance, here the
    inverse of T, from that of the held-out rows. It does not say from which end of the path, nor
    how large a drop is dramatic. Here penalties decrease, from the empty graph, and a drop from one
    penalty to the next is dramatic if it is at least three quarters of the largest one. In the
    other direction the F1 of the edges was 0.21 instead of 0.68 (45 simulated releases in five
    folds; 0.73 at the best penalty).

    The noise of the held-out folds adds the same number to all errors. Scores are the errors; if
    none is smaller than the one before, the largest penalty is chosen. Raises RequestError if the
    release has fewer than two folds.
    """
    check_folds(len(evidence.folds), rule="first-drop")
    scores = _mean_on_folds(evidence, partial(_squared_errors, evidence, path, grid))
    choice = best_choice(grid, scores, path(evidence, grid))
    known = np.where(np.isfinite(scores), scores, scores[np.isfinite(scores)][-1])
    drops = -np.diff(known, prepend=known[0])
    dramatic = (drops > 0) & (drops >= _DRAMATIC * drops.max())
    return replace(choice, penalty=float(grid[dramatic.argmax()]))


def _mean_on_folds(evidence: Evidence, of_fold: Callable[[int], Array]) -> Array:
    losses = np.array(parallel_map(of_fold, range(len(evidence.folds))))
    weights = np.array([fold.rows for fold in evidence.folds])
    return np.asarray(weights @ losses / weights.sum(), dtype=np.float64)


def _squared_errors(evidence: Evidence, path: Path, grid: Array, out: int) -> Array:
    """Mean squared errors of the inverses on one fold; infinite without an estimate; shape (m,)."""
    held_out = evidence.folds[out].moment
    estimates = path(training_evidence(evidence, out), grid)
    return np.array(
        [
            np.inf if T is None else float(((np.linalg.inv(T) - held_out) ** 2).mean())
            for T in estimates
        ]
    )


def _losses(evidence: Evidence, path: Path, grid: Array, scored: Scored, out: int) -> Array:
    """Losses on one fold of estimates from the others; infinite without an estimate; shape (m,)."""
    held_out, others = evidence.folds[out], training_evidence(evidence, out)
    losses = np.full(len(grid), np.inf)
    for k, T in enumerate(path(others, grid)):
        precision = T
        if T is not None and scored == "graph":
            edges, p = edge_mask(T), len(T)
            dense = edges.sum() > _MAX_DENSITY * p * (p - 1)
            precision = None if dense else refit_or_none(with_diagonal_floor(others), edges)
        if precision is not None:
            losses[k] = loss(held_out.moment, precision)
    return losses


def check_folds(folds: int, setting: str = "penalty", rule: str = "cross-validation") -> None:
    """Raise RequestError if there are fewer than the two folds that a rule of a setting needs."""
    if folds < 2:
        raise families.ESTIMATE(
            "'{setting}: {rule}' needs a release with at least two folds.",
            "Write 'folds' in the request of the release, or choose another '{setting}'.",
            setting=setting,
            rule=rule,
        )


def training_evidence(evidence: Evidence, out: int) -> Evidence:
    """All folds except one, added up and denoised for the noise law of their sum."""
    rest = [fold for k, fold in enumerate(evidence.folds) if k != out]
    rows = sum(fold.rows for fold in rest)
    raw: Array = sum((fold.rows * fold.moment for fold in rest), np.zeros_like(evidence.raw)) / rows
    share, part = len(rest) / len(evidence.folds), rows / evidence.rows

    def of_rest(law: NoiseLaw) -> NoiseLaw:
        if law.cell_variance is not None:  # noise on rows depends on their number only
            return law.divided_by(math.sqrt(part))
        scaled = law.divided_by(part / math.sqrt(share))
        dof = None if law.dof is None else law.dof * share
        return scaled.model_copy(update={"dof": dof})

    terms = tuple(replace(term, law=of_rest(term.law)) for term in evidence.terms)
    return derived_evidence(evidence, raw, of_rest(evidence.law), terms, rows)
