"""Kinds of tables whose truth is known: plain ones, and those that clipping and noise mislead."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import gamma

Array = NDArray[np.float64]
Rng = np.random.Generator
Group = Literal["plain", "discrete", "mostly zero", "tails", "spikes and codes", "missing cells"]
GROUPS: tuple[Group, ...] = (
    "plain", "discrete", "mostly zero", "tails", "spikes and codes", "missing cells",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of table.

    Parameters
    ----------
    group, title
        On pages.
    build
        Draws the law's constants and then rows, shape (n, p).
    """

    group: Group
    title: str
    build: Callable[[int, Rng], Array]


def gaussian(rng: Rng, n: int, p: int, factors: int = 3) -> Array:
    """Correlated standard normal columns: a few common factors and noise of half their power."""
    loadings = rng.normal(size=(p, factors))
    covariance = loadings @ loadings.T + 0.5 * factors * np.eye(p)
    deviations = np.sqrt(np.diag(covariance))
    root = np.linalg.cholesky(covariance / np.outer(deviations, deviations))
    rows: Array = rng.normal(size=(n, p)) @ root.T
    return rows


def round_bounds(cells: Array) -> tuple[Array, Array]:
    """Bounds of one digit around the data, as a steward may declare; shape (p,) each.

    The lower bound of a column without negative cells is zero.
    """
    least, largest = np.nanmin(cells, axis=0), np.nanmax(cells, axis=0)
    upper = np.array([_outward(value, 1) for value in largest])
    lower = np.array([_outward(value, -1) for value in least])
    lower = np.where((least >= 0) & (2 * least < largest), 0.0, lower)
    return lower, np.where(upper > lower, upper, lower + 1)


def _outward(value: float, direction: int) -> float:
    """The next of 1, 2, 5 and 10 times a power of ten, upwards or downwards."""
    if value == 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(abs(value)))
    steps = [step * power for step in (1, 2, 5, 10)]
    if (value > 0) == (direction > 0):
        size = min(step for step in steps if step >= abs(value) * (1 - 1e-12))
    else:
        size = max(step for step in steps if step <= abs(value) * (1 + 1e-12))
    return math.copysign(size, value)


def _uniform(n: int, rng: Rng) -> Array:
    uniform: Array = ndtr(gaussian(rng, n, 10))
    return uniform


def _normal(n: int, rng: Rng) -> Array:
    return gaussian(rng, n, 15)


def _off_centre(n: int, rng: Rng) -> Array:
    spread = np.array([0.05, 300.0, 5.0, 1e5, 1.0, 1.0, 1.0, 1.0])
    centre = np.array([1013.0, 20_240.0, 2010.0, 5e5, 0.0, 0.0, 3.0, -7.0])
    shifted: Array = centre + spread * gaussian(rng, n, 8)
    return shifted


def _bimodal(n: int, rng: Rng) -> Array:
    return np.where(gaussian(rng, n, 10) > 0.3, 1.0, 0.0) + 0.05 * rng.normal(size=(n, 10))


def _likert(n: int, rng: Rng) -> Array:
    return np.clip(np.round(3 + 1.1 * gaussian(rng, n, 12)), 1, 5)


def _counts(n: int, rng: Rng) -> Array:
    rates = np.exp(0.8 * gaussian(rng, n, 10) + np.linspace(-1.5, 3, 10))
    return rng.poisson(rates).astype(np.float64)


def _rare(n: int, rng: Rng) -> Array:
    """Six columns of zeros and ones, down to 0.3 % of ones."""
    rows = gaussian(rng, n, 10)
    rows[:, :6] = ndtr(rows[:, :6]) < np.array([0.5, 0.2, 0.05, 0.02, 0.01, 0.003])
    return rows


