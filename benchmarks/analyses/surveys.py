"""Tables of numbers and levels, and how close synthetic rows are to them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array

_ROWS = 100_000  # of a population
_SPIKE = 0.05  # share of the cells that have one value
_BINS = 10  # of a numeric column, with equal shares of the population


@dataclass(frozen=True)
class Survey:
    """A population of rows of numbers and levels; the outcome of regressions is the last column.

    Parameters
    ----------
    title
        Description on the page.
    n
        Number of rows of a sample.
    cells
        Shape (rows, q); levels are numbered from 0.
    levels
        Number of levels of each column, 0 for a numeric one.
    bounds
        Declared bounds of numeric columns, shape (2, q); the first and the last number of levels.
    """

    title: str
    n: int
    cells: Array
    levels: tuple[int, ...]
    bounds: Array

    @property
    def p(self) -> int:
        """Number of columns."""
        return len(self.levels)

    @cached_property
    def spikes(self) -> tuple[Array, ...]:
        """Values that one cell of twenty has, of each column; none of levels."""
        found = []
        for cells, levels in zip(self.cells.T, self.levels, strict=True):
            values, counts = np.unique(cells, return_counts=True)
            found.append(values[counts >= _SPIKE * len(cells)] if not levels else values[:0])
        return tuple(found)

    def sample(self, rng: np.random.Generator) -> Array:
        """Rows drawn with replacement, shape (n, q)."""
        return self.cells[rng.integers(0, len(self.cells), size=self.n)]

    def scores(self, rows: Array) -> dict[str, float]:
        """How far rows are from the population.

        Parameters
        ----------
        rows
            Shape (any, q); NaN for a cell of no level.

        Returns
        -------
        dict
            ``marginals``: total variation of the joint distribution of two columns, numeric ones in
            tenths of the population and at their spikes, on average over all pairs. ``spikes``:
            mean error of the share of the rows at a spike, if there are any. ``correlations``: root
            mean square error over pairs of columns, with an indicator for every level but the
            first.
            ``error``: that of the standardised coefficients of the least-squares regression of the
            last column on all others, and ``loss``, by how much R squared of that fit in the
            population is below that of least squares; at most 1.
        """
        variations = [
            0.5 * np.abs(self._joint(rows, *pair) - self._joint(self.cells, *pair)).sum()
            for pair in combinations(range(len(self.levels)), 2)
        ]
        own, others = self._indicators(rows), self._indicators(self.cells)
        pairs = np.triu_indices(own.shape[1], 1)
        difference = (_correlations(own) - _correlations(others))[pairs]
        fit, exact = _least_squares(own), _least_squares(others)
        deviations = others.std(axis=0)
        off = (fit[1:] - exact[1:]) * deviations[:-1] / deviations[-1]
        loss = (_squared_error(fit, others) - _squared_error(exact, others)) / deviations[-1] ** 2
        at_spikes = [
            np.mean(rows[:, j] == value) - np.mean(self.cells[:, j] == value)
            for j, values in enumerate(self.spikes)
            for value in values
        ]
        spikes = {"spikes": float(np.mean(np.abs(at_spikes)))} if at_spikes else {}
        return {
            "marginals": float(np.mean(variations)),
            **spikes,
            "correlations": float(np.sqrt(np.mean(difference**2))),
            "error": float(np.sqrt(np.mean(off**2))),
            "loss": min(1.0, float(loss)),
        }

    def _joint(self, rows: Array, first: int, second: int) -> Array:
        """Shares of the rows by two columns; the last bin has cells of no level."""
        one, other = self._binned(rows, first), self._binned(rows, second)
        size = max(_BINS + max(map(len, self.spikes)), *self.levels) + 1
        counts = np.bincount(one * size + other, minlength=size**2)
        return counts / len(rows)

    def _binned(self, rows: Array, column: int) -> NDArray[np.int64]:
        cells = rows[:, column]
        if levels := self.levels[column]:
            return np.where(np.isnan(cells), levels, cells).astype(np.int64)
        cuts = np.quantile(self.cells[:, column], np.linspace(0, 1, _BINS + 1)[1:-1])
        bins = np.searchsorted(cuts, cells, side="right").astype(np.int64)
        for k, value in enumerate(self.spikes[column]):
            bins[cells == value] = _BINS + k
        return bins

    def _indicators(self, rows: Array) -> Array:
        """Numeric columns, and an indicator for every level but the first; the outcome last."""
        columns = []
        for cells, levels in zip(rows.T, self.levels, strict=True):
            columns += [cells == k for k in range(1, levels)] if levels else [cells]
        return np.column_stack(columns).astype(np.float64)


def _correlations(columns: Array) -> Array:
    """Correlations; zero for a constant column."""
    deviation = columns.std(axis=0)
    scaled = (columns - columns.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    found: Array = scaled.T @ scaled / len(columns)
    return found


def _least_squares(columns: Array) -> Array:
    """The intercept, first, and the coefficients of the other columns for the last."""
    design = np.column_stack([np.ones(len(columns)), columns[:, :-1]])
    return np.linalg.lstsq(design, columns[:, -1])[0].astype(np.float64)


def _squared_error(coefficients: Array, columns: Array) -> float:
    residual = columns[:, -1] - coefficients[0] - columns[:, :-1] @ coefficients[1:]
    return float(np.mean(residual**2))


def _household(rng: np.random.Generator) -> Array:
    age = np.clip(rng.gamma(9.0, 5.0, _ROWS), 18, 90)
    sex = (rng.random(_ROWS) < 0.52).astype(np.float64)
    region = rng.choice(5, _ROWS, p=[0.35, 0.25, 0.2, 0.15, 0.05])
    school = np.clip(np.rint(1.4 + 0.2 * (region == 0) + rng.normal(size=_ROWS)), 0, 3)
    hours = np.clip(38 - 5 * sex + 2 * (school == 3) + 9 * rng.normal(size=_ROWS), 0, 80)
    power = 9.2 + 0.25 * school + 0.012 * hours + 0.006 * age + 0.15 * (region == 0)
    income = np.clip(np.exp(power + 0.45 * rng.normal(size=_ROWS)), 0, 200_000)
    return np.column_stack([age, sex, region, school, hours, income])


def _clinic(rng: np.random.Generator) -> Array:
    age = np.clip(rng.normal(55, 14, _ROWS), 20, 95)
    smoker = (rng.random(_ROWS) < 0.4 - 0.003 * (age - 55)).astype(np.float64)
    weight = np.clip(rng.normal(78, 15, _ROWS), 40, 160)
    group = rng.choice(3, _ROWS, p=[0.5, 0.3, 0.2])
    pressure = 95 + 0.5 * age + 6 * smoker + 0.25 * (weight - 78) - 5 * (group == 2)
    return np.column_stack(
        [age, smoker, group, weight, np.clip(pressure + rng.normal(0, 12, _ROWS), 70, 230)]
    )


def _curved(rng: np.random.Generator) -> Array:
    x, kind = rng.uniform(-1, 1, _ROWS), rng.choice(3, _ROWS)
    switch = (x**2 + 0.2 * rng.normal(size=_ROWS) > 0.35).astype(np.float64)
    slope = np.array([1.5, 0.0, -1.0])[kind]
    y = slope * x + 1.5 * x**2 + 0.3 * switch + 0.3 * rng.normal(size=_ROWS)
    return np.column_stack([x, kind, switch, np.clip(y, -4, 4)])


def _purchases(rng: np.random.Generator) -> Array:
    taste, habit = rng.normal(size=(2, _ROWS))
    member = (habit + rng.normal(size=_ROWS) > 0.8).astype(np.float64)
    visits = np.minimum(rng.poisson(np.exp(0.6 * habit + 0.7)), 50).astype(np.float64)
    amount = np.rint(np.exp(3.5 + 0.8 * taste + 0.3 * member + 0.5 * rng.normal(size=_ROWS)))
    spent = np.where(habit + 0.5 * taste > 0.3, np.minimum(amount, 5000.0), 0.0)
    rating = np.clip(np.rint(3.4 + 0.9 * taste + 0.6 * rng.normal(size=_ROWS)), 1, 5)
    even = rng.random(_ROWS) < 0.5
    share = np.where(even, 0.5, np.clip(0.5 + 0.2 * taste + 0.15 * rng.normal(size=_ROWS), 0, 1))
    score = 2 * rating + 0.4 * visits + 3 * member + 2 * rng.normal(size=_ROWS)
    return np.column_stack([visits, spent, rating, share, member, np.clip(score, -10, 50)])


@dataclass(frozen=True)
class _Recipe:
    title: str
    n: int
    build: Callable[[np.random.Generator], Array]
    levels: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]


_RECIPES: Mapping[str, _Recipe] = {
    "household": _Recipe(
        "six columns of 20,000 rows: age, sex, region, schooling, hours and a skewed income",
        20_000,
        _household,
        (0, 2, 5, 4, 0, 0),
        ((18, 90), (0, 1), (0, 4), (0, 3), (0, 80), (0, 200_000)),
    ),
    "clinic": _Recipe(
        "five columns of 2,000 rows: age, smoking, a group, weight and blood pressure",
        2_000,
        _clinic,
        (0, 2, 3, 0, 0),
        ((20, 95), (0, 1), (0, 2), (40, 160), (70, 230)),
    ),
    "curves": _Recipe(
        "four columns of 10,000 rows with a curve, and slopes that differ between levels",
        10_000,
        _curved,
        (0, 3, 2, 0),
        ((-1, 1), (0, 2), (0, 1), (-4, 4)),
    ),
    "purchases": _Recipe(
        "six columns of 20,000 rows: a count, an amount that is mostly zero, a rating from 1 to 5, "
        "a share that is half of the time .5, membership and a score",
        20_000,
        _purchases,
        (0, 0, 0, 0, 2, 0),
        ((0, 50), (0, 5000), (1, 5), (0, 1), (0, 1), (-10, 50)),
    ),
}
SURVEYS = tuple(_RECIPES)
TITLES: Mapping[str, str] = {name: each.title for name, each in _RECIPES.items()}


@lru_cache(maxsize=1)
def survey(name: str) -> Survey:
    """Make the population of that name, with a seed of its own."""
    recipe = _RECIPES[name]
    cells = recipe.build(np.random.default_rng(zlib.crc32(name.encode())))
    bounds = np.array(recipe.bounds, dtype=np.float64).T
    return Survey(recipe.title, recipe.n, cells, recipe.levels, bounds)
