"""Cross-validation over the published folds of a release: unbiased, and without private data.

The matrix of each fold is from its own rows, with independent noise. So the loss on it of an
estimate from the other folds is unbiased at every penalty. The price is noise: K folds together
have K times the noise variance of one release.
"""

from __future__ import annotations

import math
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
    losses_on = partial(_losses, evidence, path, grid, scored)
    losses = np.array(parallel_map(losses_on, range(len(evidence.folds))))
    weights = np.array([fold.rows for fold in evidence.folds])
    scores = weights @ losses / weights.sum()
    return best_choice(grid, scores, path(evidence, grid))


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


def check_folds(folds: int) -> None:
    """Raise RequestError if there are fewer than two folds."""
    if folds < 2:
        raise families.ESTIMATE(
            "Cross-validation needs a release with at least two folds.",
            "Write 'folds' in the request of the release, or choose another 'penalty'.",
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
