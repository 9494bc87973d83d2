"""The cells (table, epsilon, method) and their results file."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.measuring import read_lines
from benchmarks.statistics.methods import METHODS
from benchmarks.statistics.tables import TABLES, available, load
from gramercy.mechanisms.accounting.gdp import gdp_mu

DELTA = 1e-6
EPSILONS = (0.1, 0.5, 1.0, 4.0)
REPETITIONS, QUICK_REPETITIONS = 8, 2
QUICK = ("normal, wide", "three columns")


@dataclass(frozen=True)
class Cell:
    """The unit of measurement: a method with one guarantee on one table.

    Parameters
    ----------
    table, epsilon, method
        Keys of `TABLES` and `METHODS`, and the epsilon at delta = 1e-6.
    """

    table: str
    epsilon: float
    method: str


@dataclass(frozen=True)
class Result:
    """The root mean square error of correlations over `repetitions` releases, by form."""

    cell: Cell
    n: int
    p: int
    repetitions: int
    errors: dict[str, float]


def missing(quick: bool, done: dict[Cell, Result]) -> Iterator[tuple[Cell, int]]:
    """Yield the cells that have not been measured, with their numbers of repetitions."""
    names = [name for name in available() if not quick or name in QUICK]
    times = QUICK_REPETITIONS if quick else REPETITIONS
    for name, epsilon, (method, facts) in product(names, EPSILONS, METHODS.items()):
        cell = Cell(name, epsilon, method)
        without_bounds = TABLES[name].widths is None
        if cell not in done and not (facts.needs_bounds and without_bounds):
            yield cell, times


def measure(cell: Cell, times: int) -> Result:
    """Measure `times` releases; the seed depends on the cell only."""
    table, mu = load(cell.table), gdp_mu(cell.epsilon, DELTA)
    rng = np.random.default_rng(zlib.crc32(repr(cell).encode()))
    forms = METHODS[cell.method].errors(table, mu, rng, times)
    errors = {form: _mean_square(values) for form, values in forms.items()}
    return Result(cell, table.n, table.p, times, errors)


def _mean_square(errors: list[float]) -> float:
    return float(f"{np.sqrt(np.mean(np.square(errors))):.4g}")


def read(path: Path) -> dict[Cell, Result]:
    """Read the results in the file, by cell."""
    result: dict[Cell, Result] = {}
    for fields in read_lines(path):
        cell = Cell(**fields.pop("cell"))
        result[cell] = Result(cell, **fields)
    return result
