"""The cells of the benchmark: samples of a table, an epsilon, and a method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from benchmarks.analyses.methods import METHODS
from benchmarks.analyses.populations import population
from benchmarks.analyses.surveys import SURVEYS, survey
from benchmarks.analyses.transforms import TITLES, amounts
from benchmarks.cells import Cell, usable

QUICK_RELEASES = 2
QUICK = ("three columns", "counts")


@dataclass(frozen=True)
class Result:
    """The scores of each form of a method over `releases` releases."""

    cell: Cell
    n: int
    p: int
    releases: int
    scores: dict[str, dict[str, float]]


def missing(quick: bool, done: dict[Cell, Result]) -> Iterator[tuple[Cell, int]]:
    """Yield the cells that have not been measured, with their numbers of releases.

    Peers whose interpreter is not named are left out, with a message.
    """
    for name, method in usable(METHODS).items():
        for table, epsilon in product(method.tables, method.epsilons):
            cell = Cell(table, epsilon, name)
            if cell not in done and (not quick or table in QUICK):
                yield cell, QUICK_RELEASES if quick else method.releases


def measure(cell: Cell, times: int) -> Result:
    """Measure `times` releases; the seed depends on the cell only."""
    sources: dict[str, Callable[[str], Any]] = {
        **dict.fromkeys(SURVEYS, survey),
        **dict.fromkeys(TITLES, amounts),
    }
    source = sources.get(cell.table, population)(cell.table)
    rng = cell.generator()
    forms = METHODS[cell.method].scores(source, cell.epsilon, rng, times)
    scores = {
        form: {name: float(f"{value:.4g}") for name, value in each.items()}
        for form, each in forms.items()
    }
    return Result(cell, source.n, source.p, times, scores)
