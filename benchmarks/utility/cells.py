"""The cells (table, guarantee, method) and their results file."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.arrays import Array
from benchmarks.peers import OPENDP
from benchmarks.utility.data import TABLES, load
from benchmarks.utility.guarantees import GRID, Kind, Privacy
from benchmarks.utility.method import Method
from benchmarks.utility.ours import OURS
from benchmarks.utility.peers import PEERS, opendp_pca

METHODS: dict[str, Method] = {method.name: method for method in OURS + PEERS}
# Cells with expected errors, and a few more; at most two minutes.
QUICK = {("digits", "zcdp", 0.1), ("digits", "approx", 1.0), ("digits", "pure", 1.0)}
QUICK |= {("breast-cancer", "approx", 1.0), ("breast-cancer", "pure", 1.0)}
QUICK_REPETITIONS = 10


@dataclass(frozen=True)
class Cell:
    """The unit of measurement: a method with one guarantee on one table.

    Parameters
    ----------
    dataset, kind, value, method
        Keys of `TABLES`, `GRID` and `METHODS`, and epsilon or rho.
    """

    dataset: str
    kind: Kind
    value: float
    method: str

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.kind, self.value)


@dataclass(frozen=True)
class Error:
    """Mean error over the repetitions, and its standard error, in two norms."""

    frobenius: float
    frobenius_se: float
    spectral: float
    spectral_se: float


@dataclass(frozen=True)
class Result:
    """The measurements of one cell: an error per form, and seconds per release with its forms."""

    cell: Cell
    repetitions: int
    seconds: float
    forms: dict[str, Error]


def missing(quick: bool, done: dict[Cell, Result]) -> Iterator[tuple[Cell, int]]:
    """Yield the cells with too few repetitions; without OpenDP if it is not there."""
    leave = () if OPENDP.found() else [method.name for method in opendp_pca.METHODS]
    for cell, times in plan(quick):
        if cell.method not in leave and (cell not in done or done[cell].repetitions < times):
            yield cell, times


def plan(quick: bool) -> Iterator[tuple[Cell, int]]:
    """Yield all cells with their numbers of repetitions."""
    for (dataset, table), kind, method in product(TABLES.items(), GRID, METHODS.values()):
        times = method.repeats(table.p)
        if kind not in method.kinds or times == 0:
            continue
        for value in GRID[kind]:
            if value > method.up_to or (quick and (dataset, kind, value) not in QUICK):
                continue
            cell = Cell(dataset, kind, value, method.name)
            yield cell, min(times, QUICK_REPETITIONS) if quick else times


def measure(cell: Cell, times: int) -> Result:
    """Measure `times` releases; the seed depends on the cell only."""
    data = load(cell.dataset)
    rng = np.random.default_rng(zlib.crc32(repr(cell).encode()))
    errors: dict[str, list[tuple[float, float]]] = {}
    started = time.perf_counter()
    for forms in METHODS[cell.method].draws(data, cell.privacy, rng, times):
        for form, matrix in forms.items():
            errors.setdefault(form, []).append(_norms(matrix - data.moment))
    seconds = (time.perf_counter() - started) / times
    summary = {form: _summary(np.array(pairs)) for form, pairs in errors.items()}
    return Result(cell, times, float(f"{seconds:.3g}"), summary)


def _norms(difference: Array) -> tuple[float, float]:
    values = np.linalg.eigvalsh((difference + difference.T) / 2)
    return float(np.linalg.norm(values)), float(np.abs(values).max())


def _summary(pairs: Array) -> Error:
    mean, error = pairs.mean(axis=0), pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))
    return Error(*(float(f"{x:.5g}") for x in (mean[0], error[0], mean[1], error[1])))
