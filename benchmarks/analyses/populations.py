"""Populations whose least-squares coefficients are known, and how far estimates are from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from benchmarks.analyses.tables import SMALL, small_table
from benchmarks.arrays import Array
from benchmarks.statistics.tables import Table, load


@dataclass(frozen=True)
class Fitted:
    """A regression in the columns' own units; k regressors.

    Parameters
    ----------
    coefficients
        The intercept, first, and the coefficients of the fit; shape (1 + k,).
    lower, upper
        Intervals of the k coefficients without the intercept, shape (k,); NaN where unknown. None
        if the method has no intervals.
    """

    coefficients: Array
    lower: Array | None = None
    upper: Array | None = None


@dataclass(frozen=True)
class Population:
    """The rows of a table, of which samples are drawn with replacement.

    The outcome is the last column, and all others are regressors.

    Parameters
    ----------
    table
        Without missing cells.
    """

    table: Table

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.table.n

    @property
    def p(self) -> int:
        """Number of columns."""
        return self.table.p

    @cached_property
    def coefficients(self) -> Array:
        """Least-squares coefficients, the intercept first; shape (1 + k,)."""
        x = self.table.cells[:, :-1] - self._mean[:-1]
        slopes = np.linalg.lstsq(x, self.table.cells[:, -1] - self._mean[-1])[0]
        return np.append(self._mean[-1] - slopes @ self._mean[:-1], slopes)

    @cached_property
    def r_squared(self) -> float:
        """Share of the outcome's variance that these coefficients explain."""
        return 1 - self._squared_error(self.coefficients) / float(self._covariance[-1, -1])

    @cached_property
    def _mean(self) -> Array:
        mean: Array = self.table.cells.mean(axis=0)
        return mean

    @cached_property
    def _covariance(self) -> Array:
        covariance: Array = np.cov(self.table.cells, rowvar=False, ddof=0)
        return covariance

    def sample(self, rng: np.random.Generator) -> Table:
        """As many rows as the population has, drawn with replacement; the same bounds."""
        drawn = rng.integers(0, self.table.n, size=self.table.n)
        return Table(self.table.cells[drawn], self.table.bounds)

    def scores(self, fits: Sequence[Fitted]) -> dict[str, float]:
        """How far the fits of several samples are from the population.

        Returns
        -------
        dict
            ``error``: root mean square error of the standardised coefficients. ``loss``: by how
            much R squared in the population is below that of least squares, on average; one
            release counts at most 1. With intervals, ``coverage``, the smallest coverage of a
            coefficient that is known in at least half of the releases (``worst``), and the share
            that is ``known``.
        """
        deviations = np.sqrt(np.diag(self._covariance))
        off = np.array([each.coefficients[1:] for each in fits]) - self.coefficients[1:]
        error = off * deviations[:-1] / deviations[-1]
        result = {
            "error": float(np.sqrt(np.mean(error**2))),
            "loss": float(np.mean([self._loss(each.coefficients) for each in fits])),
        }
        return result | coverage(fits, self.coefficients[1:])

    def _loss(self, coefficients: Array) -> float:
        left = self._squared_error(coefficients) / float(self._covariance[-1, -1])
        return min(1.0, self.r_squared - (1 - left))

    def _squared_error(self, coefficients: Array) -> float:
        """Mean squared error of predictions."""
        residual = np.append(-coefficients[1:], 1.0)
        bias = residual @ self._mean - coefficients[0]
        return float(residual @ self._covariance @ residual + bias**2)


def coverage(fits: Sequence[Fitted], truth: Array) -> dict[str, float]:
    """How often the intervals of several samples cover; empty without intervals.

    Parameters
    ----------
    fits
        Of k coefficients without the intercept.
    truth
        The coefficients that they should cover: shape (k,), or (fits, k) if they differ.

    Returns
    -------
    dict
        See `Population.scores`.
    """
    bounds = [(fit.lower, fit.upper) for fit in fits]
    if any(lower is None for lower, _ in bounds):
        return {}
    lower, upper = np.array(bounds, dtype=np.float64).transpose(1, 0, 2)
    known = np.isfinite(lower)
    covered = known & (lower <= truth) & (truth <= upper)
    often = known.mean(axis=0) >= 0.5
    each = covered.sum(axis=0)[often] / known.sum(axis=0)[often]
    result = {"known": float(known.mean())}
    if known.any():
        result["coverage"] = float(covered.sum() / known.sum())
    if often.any():
        result["worst"] = float(each.min())
    return result


@lru_cache(maxsize=1)
def population(name: str) -> Population:
    """The population of that table."""
    return Population(small_table(name) if name in SMALL else load(name))
