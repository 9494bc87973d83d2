"""The cells (kind of table, rows, epsilon), their releases, and their results file."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from benchmarks.arrays import Array
from benchmarks.intervals.populations import Estimated, moment_intervals, moments, sample
from benchmarks.statistics.tables import Table
from gramercy.estimators.accuracy.clipped_accuracy import traceless_cells
from gramercy.schemas.evidence import Evidence
from tests.support.kinds_of_tables import KINDS, round_bounds
from tests.support.private_release import as_by_default
from tests.support.verdict_truth import VerdictTruth

ROWS, EPSILONS = (2000, 20_000, 200_000), (1.0, 4.0)
DRAWS, QUICK_DRAWS = {2000: 5, 20_000: 5, 200_000: 3}, 1
QUICK = ("normal", "10 % lognormal", "codes")
POPULATION = 200_000
MEASURED = "27 November 2026"


@dataclass(frozen=True)
class Cell:
    """A kind of table, a number of rows, and the epsilon at delta = 1e-6."""

    kind: str
    n: int
    epsilon: float


@dataclass(frozen=True)
class Draw:
    """One release of a sample of a population of its own.

    Parameters
    ----------
    verdict
        Verdict and errors of correlations.
    signs
        Number of columns of which only the sign is published.
    off
        Number of standard deviations that are off by more than ten times, and of which the release
        does not say that cells without a trace may make them larger.
    own, population
        By quantity, for each entry: ``1`` if its interval contains the value of the table, or of
        the population, ``0`` if not, and ``-`` if it is unknown.
    width
        By quantity, the mean width of the known intervals of the table's own values: of means and
        standard deviations in true standard deviations.
    """

    verdict: VerdictTruth
    signs: int
    off: int
    own: dict[str, str]
    population: dict[str, str]
    width: dict[str, float]


@dataclass(frozen=True)
class Result:
    """The releases of one cell, and the seconds that they took on one core."""

    cell: Cell
    draws: list[Draw]
    seconds: float


def missing(quick: bool, done: dict[Cell, Result]) -> Iterator[tuple[Cell, int]]:
    """Yield the cells that have not been measured, with their numbers of releases."""
    kinds, sizes = (QUICK, ROWS[:2]) if quick else (tuple(KINDS), ROWS)
    for kind, n, epsilon in product(kinds, sizes, EPSILONS):  # a population is made once
        cell = Cell(kind, n, epsilon)
        if cell not in done:
            yield cell, QUICK_DRAWS if quick else DRAWS[n]


def measure(cell: Cell, times: int) -> Result:
    """Measure releases of `times` populations; the seeds depend on the cell only."""
    started = time.process_time()
    draws = [_draw(cell, index) for index in range(times)]
    return Result(cell, draws, round(time.process_time() - started, 2))


@lru_cache(maxsize=max(DRAWS.values()))
def population(kind: str, index: int) -> Table:
    """A table of that kind, of which samples are drawn."""
    seed = zlib.crc32(f"{kind} {index}".encode())
    cells = KINDS[kind].build(POPULATION, np.random.default_rng(seed))
    return Table(cells, np.array(round_bounds(cells)))


def _draw(cell: Cell, index: int) -> Draw:
    whole = population(cell.kind, index)
    rng = np.random.default_rng(zlib.crc32(f"{cell!r} {index}".encode()))
    table = sample(whole, cell.n, rng)
    scaled = as_by_default(table.cells, table.columns, cell.epsilon, rng)
    assert scaled is not None  # n mu / sqrt(p) is large enough for private constants
    release = scaled.release(rng)
    found, own, truth = moment_intervals(release), moments(table), moments(whole)
    spread = np.where(own["standard-deviation"] > 0, own["standard-deviation"], np.nan)
    units = {"mean": spread, "standard-deviation": spread, "correlation": np.ones(1)}
    return Draw(
        verdict=VerdictTruth.of(release, scaled, table.cells),
        signs=len(release.signs),
        off=_off(release, table, found, spread),
        own={of: _held(each, own[of], own=True) for of, each in found.items()},
        population={of: _held(each, truth[of]) for of, each in found.items()},
        width={of: _width(each, units[of]) for of, each in found.items()},
    )


def _off(release: Evidence, table: Table, found: dict[str, Estimated], spread: Array) -> int:
    means, stated = found["mean"], found["standard-deviation"]
    bounds = {each.name: (each.lower, each.upper) for each in table.columns}
    deviations = np.where(stated.known, stated.estimate, np.nan)
    reported = {
        each.column for each in traceless_cells(release, deviations, means.estimate, bounds)
    }
    with np.errstate(divide="ignore"):
        factors = np.abs(np.log10(deviations / spread))
    names = np.array([each.name for each in table.columns])
    return int(((factors > 1) & ~np.isin(names, list(reported))).sum())


def _held(found: Estimated, truth: Array, *, own: bool = False) -> str:
    lower, upper = (found.own_lower, found.own_upper) if own else (found.lower, found.upper)
    slack = 1e-9 * np.abs(truth)  # a constant column's mean is known to rounding
    held = (lower <= truth + slack) & (truth - slack <= upper)
    known = found.known & np.isfinite(truth)
    return "".join(np.where(known, np.where(held, "1", "0"), "-").tolist())


def _width(found: Estimated, unit: Array) -> float:
    """Mean width of the known intervals of the table's own values; NaN without one."""
    widths = ((found.own_upper - found.own_lower) / unit)[found.known]
    finite = widths[np.isfinite(widths)]
    return float(f"{finite.mean():.4g}") if finite.size else float("nan")
