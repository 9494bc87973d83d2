"""What a release says about every table column, as the copula needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

from gramercy.estimators.copula.distributions import Marginal, clamped_normal, histogram_marginal
from gramercy.estimators.table_units import TableMoments, table_units, weight_lost
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Evidence, Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

# Columns of levels as functions of standard normal variables.
#
# An ordered choice cuts one variable at thresholds. It can give strong associations, but the same
# order of levels to all of them.
#
# A free choice has an independent variable for each level, and a row has the level with the largest
# log(share_k) + g_k, where g_k = -log(-log Phi(y_k)) has a Gumbel distribution. Every level may
# have its own covariances with other columns, but they cannot be as strong.
#
# In both, every level has exactly its share.

Array = NDArray[np.float64]

_GRID = np.linspace(-9.0, 9.0, 3601)


class LevelChoice(Protocol):
    """The way from latent variables to the levels of a column."""

    @property
    def shares(self) -> Array:
        """Of all levels, and of cells of no declared level; sum 1, shape (K,)."""
        ...

    @property
    def size(self) -> int:
        """Number of latent variables."""
        ...

    @property
    def slopes(self) -> Array:
        """Covariances of the indicators of levels with the latent variables; shape (K, size).

        A normal variable with the covariances c to the latent ones has the covariances `slopes` c
        to the indicators.
        """
        ...

    def chosen(self, latent: Array) -> NDArray[np.intp]:
        """Index of the level of every row; `latent` has shape (rows, size)."""
        ...


@dataclass(frozen=True)
class OrderedChoice:
    """Levels by thresholds of one variable; see `LevelChoice`."""

    shares: Array  # of all levels, and of cells of no declared level; sum 1, shape (K,)
    scores: Array  # by which levels are sorted; shape (K,)

    @property
    def size(self) -> int:
        """One variable; none if there is only one level."""
        return int(self._order.size > 1)

    @property
    def slopes(self) -> Array:
        slopes = np.zeros((self.shares.size, self.size))
        if self.size:
            density = np.exp(-(self._thresholds**2) / 2) / np.sqrt(2 * np.pi)
            slopes[self._order, 0] = -np.diff(density, prepend=0.0, append=0.0)
        return slopes

    def chosen(self, latent: Array) -> NDArray[np.intp]:
        if not self.size:
            return np.full(len(latent), self._order[0])
        return self._order[np.searchsorted(self._thresholds, latent[:, 0])]

    @property
    def _order(self) -> NDArray[np.intp]:
        order = np.argsort(self.scores, kind="stable")
        return order[self.shares[order] > 0]

    @property
    def _thresholds(self) -> Array:
        thresholds: Array = ndtri(np.minimum(np.cumsum(self.shares[self._order])[:-1], 1.0))
        return thresholds


@dataclass(frozen=True)
class FreeChoice:
    """Levels by the largest of several values; see `LevelChoice`."""

    shares: Array  # of all levels, and of cells of no declared level; sum 1, shape (K,)

    @property
    def possible(self) -> NDArray[np.intp]:
        """Indices of the levels with a positive share; shape (k,)."""
        return np.flatnonzero(self.shares > 0)

    @property
    def size(self) -> int:
        """One variable for each possible level; none if there is only one level."""
        return self.possible.size if self.possible.size > 1 else 0

    def chosen(self, latent: Array) -> NDArray[np.intp]:
        if not self.size:
            return np.full(len(latent), self.possible[0])
        # The largest log(share) + g belongs to the smallest of these exponential variables.
        arrival = -log_ndtr(latent) / self.shares[self.possible]
        indices: NDArray[np.intp] = self.possible[arrival.argmin(axis=1)]
        return indices

    @property
    def slopes(self) -> Array:
        """Given that level k has the largest value, Phi(y_k) is V^share_k with V uniform.

        Which of the other levels is largest does not depend on y_k.
        """
        slopes = np.zeros((self.shares.size, self.size))
        for j, k in enumerate(self.possible[: self.size]):
            share = self.shares[k]
            # E Phi^-1(V^share), V uniform: the mean of the largest of 1 / share normal variables.
            log_density = (1 / share - 1) * log_ndtr(_GRID) - _GRID**2 / 2
            density = np.exp(log_density - log_density.max())
            own = share * float(density @ _GRID / density.sum())
            slopes[:, j] = -own * self.shares / (1 - share)
            slopes[k, j] = own
        return slopes


_EXPLAINED = 3.0  # standard deviations of noise that explain a share of no level


@dataclass(frozen=True)
class Number:
    """A numeric column with its distribution."""

    facts: ColumnFacts  # of the contract or the release
    marginal: Marginal  # of the cells that are present
    missing: float  # share of missing cells


@dataclass(frozen=True)
class Category:
    """A column of levels with their shares; the last share is that of cells of no level."""

    facts: LevelsFacts
    choice: LevelChoice


TableColumn = Number | Category


def spans(sizes: Sequence[int]) -> list[slice]:
    """Neighbouring slices of these sizes."""
    ends = np.cumsum(sizes)
    return [slice(int(end) - size, int(end)) for end, size in zip(ends, sizes, strict=True)]


@dataclass(frozen=True)
class ReleasedColumns:
    """All columns of the table, and the correlations of their matrix columns."""

    columns: tuple[TableColumn, ...]  # in the table's order
    # of all numeric columns and indicators of levels, in the order of the matrix; zero where
    # nothing is known. Shape (q, q).
    correlation: Array

    @property
    def slices(self) -> list[slice]:
        """The matrix columns of every table column."""
        return spans([1 if isinstance(c, Number) else len(c.facts.levels) for c in self.columns])


def released_columns(evidence: Evidence) -> ReleasedColumns:
    """Distributions and correlations of a release with means.

    Columns have their published histograms; without histograms, means and standard deviations of
    the denoised matrix, and shares of levels from it.

    Raises RequestError if rows were divided by their own length, or there is no intercept; or if
    the noise hides the weight of the rows, and there are no histograms.
    """
    units = table_units(evidence)
    if units is None:
        raise wordings.analysis_needs_means("synthetic")
    lost = any(weight_lost(m, evidence.deviations) for m in (evidence.raw, evidence.repaired))
    if lost and not evidence.marginals:
        raise families.ANALYSIS(
            "The noise hides the weight of the rows, so nothing is known of the columns.",
            "Release with a larger epsilon, or with 'scaling: private', which publishes "
            "histograms.",
        )
    moments = units.moments(evidence.repaired)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.nan_to_num(moments.correlation, nan=0.0, posinf=0.0, neginf=0.0)
    hidden = np.diag(units.unknown(evidence.raw, evidence.deviations))
    correlation[hidden, :] = correlation[:, hidden] = 0.0
    columns = _columns(evidence, moments)
    return ReleasedColumns(columns, np.clip(correlation, -1.0, 1.0))


def _columns(evidence: Evidence, moments: TableMoments) -> tuple[TableColumn, ...]:
    histograms = {each.column: each for each in evidence.marginals}
    columns: list[TableColumn] = []
    sources = evidence.columns[1:]
    at = 0
    while at < len(sources):
        facts = sources[at]
        if isinstance(facts, LevelsFacts):
            end = at + len(facts.levels)
            shares = _shares(histograms.get(facts.name), moments.mean[at:end], evidence, at)
            columns.append(Category(facts, FreeChoice(shares)))
            at = end
        elif facts is not None:
            present = float(evidence.present[at + 1]) if evidence.present else 1.0
            marginal = _marginal(facts, histograms.get(facts.name), moments, at)
            columns.append(Number(facts, marginal, 1 - min(max(present, 0.0), 1.0)))
            at += 1
    return tuple(columns)


def _marginal(
    facts: ColumnFacts, histogram: Histogram | None, moments: TableMoments, at: int
) -> Marginal:
    lower, upper = facts.lower, facts.upper
    if histogram is not None:
        found = histogram_marginal(histogram, lower, upper, facts.scale)
        if found is not None:
            return found
    mean = np.nan_to_num(moments.mean[at], nan=facts.centre)
    deviation = float(np.nan_to_num(moments.standard_deviation[at]))
    return clamped_normal(float(mean), deviation, lower, upper)


def _shares(
    histogram: Histogram | None, means: Sequence[float] | Array, evidence: Evidence, at: int
) -> Array:
    """Shares of the levels and, last, of cells of no level; not negative, sum 1."""
    if histogram is not None:
        found, sd = histogram.count.astype(np.float64), histogram.sd
        found = found / max(evidence.rows, 1.0)
        sd /= max(evidence.rows, 1.0)
    else:
        found = np.append(means, 1 - np.sum(means))
        weight = max(float(evidence.raw[0, 0]), np.finfo(float).tiny)
        sd = float(evidence.deviations[0, at + 1]) / weight * np.sqrt(len(means) + 1)
    found = np.maximum(np.nan_to_num(found), 0.0)
    if found[-1] <= max(_EXPLAINED * sd, 1e-9):
        found[-1] = 0.0
    if not found.sum() > 0:
        found[:-1] = 1.0
    shares: Array = found / found.sum()
    return shares
