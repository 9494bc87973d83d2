"""Means over the measured cells, and comparisons between methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.graphs.cells import Cell, Result
from benchmarks.graphs.methods import HEADLINE, METHODS

Results = dict[Cell, Result]
Measure = Literal["f1", "auc", "stein", "covariance", "false"]
MEASURES: dict[Measure, str] = {
    "f1": "F1 of the edges",
    "auc": "area under the curve of the edges",
    "stein": "Stein loss of the precision matrix",
    "covariance": "relative Frobenius error of the covariance",
}
LARGER: frozenset[Measure] = frozenset({"f1", "auc"})  # larger is better
# Gramercy's methods that are compared with the papers', by measure.
OURS: dict[Measure, tuple[str, ...]] = {
    "f1": (HEADLINE, "lasso-auto", "lasso-oracle"),
    "auc": ("lasso-oracle", "ridge-auto"),
    "stein": (HEADLINE, "ridge-auto", "lasso-oracle"),
    "covariance": (HEADLINE, "ridge-auto", "lasso-oracle"),
}


@dataclass(frozen=True)
class Mean:
    """Mean over cells, with its standard error."""

    mean: float
    error: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean | None:
        result = list(values)
        if not result:
            return None
        error = float(np.std(result, ddof=1)) / math.sqrt(len(result)) if len(result) > 1 else 0.0
        return cls(float(np.mean(result)), error, len(result))

    def __str__(self) -> str:
        size = abs(self.mean)
        return f"{self.mean:.2f}" if size == 0 or 0.095 <= size < 99.5 else f"{self.mean:.2g}"


def values(
    results: Results, method: str, measure: Measure, where: Callable[[Cell], bool]
) -> dict[Cell, float]:
    """Return the measured values of one method and measure, by cell."""
    found = {}
    for cell, result in results.items():
        scores = result.methods.get(method)
        value = getattr(scores, measure) if scores and where(cell) else None
        if value is not None:
            found[cell] = value
    return found


def mean(
    results: Results, method: str, measure: Measure, where: Callable[[Cell], bool]
) -> Mean | None:
    return Mean.of(values(results, method, measure, where).values())


@dataclass(frozen=True)
class Comparison:
    """Gramercy's method and another one on the synthetic cells, for one measure.

    Parameters
    ----------
    better, tie, worse
        Number of cells where Gramercy's method is better, equal or worse.
    median
        Median of the ratio theirs / ours; of the difference ours - theirs if larger is better.
    lost
        The cell where Gramercy's method is worse by most.
    """

    method: str
    better: int
    tie: int
    worse: int
    median: float
    lost: Cell | None


def comparison(results: Results, measure: Measure, own: str, method: str) -> Comparison | None:
    """Compare two methods; a cell is the mean over repetitions of one table, size and epsilon."""
    ours = _grouped(values(results, own, measure, lambda cell: cell.synthetic))
    theirs = _grouped(values(results, method, measure, lambda cell: cell.synthetic))
    both = [cell for cell in ours if cell in theirs]
    if not both:
        return None
    gains = {
        cell: (ours[cell] - theirs[cell])
        if measure in LARGER
        else math.log(theirs[cell] / ours[cell])
        for cell in both
    }
    slack = 0.01  # smaller differences of F1, or of a ratio, count as a tie
    better = sum(gain > slack for gain in gains.values())
    worse = sum(gain < -slack for gain in gains.values())
    middle = float(np.median(list(gains.values())))
    lost = min(gains, key=lambda cell: gains[cell])
    return Comparison(
        method,
        better,
        len(both) - better - worse,
        worse,
        middle if measure in LARGER else math.exp(middle),
        lost if gains[lost] < -slack else None,
    )


def rivals() -> list[str]:
    return [name for name, method in METHODS.items() if not method.ours]


def _grouped(result: dict[Cell, float]) -> dict[Cell, float]:
    groups: dict[Cell, list[float]] = {}
    for cell, value in result.items():
        key = Cell(cell.source, cell.p, cell.n, cell.epsilon, 0)
        groups.setdefault(key, []).append(value)
    return {key: float(np.mean(each)) for key, each in groups.items()}
