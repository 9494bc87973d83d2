"""What the page says of the results: medians over regimes, and the ratios of one run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.solvers.cells import ACCURACY, LIMIT, Cell, Measured, Result, What
from benchmarks.solvers.peers import OURS

Results = dict[Cell, Result]
Where = Callable[[Cell], bool]


@dataclass(frozen=True)
class Ratios:
    """How many times as long as ours a solver took, over the regimes of one size.

    Parameters
    ----------
    median, least
        Where a solver was given up, or not accurate enough, its time counts all the same: they are
        too small rather than too large. Where it failed nothing counts.
    cells
        How many.
    short
        In how many of them it was given up, or not accurate enough.
    failed
        In how many of them it raised an error, or gave a matrix that is not positive definite.
    """

    median: float
    least: float
    cells: int
    short: int
    failed: int


def at(p: int, what: What, *regimes: str) -> Where:
    """Cells of one size; of some regimes, if they are given."""
    return lambda cell: (cell.p, cell.what) == (p, what) and (not regimes or cell.regime in regimes)


def reached(measured: Measured) -> bool:
    """Whether it got to the accuracy asked for."""
    return measured.accuracy <= ACCURACY


def failed(measured: Measured) -> bool:
    """Whether it gave nothing, though there was time."""
    return math.isinf(measured.accuracy) and measured.seconds <= LIMIT


def ratios(results: Results, name: str, where: Where) -> Ratios | None:
    """None where the solver was not measured."""
    pairs = [
        (result.solvers[name], result.solvers[OURS])
        for cell, result in results.items()
        if where(cell) and name in result.solvers
    ]
    counted = [(theirs, ours) for theirs, ours in pairs if not failed(theirs)]
    if not counted:
        return None
    found = [theirs.seconds / ours.seconds for theirs, ours in counted]
    short = sum(not reached(theirs) for theirs, _ in counted)
    return Ratios(
        statistics.median(found), min(found), len(pairs), short, len(pairs) - len(counted)
    )


def seconds(results: Results, name: str, where: Where) -> float | None:
    """Median of those that got there; None if none did."""
    found = [
        result.solvers[name].seconds
        for cell, result in results.items()
        if where(cell) and name in result.solvers and reached(result.solvers[name])
    ]
    return statistics.median(found) if found else None


def floor(results: Results, where: Where) -> float | None:
    """Of one Cholesky factorisation and inverse."""
    found = [result.floor for cell, result in results.items() if where(cell)]
    return statistics.median(found) if found else None


def sizes(results: Results) -> list[int]:
    """Numbers of columns that were measured."""
    return sorted({cell.p for cell in results})


def solvers(results: Results) -> list[str]:
    """Those that were measured, ours first."""
    found: dict[str, None] = {OURS: None}
    found.update(dict.fromkeys(name for result in results.values() for name in result.solvers))
    return list(found)
