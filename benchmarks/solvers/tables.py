"""What the page says of the results: medians over regimes, and the ratios of one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.solvers.cells import ACCURACY, Cell, Measured, Result, What
from benchmarks.solvers.peers import OURS

Results = dict[Cell, Result]
Where = Callable[[Cell], bool]


@dataclass(frozen=True)
class Ratios:
    """How many times as long as ours a solver took, over the regimes of one size.

    Parameters
    ----------
    median, least
        Where a solver did not get to the accuracy, or was given up, its time until then counts, so
        that both are too small rather than too large.
    cells
        How many.
    short
        How many of them it did not finish at that accuracy.
    """

    median: float
    least: float
    cells: int
    short: int


def at(p: int, what: What, *regimes: str) -> Where:
    """Cells of one size; of some regimes, if they are given."""
    return lambda cell: (cell.p, cell.what) == (p, what) and (not regimes or cell.regime in regimes)


def reached(measured: Measured) -> bool:
    """Whether it got to the accuracy asked for."""
    return measured.accuracy <= ACCURACY


def ratios(results: Results, name: str, where: Where) -> Ratios | None:
    """None where the solver was not measured."""
    pairs = [
        (result.solvers[name], result.solvers[OURS])
        for cell, result in results.items()
        if where(cell) and name in result.solvers
    ]
    found = [theirs.seconds / ours.seconds for theirs, ours in pairs]
    if not found:
        return None
    short = sum(not reached(theirs) for theirs, _ in pairs)
    return Ratios(statistics.median(found), min(found), len(found), short)


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
