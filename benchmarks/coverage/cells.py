"""The cells (graph, columns, rows, row distribution; all noise laws) and their results file."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from benchmarks.arrays import Array
from benchmarks.coverage.populations import (
    GRAPHS,
    QUANTITIES,
    ROWS,
    Population,
    Quantity,
    Rows,
    kinds,
    law_of,
    population,
    release,
)
from benchmarks.coverage.scores import Coverage, DiscoveryRates, Edges, Entries
from gramercy.estimators.noise.draws import Stream
from gramercy.schemas.noise import Family

Kind = tuple[Family, float]
SIZES = (1000, 10_000, 50_000)
COLUMNS = (10, 30)
PRECISE = 0.005  # stop drawing releases at this standard error of a coverage
LEAST, MOST, QUICK = 16, 60, 8


@dataclass(frozen=True)
class Cell:
    """A configuration whose noise laws are all measured on the same rows.

    Parameters
    ----------
    graph
        Graph of the precision matrix.
    p, n
        Columns and rows.
    rows
        ``gaussian``, or ``unit``: Gaussian rows divided by their length.
    """

    graph: str
    p: int
    n: int
    rows: Rows


@dataclass(frozen=True)
class Setting:
    """The measurements of one noise law in a cell.

    Parameters
    ----------
    family, strength
        Noise law, and its standard deviation over the average diagonal entry.
    releases
        Number of releases.
    coverage
        Coverage by quantity.
    found
        Discovery rates by kind of correlation (if some pairs are uncorrelated), then by rate.
    """

    family: Family
    strength: float
    releases: int
    coverage: dict[Quantity, Coverage]
    found: dict[Quantity, dict[str, DiscoveryRates]]


@dataclass(frozen=True)
class Result:
    """The measurements of one cell.

    Parameters
    ----------
    most
        Maximum number of releases.
    stray
        The largest true correlation of pairs without an edge, if there are such pairs.
    seconds
        Seconds on one core.
    """

    cell: Cell
    most: int
    stray: dict[Quantity, float]
    seconds: float
    settings: list[Setting]

    @property
    def kinds(self) -> set[Kind]:
        return {(each.family, each.strength) for each in self.settings}

    def merged_after(self, earlier: Result) -> Result:
        """This result with the settings of the same cell that were only measured earlier."""
        kept = [each for each in earlier.settings if (each.family, each.strength) not in self.kinds]
        return replace(
            self,
            most=min(self.most, earlier.most),
            seconds=round(self.seconds + earlier.seconds, 2),
            settings=kept + self.settings,
        )


def plan(quick: bool) -> Iterator[tuple[Cell, int]]:
    """Yield all cells, each with its maximum number of releases; about 30 s per cell."""
    if quick:
        laws: tuple[Rows, ...] = ("unit", "gaussian", "unit")
        for graph, rows in zip(GRAPHS, laws, strict=True):
            yield Cell(graph, COLUMNS[0], SIZES[0], rows), QUICK
        return
    for n, p, graph, rows in product(SIZES[::-1], COLUMNS, GRAPHS, ROWS):
        yield Cell(graph, p, n, rows), MOST


def missing(quick: bool, done: dict[Cell, Result]) -> Iterator[tuple[Cell, int, list[Kind]]]:
    """Yield the planned cells that are not complete, each with its missing noise laws."""
    for cell, most in plan(quick):
        have = done[cell].kinds if cell in done and done[cell].most >= most else set()
        wanted = [kind for kind in kinds() if kind not in have]
        if wanted:
            yield cell, most, wanted


def measure(cell: Cell, most: int, wanted: list[Kind]) -> Result:
    """Measure the wanted noise laws on the same samples; seeds depend on cell and law only."""
    started = time.process_time()
    sampled = population(cell.graph, cell.p, cell.rows)
    moments = Samples(sampled.moments(cell.n, zlib.crc32(repr(cell).encode())))
    settings = [_setting_of(cell, *kind, sampled, moments, most) for kind in wanted]
    stray = {of: float(f"{sampled.stray(of):.3g}") for of in sampled.correlation_kinds}
    return Result(cell, most, stray, round(time.process_time() - started, 2), settings)


class Samples:
    """Second moments, each drawn at first use and then cached."""

    def __init__(self, source: Iterator[Array]) -> None:
        self.source, self.drawn = source, list[Array]()

    def __getitem__(self, index: int) -> Array:
        while len(self.drawn) <= index:
            self.drawn.append(next(self.source))
        return self.drawn[index]


def _setting_of(
    cell: Cell, family: Family, strength: float, sampled: Population, moments: Samples, most: int
) -> Setting:
    """Draw releases until every coverage is precise; only standard errors decide when to stop."""
    law = law_of(family, cell.p, cell.n, sampled.power, strength)
    source = Stream(zlib.crc32(f"{cell} {family} {strength}".encode()))
    entries = [Entries(of, sampled.targets[of]) for of in QUANTITIES]
    edges = [Edges(of, sampled.related[of]) for of in sampled.correlation_kinds]
    counted: list[Entries | Edges] = [*entries, *edges]
    for count in range(1, most + 1):
        seen = release(moments[count - 1], cell.n, law, source, unit=cell.rows == "unit")
        for each in counted:
            each.add(seen)
        if count >= LEAST and all(each.error() <= PRECISE for each in entries):
            break
    coverage = {each.of: each.summary() for each in entries}
    return Setting(family, strength, count, coverage, {each.of: each.summary() for each in edges})
