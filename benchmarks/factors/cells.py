"""The cells: factors or one scale, in releases with declared constants and with private ones."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from benchmarks.analyses.releases import declared_release, private_release
from benchmarks.arrays import Array, Rng
from benchmarks.statistics.tables import Table
from gramercy.estimators.factors import FactorAnalysis, Rotation
from gramercy.estimators.reliability import Reliability
from gramercy.estimators.solvers.factor_model import ROTATIONS, matched, ordered, varimax
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence

FACTORS, SCALE = ("loadings", "communalities"), ("alpha", "omega", "item_rest", "alpha_if_dropped")
RELEASES, QUICK_RELEASES = 20, 2
BOUND = 4.0  # of columns, in deviations
RADII = {"declared": 2.5, "short radius": 1.5}  # of rows, by the root of their number
_WHOLE, _QUICK_WHOLE = 1_000_000, 1000  # rows that stand for the population of a scale
_RANGES = {"strong": (0.5, 0.85), "weak": (0.25, 0.6), "cross": (0.5, 0.8), "items": (0.4, 0.8)}
_CROSS = 0.3  # the largest loading on a second factor


@dataclass(frozen=True)
class Cell:
    """A population and a release.

    Parameters
    ----------
    columns, factors
        Numbers of them.
    loadings
        A key of the ranges of loadings; ``items`` for the reliability of a scale.
    rotation
        Of factors; for a scale, ``five levels`` or ``normal`` answers.
    constants
        ``private``, or a key of `RADII`.
    """

    columns: int
    factors: int
    loadings: str
    rotation: str
    n: int
    epsilon: float
    constants: str = "declared"

    @property
    def is_scale(self) -> bool:
        return self.loadings == "items"

    @cached_property
    def truth(self) -> Array:
        """Loadings of the columns on independent factors, shape (columns, factors)."""
        spread = np.linspace(*_RANGES[self.loadings], -(-self.columns // self.factors))
        place = np.arange(self.columns)
        own = np.zeros((self.columns, self.factors))
        own[place, place % self.factors] = spread[place // self.factors]
        if self.loadings == "cross":
            own[place, (place + 1) % self.factors] = np.linspace(0, _CROSS, self.columns)
        return own

    def sample(self, rows: int, rng: Rng) -> Table:
        """Gaussian rows with standardised columns; answers may be of five levels."""
        unique = np.sqrt(1 - (self.truth**2).sum(axis=1))
        cells = rng.normal(size=(rows, self.factors)) @ self.truth.T
        cells += rng.normal(size=cells.shape) * unique
        if self.rotation == "five levels":
            cells = np.clip(np.round(cells), -2, 2)
        bounds = np.array([[-BOUND], [BOUND]]).repeat(self.columns, axis=1)
        return Table(np.clip(cells, -BOUND, BOUND), bounds)

    def release(self, table: Table, epsilon: float, rng: Rng) -> Evidence:
        """A release of this sample."""
        if self.constants == "private":
            return private_release(table, epsilon, rng)
        radius = math.hypot(
            1.0, RADII[self.constants] * math.sqrt(self.columns) / BOUND
        )  # of rows with a one
        return declared_release(table, epsilon, rng, radius)


@dataclass(frozen=True)
class Result:
    """The measurements of one cell.

    Parameters
    ----------
    known
        Share of the releases of which all estimates are known; the others do not count.
    held
        Share of the known 95 % intervals that contain the truth, by quantity.
    width
        Root mean square error of the loadings; of a scale, the median half width for alpha.
    right
        Share of the releases in which parallel analysis finds the number of factors.
    """

    cell: Cell
    releases: int
    seconds: float
    known: float
    held: dict[str, float | None]
    width: float | None
    right: float | None


def missing(quick: bool, done: dict[Cell, Result]) -> Iterator[tuple[Cell, int]]:
    """Yield the cells that have not been measured, with their numbers of releases."""
    for cell in CELLS[:: len(CELLS) - 1] if quick else CELLS:
        if cell not in done:
            yield cell, QUICK_RELEASES if quick else RELEASES


def measure(cell: Cell, times: int) -> Result:
    """Measure `times` releases, each of a sample of its own; the seed depends on the cell only."""
    started, rng = time.process_time(), np.random.default_rng(zlib.crc32(repr(cell).encode()))
    of_cell = _scale if cell.is_scale else _factors
    known, held, widths, right = of_cell(cell, times, rng)
    return Result(
        cell,
        times,
        round(time.process_time() - started, 1),
        known / times,
        {of: round(float(np.mean(each)), 4) if each else None for of, each in held.items()},
        float(f"{_width(cell, widths):.3g}") if widths else None,
        None if cell.is_scale else right / times,
    )


def _width(cell: Cell, widths: list[float]) -> float:
    return float(np.median(widths) if cell.is_scale else np.sqrt(np.mean(widths)))


_Found = tuple[int, dict[str, list[float]], list[float], int]


def _factors(cell: Cell, times: int, rng: Rng) -> _Found:
    rotation: Rotation = cell.rotation  # type: ignore[assignment]
    target = ordered(*ROTATIONS[rotation](varimax(cell.truth)[0]))
    own, held = (cell.truth**2).sum(axis=1), {of: list[float]() for of in FACTORS}
    known, right, errors = 0, 0, list[float]()
    for _ in range(times):
        evidence = cell.release(cell.sample(cell.n, rng), cell.epsilon, rng)
        try:
            estimate = FactorAnalysis(n_factors=cell.factors, rotation=rotation).fit(evidence)
        except RequestError:  # noise hides too many columns
            continue
        right += estimate.tuning["above_noise"] == cell.factors
        table, columns = estimate.tables["loadings"], estimate.tables["columns"]
        if table["loading"].isna().any() or len(table) != cell.truth.size:
            continue
        known += 1
        loadings, lower, upper = (
            table[each].to_numpy().reshape(cell.factors, -1).T
            for each in ("loading", "lower", "upper")
        )
        truth = matched(*target, loadings)[0]
        held["loadings"] += _covers(lower, upper, truth)
        held["communalities"] += _covers(columns["lower"], columns["upper"], own)
        errors.append(float(np.mean((loadings - truth) ** 2)))
    return known, held, errors, right


def _scale(cell: Cell, times: int, rng: Rng) -> _Found:
    def found(evidence: Evidence) -> tuple[pd.DataFrame, pd.DataFrame]:
        tables = Reliability().fit(evidence).tables
        return tables["coefficients"].set_index("coefficient"), tables["items"]

    whole = cell.sample(_QUICK_WHOLE if times == QUICK_RELEASES else _WHOLE, rng)
    sums, items = found(declared_release(whole, 1e6, rng))
    truth, known, half = sums["estimate"], 0, list[float]()
    held: dict[str, list[float]] = {of: [] for of in SCALE}
    for _ in range(times):
        evidence = cell.release(cell.sample(cell.n, rng), cell.epsilon, rng)
        try:
            sums, each = found(evidence)
        except RequestError:  # noise hides an item
            continue
        if sums.isna().any(axis=None):
            continue
        known += 1
        half.append(float(sums.loc["alpha", "upper"] - sums.loc["alpha", "lower"]) / 2)
        for of in ("alpha", "omega"):
            held[of] += _covers(sums.loc[of, "lower"], sums.loc[of, "upper"], truth[of])
        for of in ("item_rest", "alpha_if_dropped"):
            held[of] += _covers(each[of + "_lower"], each[of + "_upper"], items[of])
    return known, held, half, 0


def _covers(lower: ArrayLike, upper: ArrayLike, truth: ArrayLike) -> list[float]:
    """Whether known intervals contain the truth."""
    low, high, true = (np.ravel(each) for each in np.broadcast_arrays(lower, upper, truth))
    known = np.isfinite(high - low)
    return [*map(float, ((low <= true) & (true <= high))[known])]


CELLS = (
    Cell(8, 2, "strong", "varimax", 2000, 1.0),
    Cell(8, 2, "weak", "varimax", 5000, 1.0),
    Cell(16, 4, "weak", "varimax", 5000, 1.0),
    Cell(16, 4, "cross", "oblimin", 5000, 1.0),
    Cell(16, 4, "cross", "promax", 20_000, 4.0),
    Cell(16, 4, "strong", "varimax", 20_000, 0.5),
    Cell(30, 5, "strong", "varimax", 20_000, 1.0),
    Cell(8, 2, "strong", "varimax", 20_000, 1.0, "private"),
    Cell(16, 4, "strong", "varimax", 20_000, 4.0, "private"),
    Cell(6, 1, "items", "normal", 5000, 1.0),
    Cell(6, 1, "items", "five levels", 2000, 1.0),
    Cell(10, 1, "items", "five levels", 5000, 0.5),
    Cell(10, 1, "items", "five levels", 20_000, 4.0),
    Cell(10, 1, "items", "five levels", 20_000, 4.0, "short radius"),
    Cell(6, 1, "items", "five levels", 5000, 1.0, "private"),
    Cell(6, 1, "items", "normal", 20_000, 1.0, "private"),
    Cell(10, 1, "items", "five levels", 20_000, 4.0, "private"),
)
