"""Kinds of tables on which no constant of the rule was chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import beta, gamma, nbinom

from benchmarks.arrays import Array, Rng
from benchmarks.statistics.tables import Table
from tests.support.kinds_of_tables import gaussian, round_bounds


def _ranks(n: int, rng: Rng, p: int) -> Array:
    ranks: Array = np.clip(ndtr(gaussian(rng, n, p)), 1e-12, 1 - 1e-12)
    return ranks


def _inner(ranks: Array, share: float) -> Array:
    """Ranks among the cells that differ from the usual one."""
    return np.clip((ranks - 1 + share) / share, 1e-12, 1 - 1e-12)


def _beta(n: int, rng: Rng) -> Array:
    rows: Array = 40 + 20 * beta.ppf(_ranks(n, rng, 12), 2, 5)
    return rows


def _weibull(n: int, rng: Rng) -> Array:
    return (-np.log1p(-_ranks(n, rng, 10))) ** (1 / np.linspace(0.6, 3, 10)) * np.geomspace(
        1, 900, 10
    )


def _many(n: int, rng: Rng) -> Array:
    rows = gaussian(rng, n, 24, factors=5)
    rows[:, :10] = ndtr(rows[:, :10]) * 7 - 2
    rows[:, 10:15] = rows[:, 10:15] > 0.7
    return rows


def _household(n: int, rng: Rng) -> Array:
    """Ages, years, answers, hours that are often 40, and incomes."""
    rows = gaussian(rng, n, 11)
    rows[:, 0] = np.clip(np.round(46 + 18 * rows[:, 0]), 17, 95)
    rows[:, 1] = np.round(1975 + 14 * rows[:, 1])
    rows[:, 2:4] = rows[:, 2:4] > np.array([0.2, 1.6])
    rows[:, 4] = np.where(
        np.abs(rows[:, 4]) < 0.8, 40, np.clip(np.round(38 + 11 * rows[:, 4]), 1, 90)
    )
    rows[:, 5:8] = np.round(np.exp(10 + np.array([0.5, 0.8, 1.1]) * rows[:, 5:8]))
    return rows


def _insurance(n: int, rng: Rng) -> Array:
    """Counts of claims and amounts where there are any."""
    rows, ranks = gaussian(rng, n, 10), _ranks(n, rng, 3)
    for j, rate in enumerate((0.06, 0.2, 0.9)):
        number = nbinom.ppf(ranks[:, j], 0.6, 0.6 / (0.6 + rate))
        rows[:, 2 * j] = number
        rows[:, 2 * j + 1] = number * np.round(np.exp(6 + 1.1 * rows[:, 2 * j + 1]))
    return rows


def _rain(n: int, rng: Rng) -> Array:
    """Amounts in tenths, of 20 to 97 % zeros."""
    rows = gaussian(rng, n, 10)
    ranks = ndtr(rows)
    for j, share in enumerate((0.8, 0.45, 0.2, 0.1, 0.03)):
        amount = np.round(gamma.ppf(_inner(ranks[:, j], share), 0.5, scale=9), 1) + 0.1
        rows[:, j] = np.where(ranks[:, j] > 1 - share, amount, 0.0)
    rows[:, 5:] = 1010 + 8 * rows[:, 5:]
    return rows


def _balances(n: int, rng: Rng) -> Array:
    """Zero in 70 to 98 %, otherwise debts or credits."""
    rows, at = gaussian(rng, n, 10), rng.random((n, 5))
    amounts = np.sign(rows[:, :5] - 0.4) * np.round(np.exp(5 + 1.2 * np.abs(rows[:, :5])))
    rows[:, :5] = np.where(at < np.array([0.7, 0.85, 0.92, 0.95, 0.98]), 0.0, amounts)
    return rows


def _capped(n: int, rng: Rng) -> Array:
    """Percentages, of which 30 to 96 % are 100, and some are 0."""
    rows = gaussian(rng, n, 9)
    rows[:, :5] = np.clip(100 + 25 * (rows[:, :5] - ndtri([0.7, 0.5, 0.15, 0.08, 0.04])), 0, 100)
    return rows


def _usual(n: int, rng: Rng) -> Array:
    """A usual value away from zero in 60 to 99 %, the others above or around it."""
    rows, at = gaussian(rng, n, 10), rng.random((n, 5))
    shares = np.array([0.6, 0.85, 0.93, 0.97, 0.99])
    rows[:, :5] = np.where(at < shares, 20.5, 20.5 + 3 * rows[:, :5])
    rows[:, 2] = np.where(at[:, 2] < shares[2], 12.0, 12 + np.exp(1 + rows[:, 6]))
    return rows


def _answers(n: int, rng: Rng) -> Array:
    """Answers from 0 to 10 with codes -1, 77, 99 and 9999."""
    rows = np.clip(np.round(6 + 2.2 * gaussian(rng, n, 12)), 0, 10)
    codes = ((-1, 0.03), (77, 0.01), (99, 0.04), (9999, 0.006), (999, 0.02))
    for j, (code, share) in enumerate(codes):
        rows[rng.random(n) < share, j] = code
    return rows


def _burr(n: int, rng: Rng) -> Array:
    """Two-sided tails, each column its own, with exponents from 2.2 to 6."""
    ranks = _ranks(n, rng, 10)
    folded = np.minimum(ranks, 1 - ranks) * 2
    return np.sign(ranks - 0.5) * (folded ** (-1 / np.geomspace(2.2, 6, 10)) - 1)


def _regimes(n: int, rng: Rng) -> Array:
    """One row of twenty is four times as large, with other correlations."""
    rows, other = gaussian(rng, n, 10), gaussian(rng, n, 10)
    return np.where(rng.random((n, 1)) < 0.05, 4 * other, rows)


def _geometric(n: int, rng: Rng) -> Array:
    rates = np.geomspace(0.9, 0.02, 10)
    rows: Array = np.floor(np.log1p(-_ranks(n, rng, 10)) / np.log1p(-rates))
    return rows


def _sensors(n: int, rng: Rng) -> Array:
    """Cells missing in 0 to 25 %, two columns at once, and one code of a broken sensor."""
    rows = 300 + 15 * gaussian(rng, n, 10)
    rows[rng.random(n) < 0.015, 4] = -999.0
    rows = np.where(rng.random(rows.shape) < np.linspace(0, 0.25, 10), np.nan, rows)
    rows[rng.random(n) < 0.1, :2] = np.nan
    return rows


def _holes(n: int, rng: Rng) -> Array:
    """Cells missing in 4 % of every one of 24 columns, more of them in some rows."""
    rows = gaussian(rng, n, 24)
    chance = 0.08 * rng.random((n, 1))
    return np.where(rng.random(rows.shape) < chance, np.nan, rows)


def _flagged(n: int, rng: Rng) -> Array:
    """Rare zeros and ones, and rare amounts with them."""
    rows = gaussian(rng, n, 10)
    flags = ndtr(rows[:, :4]) < np.array([0.1, 0.03, 0.01, 0.004])
    rows[:, 4:8] = flags * np.round(np.exp(7 + 0.8 * rows[:, 4:8]))
    rows[:, :4] = flags
    return rows


KINDS: Mapping[str, Callable[[int, Rng], Array]] = {
    "beta": _beta,
    "Weibull": _weibull,
    "many columns": _many,
    "household": _household,
    "insurance": _insurance,
    "rain": _rain,
    "balances": _balances,
    "capped": _capped,
    "usual value": _usual,
    "answers": _answers,
    "Burr": _burr,
    "regimes": _regimes,
    "geometric": _geometric,
    "sensors": _sensors,
    "flags": _flagged,
    "many holes": _holes,
    "wide bounds": _household,
    "no bounds": _insurance,
    "wrong count": _beta,
}
_WIDTHS = 300.0
_TOO_MANY = {"wrong count": 1.09}


def table_of(kind: str, n: int, rng: Rng) -> Table:
    """A table of that kind, with round bounds unless its name says otherwise."""
    cells = KINDS[kind](n, rng)
    if kind == "no bounds":
        return Table(cells, None)
    lower, upper = round_bounds(cells)
    beyond = _WIDTHS * (upper - lower) * (kind == "wide bounds")
    return Table(cells, np.array([lower - beyond, upper + beyond]))


def declared(kind: str, n: int) -> int:
    """The number of rows that the contract says."""
    return round(n * _TOO_MANY.get(kind, 1.0))
