"""Rules for penalty selection, by the names that requests use."""

from __future__ import annotations

from typing import Literal

from gramercy.estimators.tuning.cross_validation import Scored, cross_validation
from gramercy.estimators.tuning.information import ebic
from gramercy.estimators.tuning.penalty_rule import Array, Choice, Path
from gramercy.estimators.tuning.stability import stars
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
