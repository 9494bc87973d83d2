"""Tables of few columns: many rows whose errors depend on the regressors, and one regressor."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import Array
from benchmarks.statistics.tables import Table, load
from tests.support.kinds_of_tables import gaussian, round_bounds

Build = Callable[[np.random.Generator], Array]
MANY = 200_000  # rows of the tables on which folds are measured


@dataclass(frozen=True)
class Small:
    """How a table is made.

    Parameters
    ----------
    title
        Description on the page.
    build
        Draws the cells, the outcome last.
    """

    title: str
    build: Build


def _outcome(x: Array, errors: Array) -> Array:
    """Three regressors, and an outcome whose mean is linear in them."""
    return np.column_stack([x, x @ np.array([1.0, -0.5, 0.5]) + errors])


def _equal(rng: np.random.Generator) -> Array:
    return _outcome(gaussian(rng, MANY, 3), rng.normal(size=MANY))


def _growing(rng: np.random.Generator) -> Array:
    x = gaussian(rng, MANY, 3)
    return _outcome(x, np.exp(0.7 * x[:, 0]) * rng.normal(size=MANY))


def _proportional(rng: np.random.Generator) -> Array:
    """Amounts with errors in proportion to them."""
    x = np.exp(0.8 * gaussian(rng, MANY, 3))
    mean = x @ np.array([1.0, 0.5, 0.25])
    return np.column_stack([x, mean * np.exp(0.5 * rng.normal(size=MANY) - 0.125)])


def _tails(rng: np.random.Generator) -> Array:
    x = gaussian(rng, MANY, 3) / np.sqrt(rng.chisquare(5, (MANY, 1)) / 5)
    errors = (0.5 + np.abs(x[:, 1])) * rng.standard_t(5, MANY)
    return _outcome(x, errors)


def _groups(rng: np.random.Generator) -> Array:
    """A tenth of the rows is of a group with errors three times as large."""
    group = (rng.random(MANY) < 0.1).astype(np.float64)
    x = gaussian(rng, MANY, 2) + group[:, None] * [1.0, 0.0]
    return _outcome(np.column_stack([group, x]), (1 + 2 * group) * rng.normal(size=MANY))


def _counts(rng: np.random.Generator) -> Array:
    """A Poisson count whose mean is linear in regressors that are often zero."""
    x = np.where(rng.random((MANY, 3)) < 0.5, 0.0, np.exp(0.6 * gaussian(rng, MANY, 3)))
    return np.column_stack([x, rng.poisson(0.5 + x @ np.array([1.0, 0.5, 0.25]))])


def _curved(rng: np.random.Generator) -> Array:
    x = gaussian(rng, MANY, 3)
    return _outcome(x, 0.5 * (x[:, 0] ** 2 - 1) + rng.normal(size=MANY))


FOLDED: Mapping[str, Small] = {
    "equal errors": Small("normal regressors, errors of one size", _equal),
    "growing errors": Small("the same, errors that grow with a regressor", _growing),
    "proportional errors": Small(
        "lognormal amounts, errors in proportion to the mean", _proportional
    ),
    "heavy tails": Small("Student's t with 5 degrees of freedom, errors likewise", _tails),
    "two groups": Small("a tenth of the rows has errors three times as large", _groups),
    "Poisson": Small("a count with a linear mean, regressors that are often zero", _counts),
    "curved": Small("normal regressors, a mean that is quadratic in one", _curved),
}


def _pair(name: str) -> Build:
    """The first and the last column of a table of 20,000 rows."""

    def build(_: np.random.Generator) -> Array:
        return load(name).cells[:, [0, -1]]

    return build


PAIRS: Mapping[str, Small] = {
    f"{name}, one regressor": Small(f"the first and the last column of {name}", _pair(name))
    for name in ("normal", "lognormal", "Likert", "mixed")
}
SMALL: Mapping[str, Small] = {**FOLDED, **PAIRS}


def small_table(name: str) -> Table:
    """Make the table of that name, with a seed of its own and round bounds."""
    cells = SMALL[name].build(np.random.default_rng(zlib.crc32(name.encode())))
    return Table(cells, np.array(round_bounds(cells)))
