"""Figures for the page: medians over regimes, and ratios of times in one run."""

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
    """Time of a solver over the time of Gramercy, over the regimes of one size.

    Parameters
    ----------
    median, least
        Median and smallest ratio. Runs that were stopped or not accurate enough count, so these
        ratios are lower bounds. Failed runs do not count.
    cells
        Number of cells.
    short
        Number of cells where it was stopped, or not accurate enough.
    failed
        Number of cells where it raised an error or returned a matrix that is not definite.
    """

    median: float
    least: float
    cells: int
    short: int
    failed: int


def at(p: int, what: What, *regimes: str) -> Where:
    """Return a condition that selects cells of one size and, if given, of some regimes."""
    return lambda cell: (cell.p, cell.what) == (p, what) and (not regimes or cell.regime in regimes)


def reached(measured: Measured) -> bool:
    """Whether the solver reached the requested accuracy."""
    return measured.accuracy <= ACCURACY


def failed(measured: Measured) -> bool:
    """Whether the solver returned no valid solution although time was left."""
    return math.isinf(measured.accuracy) and measured.seconds <= LIMIT


def ratios(results: Results, name: str, where: Where) -> Ratios | None:
    """Ratios of a solver's times to Gramercy's; None if the solver was not measured."""
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
    """Median time of the accurate runs; None without any."""
    found = [
        result.solvers[name].seconds
        for cell, result in results.items()
        if where(cell) and name in result.solvers and reached(result.solvers[name])
    ]
    return statistics.median(found) if found else None


def floor(results: Results, where: Where) -> float | None:
    """Median time of one Cholesky factorisation and inverse; None without cells."""
    found = [result.floor for cell, result in results.items() if where(cell)]
    return statistics.median(found) if found else None


def sizes(results: Results, what: What) -> list[int]:
    """Return the numbers of columns with which a task was measured."""
    return sorted({cell.p for cell in results if cell.what == what})


def solvers(results: Results) -> list[str]:
    """Return the names of the measured solvers, Gramercy first."""
    found: dict[str, None] = {OURS: None}
    found.update(dict.fromkeys(name for result in results.values() for name in result.solvers))
    return list(found)