def _mostly_zero(n: int, rng: Rng, share: float, pareto: bool) -> Array:
    """Six columns with a share of positive amounts, and four normal ones."""
    rows = gaussian(rng, n, 10)
    ranks = ndtr(rows[:, :6])
    inner = np.clip((ranks - (1 - share)) / share, 1e-12, 1 - 1e-12)
    amounts = 100 * (1 - inner) ** (-1 / 2.5) if pareto else np.exp(ndtri(inner) + 5)
    rows[:, :6] = np.where(ranks > 1 - share, np.round(amounts) + 1, 0.0)
    return rows


def _student(n: int, rng: Rng, freedom: float, p: int) -> Array:
    rows: Array = gaussian(rng, n, p) / np.sqrt(rng.chisquare(freedom, (n, 1)) / freedom)
    return rows


def _lognormal(n: int, rng: Rng) -> Array:
    rows = gaussian(rng, n, 10)
    rows[:, :6] = np.exp(2 * rows[:, :6])
    return rows


def _gamma(n: int, rng: Rng) -> Array:
    ranks = ndtr(gaussian(rng, n, 10))
    shapes = np.linspace(0.3, 2, 10)
    return np.column_stack([gamma.ppf(ranks[:, j], shape) for j, shape in enumerate(shapes)])


def _joint_outliers(n: int, rng: Rng) -> Array:
    """In 0.2 % of the rows, two columns lie 30 deviations out together."""
    rows = gaussian(rng, n, 10)
    rows[rng.random(n) < 0.002, :2] += 30
    return rows


def _other_law(n: int, rng: Rng) -> Array:
    """One row of a hundred is six times as large, with other correlations."""
    rows, few = gaussian(rng, n, 10), rng.random(n) < 0.01
    rows[few] = 6 * gaussian(rng, n, 10)[few]
    return rows


def _volatile(n: int, rng: Rng) -> Array:
    """Columns whose spread varies from row to row."""
    rows: Array = gaussian(rng, n, 10) * np.exp(0.5 * rng.normal(size=(n, 1)))
    return rows


def _spikes(n: int, rng: Rng) -> Array:
    """Columns with 60 % of their cells at .5, and one with 97 % at 1."""
    rows, at = gaussian(rng, n, 10), rng.random((n, 5))
    rows[:, :5] = np.where(at < 0.6, 0.5, ndtr(rows[:, :5]))
    rows[:, 5] = np.where(rng.random(n) < 0.97, 1.0, 1 + np.exp(rows[:, 5]))
    return rows


def _atoms(n: int, rng: Rng) -> Array:
    """Single values away from zero with 90 % to all of the cells."""
    rows, at = gaussian(rng, n, 10), rng.random((n, 5))
    rows[:, 0] = np.where(at[:, 0] < 0.97, 37.0, 37 + 5 * rows[:, 0])
    rows[:, 1] = np.where(at[:, 1] < 0.995, 37.0, 60 + 5 * rows[:, 1])
    rows[:, 2] = 7.0
    rows[:, 3] = np.where(at[:, 3] < 0.9, 0.5, ndtr(rows[:, 3]))
    rows[:, 4] = np.where(at[:, 4] < 0.95, 0.0, 99_999.0)
    return rows


def _codes(n: int, rng: Rng) -> Array:
    """Codes for missing cells: 99999 in two columns at once, and -9 among answers."""
    rows, coded = gaussian(rng, n, 10), rng.random(n) < 0.01
    rows[coded, :2] = 99_999.0
    answers = np.clip(np.round(3 + rows[:, 2]), 1, 5)
    rows[:, 2] = np.where(rng.random(n) < 0.05, -9.0, answers)
    return rows


def _few_codes(n: int, rng: Rng) -> Array:
    """The code 99999 in 0.05 % of the rows, in two columns at once."""
    rows = gaussian(rng, n, 10)
    rows[rng.random(n) < 0.0005, :2] = 99_999.0
    return rows


def _scattered(n: int, rng: Rng, share: float) -> Array:
    rows = gaussian(rng, n, 10)
    return np.where(rng.random(rows.shape) < share, np.nan, rows)


