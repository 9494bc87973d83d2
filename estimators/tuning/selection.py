"""Rules for penalty selection, by the names that requests use; and how often edges recur."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.estimator import Estimator
from gramercy.estimators.tuning.cross_validation import Scored, cross_validation
from gramercy.estimators.tuning.information import ebic
from gramercy.estimators.tuning.parallel import parallel_map
from gramercy.estimators.tuning.penalty_rule import Array, Choice, Path, derived_evidence
from gramercy.estimators.tuning.stability import DRAWS, redraws, stars
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence

Rule = Literal["ebic", "cross-validation", "stability"]


def choose_penalty(
    rule: Rule, evidence: Evidence, path: Path, grid: Array, scored: Scored = "estimate"
) -> Choice:
    """The penalty that a rule chooses from a grid.

    Raises
    ------
    RequestError
        If no penalty of the grid has an estimate, or the rule needs folds that are missing.
    """
    if rule == "ebic":
        return ebic(evidence, path, grid)
    if rule == "stability":
        return stars(evidence, evidence.repaired, path, grid)
    return cross_validation(evidence, path, grid, scored=scored)


def edge_frequencies(
    evidence: Evidence, estimator: Estimator, tuning: Mapping[str, float], draws: int = DRAWS
) -> Array:
    """Share of draws in which every pair is an edge; shape (p, p).

    Parameters
    ----------
    evidence
        Evidence of the release; its denoised matrix is used as the truth.
    estimator
        Estimator of a graph. If a rule chose its penalty, that penalty is kept.
    tuning
        Tuning parameters of the estimate.
    draws
        Number of draws. A draw without an estimate counts as an empty graph.

    Notes
    -----
    A parametric bootstrap: see `estimators.tuning.stability.redraws`.
    """
    if getattr(estimator, "penalty", None) in get_args(Rule):
        estimator = estimator.model_copy(update={"penalty": tuning["penalty"]})
    raw = islice(redraws(evidence, evidence.repaired), draws)
    edges = parallel_map(partial(_edges, evidence, estimator), raw)
    frequencies: Array = np.mean(edges, axis=0, dtype=np.float64)
    return frequencies


def _edges(evidence: Evidence, estimator: Estimator, raw: Array) -> NDArray[np.bool_]:
    drawn = derived_evidence(evidence, raw, evidence.law, evidence.rows)
    try:
        edges = estimator.fit(drawn).edges
    except RequestError:
        edges = None
    return np.zeros(raw.shape, dtype=bool) if edges is None else edges != 0
