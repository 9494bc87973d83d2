"""What a release says about every table column, as the copula needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.copula.clamped_normal import clamped_normal
from gramercy.estimators.copula.hermite import Marginal
from gramercy.estimators.copula.histogram_marginal import histogram_marginal
from gramercy.estimators.copula.levels import FreeChoice, LevelChoice
from gramercy.estimators.own_units import OwnMoments, own_units, weight_lost
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Evidence, Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]

_EXPLAINED = 3.0  # standard deviations of noise that explain a share of no level


@dataclass(frozen=True)
class Number:
    """A numeric column with its distribution.

    Parameters
    ----------
    facts
        Of the contract or the release.
    marginal
        Of the cells that are present.
    missing
        Share of missing cells.
    """

    facts: ColumnFacts
    marginal: Marginal
    missing: float


@dataclass(frozen=True)
class Category:
    """A column of levels with their shares; the last share is that of cells of no level."""

    facts: LevelsFacts
    choice: LevelChoice


TableColumn = Number | Category


@dataclass(frozen=True)
class ReleasedColumns:
    """All columns of the table, and the correlations of their matrix columns.

    Parameters
    ----------
    columns
        In the table's order.
    correlation
        Of all numeric columns and indicators of levels, in the order of the matrix; zero where
        nothing is known. Shape (q, q).
    """

    columns: tuple[TableColumn, ...]
    correlation: Array

    @property
    def slices(self) -> list[slice]:
        """The matrix columns of every table column."""
        sizes = [1 if isinstance(c, Number) else len(c.facts.levels) for c in self.columns]
        ends = np.cumsum(sizes)
        return [slice(int(end) - size, int(end)) for end, size in zip(ends, sizes, strict=True)]


def released_columns(evidence: Evidence) -> ReleasedColumns:
    """Distributions and correlations of a release with means.

    Columns have their published histograms; without histograms, means and standard deviations of
    the denoised matrix, and shares of levels from it.

    Raises
    ------
    RequestError
        If rows were divided by their own length, or there is no intercept; or if the noise hides
        the weight of the rows, and there are no histograms.
    """
    units = own_units(evidence)
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


def _columns(evidence: Evidence, moments: OwnMoments) -> tuple[TableColumn, ...]:
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
    facts: ColumnFacts, histogram: Histogram | None, moments: OwnMoments, at: int
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
