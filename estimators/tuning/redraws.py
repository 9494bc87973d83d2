"""Which edges of an estimate come back when the release is drawn again, from public seeds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.estimator import Estimator
from gramercy.estimators.noise.draws import stream
from gramercy.estimators.tuning.choosing import Rule
from gramercy.estimators.tuning.parallel import side_by_side
from gramercy.estimators.tuning.penalty_rule import made
from gramercy.estimators.tuning.stability import DRAWS, redrawn
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]


def comes_back(
    evidence: Evidence, estimator: Estimator, tuning: Mapping[str, float], draws: int = DRAWS
) -> Array:
    """Share of draws in which every pair is an edge; shape (p, p).

    Parameters
    ----------
    evidence
        Of the release; its repaired matrix is taken for the truth.
    estimator
        Of a graph. A penalty that a rule has chosen is kept.
    tuning
        The numbers that were in force.
    draws
        How many. One that allows no estimate has no edges.

    Notes
    -----
    A parametric bootstrap: see `estimators.tuning.stability.redrawn`.
    """
    chosen = getattr(estimator, "penalty", None) in get_args(Rule)
    kept = estimator.model_copy(update={"penalty": tuning["penalty"]}) if chosen else estimator
    source = stream()
    raw = [redrawn(evidence, evidence.repaired, source) for _ in range(draws)]
    found = side_by_side(partial(_edges, evidence, kept), raw)
    shares: Array = np.mean(found, axis=0, dtype=np.float64)
    return shares


def _edges(evidence: Evidence, estimator: Estimator, raw: Array) -> NDArray[np.bool_]:
    again = made(evidence, raw, evidence.law, evidence.rows)
    try:
        edges = estimator.fit(again).edges
    except RequestError:
        edges = None
    return np.zeros(raw.shape, dtype=bool) if edges is None else edges != 0
