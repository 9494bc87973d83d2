"""What has to be equal before numbers of several tables can be compared.

A release states numbers of its table as it was clamped and clipped. Where every release publishes
what clipping took away, the bias of clipping is known within bounds. Releases with the same
constants and the same radius have the same bias, if they are of one population, so they can be
tested without bounds: see `with_common_bias`. Those of others are compared within a bound: with w
the mean weight of the rows, clipping moves the mean of a column with bounds at a distance D by at
most (1 - w) D, and a second moment by at most (1 - w) D^2.

Cells are clamped at the bounds in use, which private constants choose for each release. So numbers
are compared as if all tables had been clamped at the narrowest of these bounds: the published
histogram of a column says how many cells are between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.table_units import TableUnits, table_units
from gramercy.estimators.uncertainty.moment_errors import moment_errors
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence, Histogram, ReleaseEvidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_SEEN = 1.0  # standard deviations of the noise that the cells between two bounds exceed
_SURE = 1.64  # standard deviations of the noise in the weight of the rows
_FARTHEST = 2.0  # of two correlations
_UNCLIPPED = 1e-6  # a movement of correlations by clipping that counts as none


@dataclass(frozen=True)
class Moved:
    """How far numbers may be moved, below and above; q columns without the intercept, own units."""

    means: tuple[Array, Array]  # shape (q,)
    variances: tuple[Array, Array]  # shape (q,)
    correlations: Array  # on both sides, shape (q, q)

    def __add__(self, other: Moved) -> Moved:
        return Moved(
            (self.means[0] + other.means[0], self.means[1] + other.means[1]),
            (self.variances[0] + other.variances[0], self.variances[1] + other.variances[1]),
            self.correlations + other.correlations,
        )


@dataclass(frozen=True)
class EqualTerms:
    """A release as it is compared with others."""

    evidence: Evidence | None  # None if its bias has no known bound, and may differ from the others
    apart: tuple[str, ...] = ()  # columns with another meaning here than in another release
    moved: Moved | None = None  # by other bounds and another radius; None without own units


def on_equal_terms(evidences: Sequence[Evidence]) -> list[EqualTerms]:
    """Releases as they are compared with each other."""
    usual = {name for each in evidences for name in each.names if name not in each.signs}
    computed = _computed_differently(evidences)
    if not all(each.unit or clipped_moments(each) is not None for each in evidences):
        evidences = [replace(each, lost=None, pooled=()) for each in evidences]
    terms = [_clipping(each) for each in evidences]
    most = max(reversed(terms), key=terms.count)
    ours = [each for each, own in zip(evidences, terms, strict=True) if own == most]
    result = []
    for each, own in zip(evidences, terms, strict=True):
        units = table_units(each)
        if units is None:
            result.append(EqualTerms(each if own == most else None))
            continue
        moved = _beyond_other_bounds(each, units, evidences)
        if each.lost is None and own != most:
            moved = sum((_most_by_clipping(one, units) for one in (each, ours[-1])), moved)
        apart = tuple(name for name in each.signs if name in usual)
        apart += tuple(name for name in each.names if name in computed)
        result.append(EqualTerms(each, apart, moved))
    return result


def of_releases(releases: Sequence[ReleaseEvidence]) -> Evidence:
    """Evidence of a release with its groups, or of several releases as if they were groups."""
    if len(releases) == 1:
        return releases[0].evidence
    return together({each.name: each.evidence for each in releases})


def together(tables: Mapping[str, Evidence]) -> Evidence:
    """Evidence of several tables by name, as if they were groups of the first one."""
    return replace(next(iter(tables.values())), groups=tuple(tables.items()))


def comparable_columns(tables: Sequence[Evidence]) -> Flags:
    """The columns, but the intercept, that partial correlations of all tables may use; shape (q,).

    Raises RequestError if their columns differ, or they clip differently by an unknown amount.
    """
    check_columns([each.names for each in tables])
    terms = on_equal_terms(tables)
    if any(
        each.evidence is None
        or (each.moved is not None and each.moved.correlations.max(initial=0.0) > _UNCLIPPED)
        for each in terms
    ):
        raise families.COMPARISON(
            "The graphs cannot be compared: rows were clipped or normalised in different ways, "
            "and it is not published what that took away.",
            "Publish all with the same constants, or with 'scaling: private'.",
        )
    moments = [moment_errors(each) for each in tables]
    clear = [each.clear_columns() & (not each.weight_lost) for each in moments]
    among: Flags = np.logical_and.reduce(clear)
    apart = {name for each in terms for name in each.apart}
    names = tables[0].names[moments[0].offset :] or ("",) * len(among)
    among &= np.array([name not in apart for name in names], dtype=bool)
    return among


def check_columns(tables: Sequence[Sequence[str]]) -> None:
    """Refuse tables, given by the names of their columns, whose partial correlations differ."""
    first, *others = map(tuple, tables)
    for other in others:
        if other != first:
            raise families.COMPARISON(
                "The graphs cannot be compared: their columns differ, or are in another order.",
                "Partial correlations are given all other columns: compare releases with the same "
                "columns in the same order. These differ: {columns}.",
                columns=tuple(sorted(set(first) ^ set(other)))
                or tuple(a for a, b in zip(first, other, strict=True) if a != b),
            )


def _computed_differently(evidences: Sequence[Evidence]) -> set[str]:
    """Columns that are not the same function in all releases, such as ranks by other histograms."""
    functions: dict[str, set[str | None]] = {}
    for each in evidences:
        for column in each.columns:
            if isinstance(column, ColumnFacts):
                own = column.derived.transform if column.derived else None
                functions.setdefault(column.name, set()).add(own)
    return {name for name, found in functions.items() if len(found) > 1}


def with_common_bias(evidences: Sequence[Evidence]) -> list[Evidence] | None:
    """Releases that clip alike, without what corrects their bias; None if they do not.

    With the same constants, the same radius and the same metric, the bias is the same if they are
    of one population. So it need not be known to test whether they are.
    """
    terms = [_clipping(each) for each in evidences]
    alike = terms[0] is not None and all(each == terms[0] for each in terms)
    if not alike or any(each.lost is None for each in evidences):
        return None
    return [replace(each, lost=None, tails={}) for each in evidences]


def _clipping(evidence: Evidence) -> object:
    """On what the bias of a release depends, apart from its table."""
    if evidence.radius is None and not evidence.unit:
        return None
    columns = {each for each in evidence.columns if each is not None}
    metrics = tuple(term.linear.tobytes() for term in evidence.terms)
    return evidence.unit, evidence.radius, frozenset(columns), metrics


def _most_by_clipping(evidence: Evidence, of: TableUnits) -> Moved:
    """The most that clipping can have moved the numbers of a release.

    `of`: the columns of the result; columns that the release lacks may be anywhere.
    """
    units = table_units(evidence)
    q = len(of.names)
    far, deviation = np.full(q, np.inf), np.ones(q)
    lost = 1.0
    if units is not None:
        place = {name: j for j, name in enumerate(units.names)}
        index = [place.get(name, -1) for name in of.names]
        known = np.array(index) >= 0
        moments = units.moments(evidence.repaired)
        ends = np.array([_ends(column) for column in evidence.columns[1:]])
        farthest = np.abs(ends - moments.mean[:, None]).max(axis=1)
        far = np.where(known, farthest[index], far)
        deviation = np.where(known, moments.standard_deviation[index], deviation)
        lost = 0.0
        if evidence.radius is not None:
            square = evidence.radius**2
            noise = _SURE * square * float(evidence.deviations[0, 0])
            lost = min(max(1 - square * float(evidence.raw[0, 0]), 0.0) + noise, 1.0)
    if lost == 0:
        zero = np.zeros(q)
        return Moved((zero, zero), (zero, zero), np.zeros((q, q)))
    relative = far / deviation
    means, squares = lost * far, lost * far**2
    pairs = lost * (np.outer(relative, relative) + np.add.outer(relative**2, relative**2) / 2)
    below = lost * deviation**2 + means**2
    return Moved(
        (means, means), (below, squares), np.minimum(np.nan_to_num(pairs, nan=np.inf), _FARTHEST)
    )


def _ends(column: ColumnFacts | LevelsFacts | None) -> tuple[float, float]:
    return (column.lower, column.upper) if isinstance(column, ColumnFacts) else (0.0, 1.0)


def _beyond_other_bounds(
    evidence: Evidence, units: TableUnits, others: Sequence[Evidence]
) -> Moved:
    """What narrower bounds of other releases would take from the numbers of this one."""
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
    return Moved((low, high), (variance, np.zeros(q)), np.zeros((q, q)))


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
