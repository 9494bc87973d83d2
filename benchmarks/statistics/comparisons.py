"""The methods side by side, for every table and epsilon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.cells import Cell
from benchmarks.statistics.cells import EPSILONS, Result
from benchmarks.statistics.methods import EXPERT, ONE_STAGE
from benchmarks.statistics.tables import TABLES


@dataclass(frozen=True)
class Comparison:
    """Root mean square errors of correlations of one table at one epsilon.

    Parameters
    ----------
    table, epsilon, n, p
        The cell.
    private, one_stage, bounds
        None if the method has no result.
    expert, best, best_form
        Hand-tuned constants: one choice, and the best of all with its name.
    """

    table: str
    epsilon: float
    n: int
    p: int
    private: float | None
    one_stage: float | None
    bounds: float | None
    expert: float
    best: float
    best_form: str

    @property
    def to_best(self) -> float:
        return float("nan") if self.private is None else self.private / self.best

    @property
    def to_expert(self) -> float:
        return float("nan") if self.private is None else self.private / self.expert

    @property
    def whitening(self) -> float | None:
        """How many times larger the error of one stage is."""
        if self.private is None or self.one_stage is None:
            return None
        return self.one_stage / self.private

    @property
    def gain(self) -> float | None:
        """How many times larger the error of bounds and unit rows is."""
        if self.private is None or self.bounds is None:
            return None
        return self.bounds / self.private


def comparisons(results: Mapping[Cell, Result]) -> list[Comparison]:
    """Return the tables and epsilons that have been measured."""
    found = []
    for name, epsilon in product(TABLES, EPSILONS):
        known = results.get(Cell(name, epsilon, "known"))
        if known is None:
            continue
        best = min(known.errors, key=known.errors.__getitem__)
        private, one_stage, bounds = (
            result.errors.get(form)
            if (result := results.get(Cell(name, epsilon, method)))
            else None
            for method, form in (("private", ""), ("private", ONE_STAGE), ("bounds", ""))
        )
        errors = known.errors[EXPERT], known.errors[best]
        own = private, one_stage, bounds
        found.append(Comparison(name, epsilon, known.n, known.p, *own, *errors, best))
    return found


def geometric_mean(ratios: Iterable[float]) -> float:
    """The geometric mean; NaN of nothing."""
    values = np.array(list(ratios))
    return float(np.exp(np.mean(np.log(values)))) if values.size else float("nan")
