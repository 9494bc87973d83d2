"""What has to be equal before numbers of several tables can be compared.

A release states numbers of its table as it was clamped and clipped. Where every release publishes
what clipping took away, the bias of clipping is known within bounds. Otherwise only releases with
the same constants and the same radius are compared: of one population, they have the same bias.

Cells are clamped at the bounds in use, which private constants choose for each release. So numbers
are compared as if all tables had been clamped at the narrowest of these bounds: the published
histogram of a column says how many cells lie between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.table_units import table_units
from gramercy.schemas.evidence import Evidence, Histogram
from gramercy.schemas.facts import ColumnFacts

Array = NDArray[np.float64]

_SEEN = 1.0  # standard deviations of the noise that the cells between two bounds exceed


@dataclass(frozen=True)
class EqualTerms:
    """A release as it is compared with others; q columns without the intercept."""

    evidence: Evidence | None  # None if its bias has no known bound, and may differ from the others
    apart: tuple[str, ...] = ()  # columns with another meaning here than in another release
    # what narrower bounds of other releases may take from the means, below and above, and from the
    # variances, in the columns' units; shape (q,). None without columns in own units.
    means: tuple[Array, Array] | None = None
    variances: Array | None = None


def on_equal_terms(evidences: Sequence[Evidence]) -> list[EqualTerms]:
    """Releases as they are compared with each other."""
    alike = _with_equal_bias(evidences)
    usual = {name for each in evidences for name in each.names if name not in each.signs}
    return [
        EqualTerms(None)
        if each is None
        else EqualTerms(
            each,
            tuple(name for name in each.signs if name in usual),
            *_beyond_other_bounds(each, [other for other in alike if other is not None]),
        )
        for each in alike
    ]


def _with_equal_bias(evidences: Sequence[Evidence]) -> list[Evidence | None]:
    """The releases, without lost moments if not all have them; None for other constants."""
    if all(each.unit or clipped_moments(each) is not None for each in evidences):
        return [*evidences]
    # Most are compared where each says what its clipped rows are.
    plain = [replace(each, lost=None) for each in evidences]
    terms = [_clipping(each) for each in plain]
    chosen = max(reversed(terms), key=terms.count)
    return [each if own == chosen else None for each, own in zip(plain, terms, strict=True)]


def _clipping(evidence: Evidence) -> object:
    """On what the bias of a release depends, apart from its table."""
    if evidence.radius is None and not evidence.unit:
        return None
    columns = {each for each in evidence.columns if isinstance(each, ColumnFacts)}
    return evidence.unit, evidence.radius, frozenset(columns)


def _beyond_other_bounds(
    evidence: Evidence, others: Sequence[Evidence]
) -> tuple[tuple[Array, Array], Array] | tuple[None, None]:
    units = table_units(evidence)
    if units is None:
        return None, None
    marginals = {each.column: each for each in evidence.marginals}
    moments = units.moments(evidence.repaired)
    q = len(units.names)
    low, high, variance = np.zeros(q), np.zeros(q), np.zeros(q)
    for j, (name, column) in enumerate(zip(units.names, evidence.columns[1:], strict=True)):
        if not isinstance(column, ColumnFacts) or name not in marginals or name in evidence.signs:
            continue
        lower, upper = _narrowest(name, others)
        rows = evidence.rows * float(units.present[j])
        if lower < upper and rows > 0:
            between = _Between(marginals[name], column, rows)
            below, above = between.cells(lower, -1.0), between.cells(upper, 1.0)
            high[j], low[j] = below.moved, above.moved
            mean = float(moments.mean[j])
            variance[j] = below.lost_square(mean) + above.lost_square(mean)
    return (low, high), variance


def _narrowest(name: str, evidences: Sequence[Evidence]) -> tuple[float, float]:
    """The highest lower and the lowest upper bound of a column whose values are published."""
    columns = [
        column
        for each in evidences
        if name not in each.signs
        for column in each.columns
        if isinstance(column, ColumnFacts) and column.name == name
    ]
    return max(c.lower for c in columns), min(c.upper for c in columns)


@dataclass(frozen=True)
class _Cells:
    """Cells beyond a bound, bin by bin."""

    bound: float
    shares: Array
    middle: Array

    @property
    def moved(self) -> float:
        """How far a clamp at the bound would move the mean."""
        return float(self.shares @ np.abs(self.middle - self.bound))

    def lost_square(self, mean: float) -> float:
        """What a clamp at the bound would take from the variance, at most."""
        squares = (self.middle - mean) ** 2 - (self.bound - mean) ** 2
        return max(float(self.shares @ squares), 0.0)


@dataclass(frozen=True)
class _Between:
    """The cells of a histogram, clamped at the bounds of its release."""

    histogram: Histogram
    column: ColumnFacts
    rows: float

    def cells(self, bound: float, side: float) -> _Cells:
        """The cells beyond a bound on the upper (1) or the lower (-1) side, if they are seen."""
        # On the lower side, the axis is mirrored.
        low, high = self.histogram.lower[:-1] * side, self.histogram.upper[:-1] * side
        if side < 0:
            low, high = high, low
        own = self.column.upper if side > 0 else -self.column.lower
        low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
        edge = bound * side
        start, end = np.clip(low, edge, own), np.clip(high, edge, own)
        finite = np.isfinite(low) & np.isfinite(high)
        width = np.where(finite & (high > low), high - low, 1.0)
        beyond = np.where(high > edge, np.clip((high - np.maximum(low, edge)) / width, 0.0, 1.0), 0)
        part = np.where(np.isinf(high) & (high > 0), 1.0, beyond)
        counts = part * self.histogram.count[:-1]
        total, noise = float(counts.sum()), self.histogram.sd * float(np.linalg.norm(part))
        seen = np.maximum(counts, 0.0)
        if edge >= own or total <= _SEEN * noise or not seen.any():
            return _Cells(bound, np.zeros(1), np.full(1, bound))
        shares = seen / seen.sum() * total / self.rows
        return _Cells(bound, shares, side * (start + end) / 2)
