"""The cells (table, rows, epsilon; with folds and without) and their results file."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.intervals.populations import (
    FOLDS,
    PARTS,
    QUANTITIES,
    Estimated,
    Population,
    intervals,
    population,
    release,
)
from benchmarks.intervals.scores import Score
from benchmarks.statistics.tables import available

KINDS = (
    "normal", "collinear", "lognormal", "t4", "bimodal", "binary", "zero-inflated", "Likert",
    "counts", "mixed", "credit_default_tw", "sachs", "wine_quality",
)  # fmt: skip
ROWS, EPSILONS = (2000, 20_000, 200_000), (1.0, 4.0)
RELEASES, QUICK_RELEASES = 200, 10
QUICK = ("normal", "lognormal")


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
        Clipping radius in scaled units, by number of folds.
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
    names = [name for name in KINDS if name in (QUICK if quick else available())]
    sizes = ROWS[1:2] if quick else ROWS
    for n, epsilon, name in product(sizes, EPSILONS, names):
        cell = Cell(name, n, epsilon)
        if cell not in done:
            yield cell, QUICK_RELEASES if quick else RELEASES


def measure(cell: Cell, times: int) -> Result:
    """Measure releases of `times` samples; the seed depends on the cell only."""
    started, seed = time.process_time(), zlib.crc32(repr(cell).encode())
    populations = {
        folds: population(cell.table, cell.n, cell.epsilon, folds, np.random.default_rng(seed))
        for folds in FOLDS
    }
    rng, first = np.random.default_rng((seed, 1)), populations[1]
    found: dict[int, list[dict[str, Estimated]]] = {folds: [] for folds in FOLDS}
    for _ in range(times):
        drawn = rng.integers(0, len(first.rows), size=cell.n)
        for folds, results in found.items():
            sampled = populations[folds]
            sums = sampled.sums(drawn, PARTS)
            results.append(intervals(release(sampled, sums, cell.n, folds, rng)))
    scores = {str(folds): _scores(populations[folds], results) for folds, results in found.items()}
    radii = {str(folds): sampled.radius for folds, sampled in populations.items()}
    seconds = round(time.process_time() - started, 2)
    return Result(cell, first.p, len(first.rows), radii, times, seconds, scores)


def _scores(sampled: Population, releases: list[dict[str, Estimated]]) -> dict[str, Score]:
    return {
        of: Score.of([each[of] for each in releases], sampled.normalised[of], sampled.original[of])
        for of in QUANTITIES
    }
