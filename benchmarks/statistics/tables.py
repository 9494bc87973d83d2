"""Tables of many kinds with bounds, generated or on disk; the rule was tuned on such tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd

from benchmarks.arrays import Array
from benchmarks.graphs.truths import FOLDER
from benchmarks.statistics.correlations import pairwise
from gramercy.schemas.facts import ColumnFacts
from tests.support.kinds_of_tables import gaussian, round_bounds
from tests.support.private_release import numeric_columns

Build = Callable[[np.random.Generator], Array]
ROWS = 20_000


@dataclass(frozen=True)
class Table:
    """A table whose correlations are known.

    Parameters
    ----------
    cells
        Shape (n, p); NaN where missing. Within the bounds.
    bounds
        Lower and upper bounds, shape (2, p), or None.
    """

    cells: Array
    bounds: Array | None

    @property
    def n(self) -> int:
        return len(self.cells)

    @property
    def p(self) -> int:
        return int(self.cells.shape[1])

    @property
    def columns(self) -> tuple[ColumnFacts, ...]:
        """The declared columns."""
        bounds = (
            [None] * self.p if self.bounds is None else list(map(tuple, self.bounds.T.tolist()))
        )
        return numeric_columns(bounds)

    @cached_property
    def correlations(self) -> Array:
        """Pearson correlations of the pairs of cells that are both present; shape (p, p)."""
        return pairwise(self.cells)

    @cached_property
    def present(self) -> Array:
        """Share of rows with a value, shape (p,)."""
        present: Array = 1 - np.isnan(self.cells).mean(axis=0)
        return present


@dataclass(frozen=True)
class Recipe:
    """How a table is made.

    Parameters
    ----------
    title
        Description on the page.
    build
        Draws the cells, or reads them and draws nothing.
    widths
        How many times wider the bounds are than round numbers around the data; None for a table
        without bounds.
    """

    title: str
    build: Build
    widths: float | None = 1.0


def _normal(rng: np.random.Generator, n: int = ROWS, p: int = 20) -> Array:
    return gaussian(rng, n, p)


def _lognormal(rng: np.random.Generator, n: int = ROWS) -> Array:
    return np.exp(gaussian(rng, n, 20) * np.linspace(0.3, 1.3, 20))


def _student(rng: np.random.Generator, dof: int = 4) -> Array:
    return gaussian(rng, ROWS, 15) / np.sqrt(rng.chisquare(dof, (ROWS, 15)) / dof)


def _bimodal(rng: np.random.Generator) -> Array:
    return np.where(gaussian(rng, ROWS, 12) > 0.3, 1.0, 0.0) + 0.05 * rng.normal(size=(ROWS, 12))


def _binary(rng: np.random.Generator) -> Array:
    return (gaussian(rng, ROWS, 25) > np.linspace(-1, 2, 25)).astype(float)


def _zero_inflated(rng: np.random.Generator) -> Array:
    """Shares of zeros from one half to 98 %."""
    presence, size = gaussian(rng, ROWS, 12), gaussian(rng, ROWS, 12)
    thresholds = np.linspace(0.0, 2.05, 12)
    return np.where(presence > thresholds, np.exp(size + 0.5 * presence), 0.0)


def _likert(rng: np.random.Generator) -> Array:
    means = np.linspace(1.5, 4.5, 25)
    return np.clip(np.round(1.2 * gaussian(rng, ROWS, 25, 2) + means), 1, 5)


def _counts(rng: np.random.Generator) -> Array:
    rates = np.exp(0.8 * gaussian(rng, ROWS, 10) + np.linspace(-1.5, 3, 10))
    return rng.poisson(rates).astype(float)


def _missing(rng: np.random.Generator) -> Array:
    cells = 10 + 3 * gaussian(rng, ROWS, 20)
    shares = np.tile([0.05, 0.05, 0.4, 0.9, 0.0], 4)
    return np.where(rng.random(cells.shape) < shares, np.nan, cells)


def _off_centre(rng: np.random.Generator) -> Array:
    """Air pressures, dates, years and incomes, far from zero for their spread."""
    spread = np.array([0.05, 300.0, 5.0, 1e5, 1.0, 1.0, 1.0, 1.0])
    centre = np.array([1013.0, 20_240.0, 2010.0, 5e5, 0.0, 0.0, 3.0, -7.0])
    return centre + spread * gaussian(rng, ROWS, 8)


def _collinear(rng: np.random.Generator) -> Array:
    first = gaussian(rng, ROWS, 6)
    noise = rng.normal(size=(2, ROWS, 6))
    return np.hstack([first, first + 0.02 * noise[0], 0.8 * first + 0.6 * noise[1]])


def _mixed(rng: np.random.Generator) -> Array:
    parts = (_normal, _lognormal, _likert, _zero_inflated, _bimodal)
    return np.hstack([part(rng)[:, :4] for part in parts])


def _on_disk(name: str) -> Build:
    def read(_: np.random.Generator) -> Array:
        cells = pd.read_csv(FOLDER / name / "data.csv").to_numpy(float)
        varying: Array = cells[:, np.nanstd(cells, axis=0) > 0]
        return varying

    return read


TABLES: Mapping[str, Recipe] = {
    "normal": Recipe("20 normal columns", _normal),
    "normal, wide": Recipe("20 normal columns, bounds 100 times too wide", _normal, 100.0),
    "normal, unbounded": Recipe("20 normal columns, no bounds", _normal, None),
    "lognormal": Recipe("20 lognormal columns, sigma .3 to 1.3", _lognormal),
    "lognormal, wide": Recipe("20 lognormal columns, bounds 10 times too wide", _lognormal, 10.0),
    "lognormal, large": Recipe(
        "20 lognormal columns, 200,000 rows", lambda rng: _lognormal(rng, 200_000)
    ),
    "t4": Recipe("15 columns of Student's t with 4 degrees of freedom", _student),
    "bimodal": Recipe("12 columns with two narrow modes", _bimodal),
    "binary": Recipe("25 columns of zeros and ones, 2 % to 84 % of ones", _binary),
    "zero-inflated": Recipe(
        "12 columns, one half to 98 % of zeros, else lognormal", _zero_inflated
    ),
    "zero-inflated, wide": Recipe("the same, bounds 30 times too wide", _zero_inflated, 30.0),
    "Likert": Recipe("25 answers from 1 to 5", _likert),
    "counts": Recipe("10 counts of means .2 to 20", _counts),
    "missing": Recipe("20 normal columns, up to 90 % missing", _missing),
    "off-centre": Recipe("8 columns far from zero for their spread", _off_centre, 3.0),
    "off-centre, unbounded": Recipe("the same without bounds", _off_centre, None),
    "collinear": Recipe("18 columns, 12 of them nearly copies", _collinear),
    "wide": Recipe("80 normal columns", lambda rng: gaussian(rng, ROWS, 80, 6)),
    "mixed": Recipe("20 columns of five kinds", _mixed),
    "three columns": Recipe("3 normal columns", lambda rng: _normal(rng, p=3)),
    "credit_default_tw": Recipe(
        "credit card clients, Yeh and Lien (2009)", _on_disk("credit_default_tw")
    ),
    "sachs": Recipe("flow cytometry, Sachs et al. (2005)", _on_disk("sachs")),
    "wine_quality": Recipe("wine quality, Cortez et al. (2009)", _on_disk("wine_quality")),
    "ecoli70_gaussian": Recipe(
        "draws from the ecoli70 network of the bnlearn repository", _on_disk("ecoli70_gaussian")
    ),
}
ON_DISK = ("credit_default_tw", "sachs", "wine_quality", "ecoli70_gaussian")


def available() -> list[str]:
    """Return the names of the tables that can be made here."""
    return [name for name in TABLES if name not in ON_DISK or (FOLDER / name / "data.csv").exists()]


@lru_cache(maxsize=1)
def load(name: str) -> Table:
    """Make the table of that name; generated ones have a fixed seed."""
    recipe = TABLES[name]
    cells = recipe.build(np.random.default_rng(20))
    if recipe.widths is None:
        return Table(cells, None)
    lower, upper = round_bounds(cells)
    middle, half = (lower + upper) / 2, (upper - lower) / 2 * recipe.widths
    return Table(cells, np.array([middle - half, middle + half]))