def _block(n: int, rng: Rng) -> Array:
    """Half of the rows lack the same five columns."""
    rows = gaussian(rng, n, 10)
    rows[rng.random(n) < 0.5, :5] = np.nan
    return rows


def _frail(n: int, rng: Rng) -> Array:
    """A fifth of the cells is missing, more of them in some rows than in others."""
    rows = gaussian(rng, n, 10)
    chance = ndtr(ndtri(0.2) * math.sqrt(2) + rng.normal(size=(n, 1)))
    return np.where(rng.random(rows.shape) < chance, np.nan, rows)


def _where_another_is_high(n: int, rng: Rng) -> Array:
    """Cells of three columns are missing where the last one is high."""
    rows = gaussian(rng, n, 10)
    high = ndtr(2 * rows[:, -1:]) * 0.6
    rows[:, :3] = np.where(rng.random((n, 3)) < high, np.nan, rows[:, :3])
    return rows


KINDS: Mapping[str, Kind] = {
    "normal": Kind("plain", "15 normal columns", _normal),
    "uniform": Kind("plain", "10 uniform columns", _uniform),
    "off-centre": Kind("plain", "8 columns far from zero for their spread", _off_centre),
    "two modes": Kind("plain", "10 columns with two narrow modes", _bimodal),
    "Likert": Kind("discrete", "12 answers from 1 to 5", _likert),
    "counts": Kind("discrete", "10 counts of means .2 to 20", _counts),
    "rare ones": Kind("discrete", "zeros and ones, down to .3 % of ones", _rare),
    "50 % lognormal": Kind(
        "mostly zero", "half zeros, else lognormal", partial(_mostly_zero, share=0.5, pareto=False)
    ),
    "10 % lognormal": Kind(
        "mostly zero", "90 % zeros, else lognormal", partial(_mostly_zero, share=0.1, pareto=False)
    ),
    "1.3 % lognormal": Kind(
        "mostly zero",
        "98.7 % zeros, else lognormal",
        partial(_mostly_zero, share=0.013, pareto=False),
    ),
    "10 % Pareto": Kind(
        "mostly zero", "90 % zeros, else Pareto", partial(_mostly_zero, share=0.1, pareto=True)
    ),
    "1.3 % Pareto": Kind(
        "mostly zero", "98.7 % zeros, else Pareto", partial(_mostly_zero, share=0.013, pareto=True)
    ),
    "Student 4": Kind(
        "tails", "25 columns of one Student's t, 4 degrees", partial(_student, freedom=4.0, p=25)
    ),
    "Student 2.5": Kind(
        "tails", "10 columns of one Student's t, 2.5 degrees", partial(_student, freedom=2.5, p=10)
    ),
    "lognormal": Kind("tails", "6 lognormal columns, sigma 2", _lognormal),
    "gamma": Kind("tails", "10 gamma columns of shapes .3 to 2", _gamma),
    "volatile": Kind("tails", "the spread varies from row to row", _volatile),
    "joint outliers": Kind("tails", "two columns far out in .2 % of rows", _joint_outliers),
    "another law": Kind("tails", "1 % of rows larger and otherwise correlated", _other_law),
    "spikes": Kind("spikes and codes", "60 % of the cells at one value", _spikes),
    "atoms": Kind("spikes and codes", "90 % to all cells at one value, not zero", _atoms),
    "codes": Kind("spikes and codes", "codes 99999 in 1 % and -9 in 5 %", _codes),
    "few codes": Kind("spikes and codes", "code 99999 in .05 % of the rows", _few_codes),
    "scattered 3 %": Kind(
        "missing cells", "3 % missing at random", partial(_scattered, share=0.03)
    ),
    "scattered 30 %": Kind(
        "missing cells", "30 % missing at random", partial(_scattered, share=0.3)
    ),
    "block": Kind("missing cells", "half of the rows lack five columns", _block),
    "frail": Kind("missing cells", "20 %, more in some rows than in others", _frail),
    "missing where high": Kind(
        "missing cells", "missing where another column is high", _where_another_is_high
    ),
}
