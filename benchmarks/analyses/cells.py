"""The cells (table, epsilon, method) and their results file."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.analyses.methods import METHODS
from benchmarks.analyses.populations import population
from benchmarks.analyses.surveys import SURVEYS, survey
from benchmarks.measuring import read_lines

QUICK_RELEASES = 2
QUICK = ("three columns", "counts")


@dataclass(frozen=True)
class Cell:
    """The unit of measurement: a method with one guarantee on samples of one table.

    Parameters
    ----------
    table, epsilon, method
        Keys of `METHODS` and of its tables, from `benchmarks.statistics.tables`, `tables` or
        `surveys`, and the epsilon at delta = 1e-6.
    """

    table: str
    epsilon: float
    method: str


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
    libraries = dict.fromkeys(each.peer for each in METHODS.values() if each.peer)
    found = {None, *(peer for peer in libraries if peer.found())}
    for name, method in METHODS.items():
        if method.peer not in found:
            continue
        for table, epsilon in product(method.tables, method.epsilons):
            cell = Cell(table, epsilon, name)
            if cell not in done and (not quick or table in QUICK):
                yield cell, QUICK_RELEASES if quick else method.releases


def measure(cell: Cell, times: int) -> Result:
    """Measure `times` releases; the seed depends on the cell only."""
    source = survey(cell.table) if cell.table in SURVEYS else population(cell.table)
    rng = np.random.default_rng(zlib.crc32(repr(cell).encode()))
    forms = METHODS[cell.method].scores(source, cell.epsilon, rng, times)
    scores = {
        form: {name: float(f"{value:.4g}") for name, value in each.items()}
        for form, each in forms.items()
    }
    return Result(cell, source.n, source.p, times, scores)


def read(path: Path) -> dict[Cell, Result]:
    """Read the results in the file, by cell."""
    result: dict[Cell, Result] = {}
    for fields in read_lines(path):
        cell = Cell(**fields.pop("cell"))
        result[cell] = Result(cell, **fields)
    return result
