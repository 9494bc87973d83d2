"""The cells of the benchmark: a table, an epsilon, and a method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.cells import Cell, usable
from benchmarks.statistics import methods, moments, peers
from benchmarks.statistics.methods import Method
from benchmarks.statistics.tables import TABLES, available, load

EPSILONS = (0.1, 0.5, 1.0, 4.0)
QUICK_REPETITIONS = 2
METHODS: dict[str, Method] = {**methods.METHODS, **moments.METHODS, **peers.METHODS}
QUICK = ("normal, wide", "three columns")


@dataclass(frozen=True)
class Result:
    """Root mean square errors over `repetitions` releases, by form; none where a method fails."""

    cell: Cell
    n: int
    p: int
    repetitions: int
    errors: dict[str, float]


def missing(quick: bool, done: dict[Cell, Result]) -> Iterator[tuple[Cell, int]]:
    """Yield the cells that have not been measured, with their numbers of repetitions.

    Peers whose interpreter is not named are left out, with a message.
    """
    names = [name for name in available() if not quick or name in QUICK]
    for name, epsilon, (method, facts) in product(names, EPSILONS, usable(METHODS).items()):
        cell = Cell(name, epsilon, method)
        wanted = facts.tables is None or name in facts.tables
        wanted &= facts.epsilons is None or epsilon in facts.epsilons
        wanted &= not (facts.needs_bounds and TABLES[name].widths is None)
        if wanted and cell not in done:
            yield cell, QUICK_REPETITIONS if quick else facts.repetitions


def measure(cell: Cell, times: int) -> Result:
    """Measure `times` releases; the seed depends on the cell only."""
    table = load(cell.table)
    rng = cell.generator()
    forms = METHODS[cell.method].errors(table, cell.epsilon, rng, times)
    errors = {form: _mean_square(values) for form, values in forms.items()}
    return Result(cell, table.n, table.p, times, errors)


def _mean_square(errors: list[float]) -> float:
    return float(f"{np.sqrt(np.mean(np.square(errors))):.4g}")
