"""The cells: the noise of a year, by repetition; and a year of releases, by the pipeline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.series import noise
from benchmarks.series.noise import Noise
from benchmarks.series.strategies import STRATEGIES, WEEKS
from benchmarks.series.year import WAYS, Year, publish_year

YEARS, QUICK_YEARS = 2000, 20
WEEKLY_ROWS, QUICK_ROWS = 2000, 100
MEASURED = "27 November 2026"


@dataclass(frozen=True)
class Cell:
    """A way to publish a year of weeks.

    Parameters
    ----------
    measured
        ``noise``, of repeated draws; or ``pipeline``, of the releases of a made-up table.
    way
        A key of `STRATEGIES`.
    size
        How many years are drawn, or how many rows every week has.
    """

    measured: str
    way: str
    size: int


@dataclass(frozen=True)
class Result:
    """The noise or the releases of one cell, and the seconds that they took."""

    cell: Cell
    seconds: float
    noise: Noise | None = None
    year: Year | None = None


def plan(quick: bool) -> Iterator[Cell]:
    """Yield all cells; about ten minutes in total."""
    for way in STRATEGIES:
        yield Cell("noise", way, QUICK_YEARS if quick else YEARS)
    for way in WAYS:
        yield Cell("pipeline", way, QUICK_ROWS if quick else WEEKLY_ROWS)


def measure(cell: Cell) -> Result:
    """Draw the noise, or publish the year."""
    began = time.perf_counter()
    drawn = noise.measure(cell.way, cell.size) if cell.measured == "noise" else None
    year = publish_year(cell.way, WEEKS, cell.size) if cell.measured == "pipeline" else None
    return Result(cell, round(time.perf_counter() - began, 1), drawn, year)
