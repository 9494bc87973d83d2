"""Cross-validation over folds that a release has published: honest, and without private data.

Every fold's matrix holds the rows of that fold alone and noise of its own, so the loss on it of an
estimate from the other folds has no bias, whatever the penalty: neither rows nor noise are shared.
It is paid for in noise: K folds together hold K times the variance of one release.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.repaired import floored
from gramercy.estimators.tuning.information import refit_or_none
from gramercy.estimators.tuning.parallel import side_by_side
from gramercy.estimators.tuning.penalty_rule import Choice, Path, best, graph, loss, made
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
Scored = Literal["estimate", "graph"]
_MOST = 0.5  # of all pairs, where graphs are scored


def cross_validation(
    evidence: Evidence,
    path: Path,
    grid: Array,
    *,
    scored: Scored = "estimate",
    one_standard_error: bool = False,
) -> Choice:
    """The penalty with the least loss -log det T + tr(S_f T) on held-out folds.

    Parameters
    ----------
    evidence
        With folds.
    path
        Of an estimator.
    grid
        Penalties, falling.
    scored
        ``estimate``: the penalised estimate itself, which predicts best with many weak edges;
        ``graph``: the estimate refitted without a penalty on its own edges, for choosing a graph.
    one_standard_error
        The largest penalty whose loss is within one standard error of the least: of the difference
        of the two over the folds, since the noise on a fold is common to all penalties.

    Returns
    -------
    Choice
        Scores are means over the folds, weighted by their rows.

    Raises
    ------
    RequestError
        If the release has fewer than two folds.
    """
    check_folds(len(evidence.folds))
    turn = partial(_losses, evidence, path, grid, scored)
    losses = np.array(side_by_side(turn, range(len(evidence.folds))))
    weights = np.array([fold.rows for fold in evidence.folds])
    scores = weights @ losses / weights.sum()
    choice = best(grid, scores, path(evidence, grid))
    if not one_standard_error:
        return choice
    excess = losses - losses[:, [int(np.argmin(scores))]]
    with np.errstate(invalid="ignore"):  # infinite ones do not count
        spread = excess.std(axis=0, ddof=1) / math.sqrt(len(losses))
        close = np.flatnonzero(weights @ excess / weights.sum() <= spread)
    within = Choice(float(grid[close[0]]), grid, scores, choice.edges)
    return within


def _losses(evidence: Evidence, path: Path, grid: Array, scored: Scored, out: int) -> Array:
    """On one fold, of what the others give; infinite where that is nothing; shape (m,)."""
    held, others = evidence.folds[out], training(evidence, out)
    losses = np.full(len(grid), np.inf)
    for at, T in enumerate(path(others, grid)):
        judged = None if T is None else _judged(T, others, scored)
        if judged is not None:
            losses[at] = loss(held.moment, judged)
    return losses


def check_folds(folds: int) -> None:
    """Raises RequestError where there are fewer than two."""
    if folds < 2:
        raise RequestError(
            "A release without folds has nothing for cross-validation.",
            "Ask for 'folds' in the request of a release, or choose another 'penalty'.",
        )


def training(evidence: Evidence, out: int) -> Evidence:
    """All folds but one, together, repaired for the noise law of their sum."""
    rest = [fold for k, fold in enumerate(evidence.folds) if k != out]
    rows = sum(fold.rows for fold in rest)
    raw: Array = sum((fold.rows * fold.moment for fold in rest), np.zeros_like(evidence.raw)) / rows
    return made(evidence, raw, _law(evidence, len(rest), rows), rows)


def _law(evidence: Evidence, kept: int, rows: float) -> NoiseLaw:
    """Of the second moment of some folds, from that of all: each sum has noise of one law."""
    law, share = evidence.law, kept / len(evidence.folds)
    if law.cell_variance is not None:  # noise on rows: as many fewer rows
        return law.divided_by(math.sqrt(rows / evidence.rows))
    scaled = law.divided_by(rows / evidence.rows / math.sqrt(share))
    return scaled if law.dof is None else scaled.model_copy(update={"dof": law.dof * share})


def _judged(T: Array, others: Evidence, scored: Scored) -> Array | None:
    if scored == "estimate":
        return T
    edges, p = graph(T), len(T)
    if edges.sum() > _MOST * p * (p - 1):
        return None
    return refit_or_none(floored(others), edges)
