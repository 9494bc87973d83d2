"""The cells (table, rows, epsilon; with folds and without) and their results file."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.arrays import Array
from benchmarks.intervals.populations import (
    FOLDS,
    QUANTITIES,
    Estimated,
    intervals,
    population,
    quantities,
    sample,
)
from benchmarks.intervals.scores import Score
from benchmarks.statistics.tables import available
from tests.support.private_release import as_by_default

KINDS = (
    "normal", "collinear", "lognormal", "t4", "bimodal", "binary", "zero-inflated", "Likert",
    "counts", "mixed", "credit_default_tw", "sachs", "wine_quality",
)  # fmt: skip
ROWS, EPSILONS = (2000, 20_000, 200_000), (1.0, 4.0)
RELEASES, QUICK_RELEASES = {2000: 30, 20_000: 30, 200_000: 8}, 6
QUICK = ("three columns",)
MEASURED = "27 November 2026"


@dataclass(frozen=True)
class Cell:
    """A population and a guarantee, measured on the same samples with folds and without.

    Parameters
    ----------
    table
        Key of `benchmarks.statistics.tables.TABLES`.
    n, epsilon
        Rows of a sample, and the epsilon at delta = 1e-6.
    """

    table: str
    n: int
    epsilon: float


@dataclass(frozen=True)
class Result:
    """The measurements of one cell.

    Parameters
    ----------
    p, rows
        Columns, and rows of the table.
    radii
        Mean clipping radius in scaled units, by number of folds.
    releases
        Number of samples; each is released without folds, and with every number of folds.
    seconds
        On one core.
    scores
        By number of folds, 1 for none, and by quantity.
    """

    cell: Cell
    p: int
    rows: int
    radii: dict[str, float]
    releases: int
    seconds: float
    scores: dict[str, dict[str, Score]]


def missing(quick: bool, done: dict[Cell, Result]) -> Iterator[tuple[Cell, int]]:
    """Yield the cells that have not been measured, with their numbers of releases."""
    names = QUICK if quick else [name for name in KINDS if name in available()]
    sizes = ROWS[1:2] if quick else ROWS
    for n, epsilon, name in product(sizes, EPSILONS, names):
        cell = Cell(name, n, epsilon)
        if cell not in done:
            yield cell, QUICK_RELEASES if quick else RELEASES[n]


def measure(cell: Cell, times: int) -> Result:
    """Measure releases of `times` samples; the seed depends on the cell only."""
    started, whole = time.process_time(), population(cell.table)
    rng = np.random.default_rng(zlib.crc32(repr(cell).encode()))
    found: dict[int, list[dict[str, Estimated]]] = {folds: [] for folds in FOLDS}
    radii: dict[int, list[float]] = {folds: [] for folds in FOLDS}
    own: list[dict[str, Array]] = []
    for _ in range(times):
        drawn = sample(whole, cell.n, rng)
        own.append(quantities(drawn))
        for folds in FOLDS:
            scaled = as_by_default(drawn.cells, drawn.columns, cell.epsilon, rng, folds)
            assert scaled is not None  # n mu / sqrt(p) is large enough for private constants
            radii[folds].append(scaled.radius)
            found[folds].append(intervals(scaled.release(rng)))
    truth = quantities(whole)
    scores = {
        str(folds): {
            of: Score.of([each[of] for each in releases], truth[of], [each[of] for each in own])
            for of in QUANTITIES
        }
        for folds, releases in found.items()
    }
    mean = {str(folds): float(f"{np.mean(each):.4g}") for folds, each in radii.items()}
    seconds = round(time.process_time() - started, 2)
    return Result(cell, whole.p, whole.n, mean, times, seconds, scores)
