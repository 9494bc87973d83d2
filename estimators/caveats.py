"""What the numbers of a release do not say: limits of a column, or of the whole release.

An interval covers noise, sampling, and the bias of clipping as far as published numbers bound it. A
*caveat* says what no interval can: that only the differences from one value are published, that a
tail goes on where the noise hides it, that cells are missing in the same rows, or how many cells
may lie anywhere and leave no trace. All are functions of what is published.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.common.kept_results import kept
from gramercy.estimators.accuracy.clipped_accuracy import (
    ClippedAccuracy,
    Traceless,
    traceless_cells,
    traceless_rows,
)
from gramercy.estimators.accuracy.clipped_means import clamped_columns
from gramercy.estimators.accuracy.correlation_accuracy import ScaledMoments
from gramercy.estimators.clipped_moments import ClippedMoments
from gramercy.estimators.derived_columns import BackTransform
from gramercy.estimators.far_cells import noisy_cells
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.table_comparison import NUMBER, over_time
from gramercy.estimators.table_units import TableUnits, table_units
from gramercy.estimators.uncertainty.table_entries import table_deviations, table_means
from gramercy.scaling.column_scan import NoisyCells
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.problem import Notice

Array = NDArray[np.float64]
Kind = Literal[
    "sign",
    "constant",
    "clamped",
    "tail",
    "far cells",
    "missing",
    "missing together",
    "not at random",
    "hidden cells",
    "hidden rows",
    "count",
    "tables differ",
]

_LONG = 1.15  # upper bound of a standard deviation relative to the estimate, by clipping alone
_TOGETHER = 0.05  # change of a correlation if cells are missing in the same rows
_VISIBLE, _CLEAR = 3.5, 5.0  # deviations of counts of bins
_STAGES = ((None, 4.0), (1, 16.0))  # number of stages, and ratio of distances around a gap
_MANY_MISSING = 0.2  # share of the cells of a column
_CONFIDENCE = 0.95
_SURE = 3.0  # standard deviations of the noise
_DIFFERENT = 0.01  # false discovery rate: of pools of one population, it is the share with a caveat


@dataclass(frozen=True)
class Caveat:
    """What should be known before a number is used.

    Parameters
    ----------
    kind
        ``sign``: only which cells differ from one value is published; ``constant``: no cell is seen
        to differ from one value; ``clamped``: cells near or beyond the bounds in use; ``tail``: a
        standard deviation that may be larger, by long rows of which the noise hides a part;
        ``far cells``: some that are far from all others, as a code for missing values is;
        ``missing``: a large share of missing or unreadable cells;
        ``missing together``: correlations that depend on which cells are missing together, where
        that is not published; ``not at random``: rows with missing cells are unlike the others;
        ``hidden cells`` and ``hidden rows``: how many may be unlike all others and leave no trace;
        ``count``: the declared number of rows or persons contradicts the published counts;
        ``tables differ``: the tables of a pool have different means, deviations or correlations.
    notice
        Its words, the code of their family, and the names and numbers in them.
    column
        The table column; None if it is about the whole release.
    release
        Of a pool, the release that it is about; None if it is about the pool, or there is no name.
    """

    kind: Kind
    notice: Notice
    column: str | None = None
    release: str | None = None

    @property
    def sentence(self) -> str:
        """What should be known, with the release if it is about one of several."""
        return f"{self.release}: {self.notice.sentence}" if self.release else self.notice.sentence

    def __str__(self) -> str:
        return f"{self.sentence} {self.notice.hint}".strip()

    def described(self) -> dict[str, Any]:
        """Its kind, its words and its facts as plain data."""
        return {
            "kind": self.kind,
            "column": self.column,
            "release": self.release,
            "code": self.notice.code,
            "sentence": self.sentence,
            "hint": self.notice.hint,
            "facts": dict(self.notice.facts),
        }


@kept
def caveats(evidence: Evidence) -> tuple[Caveat, ...]:
    """The caveats of a release: those of its columns in their order, then those of the release.

    Parameters
    ----------
    evidence
        A release. Without an intercept it has no means, and no caveats of columns. Of a pool, what
        depends on histograms is that of its releases; of several with the same caveat, that of the
        release with the largest weight.
    """
    units = table_units(evidence)
    if units is None:
        return (*contradicted_count(evidence), *_tables_differ(evidence))
    hidden = _hidden(evidence, units)
    found = [*_tails(evidence, units, hidden), *_missing(evidence)]
    if evidence.pooled:
        found += [*_of_releases(evidence), *_tables_differ(evidence)]
    else:
        found += _of_histograms(evidence, hidden)
    order = {name: k for k, name in enumerate(dict.fromkeys(_names(evidence)))}
    found.sort(key=lambda each: order.get(each.column or "", len(order)))
    return tuple(found)


_BY_MOMENTS = ("tail", "missing together", "not at random")
_BY_NOISE = ("constant", "hidden cells", "hidden rows")  # the less noise, the less of it


def _of_releases(pool: Evidence) -> Iterator[Caveat]:
    """What the histograms of the releases of a pool say."""
    parts = sorted(pool.pooled, key=lambda each: -each.weight)
    found: dict[tuple[str, str | None, str | None], Caveat] = {}
    for k, part in enumerate(parts):
        known_better = _BY_NOISE if pool.same_rows and k else ()
        for each in caveats(part.evidence):
            if each.kind in (*_BY_MOMENTS, *known_better):
                continue
            named = replace(each, release=each.release or part.name or None)
            of_table = named.release if each.column is None else None
            found.setdefault((each.kind, each.column, of_table), named)
    yield from found.values()


def _tables_differ(pool: Evidence) -> Iterator[Caveat]:
    """Whether tables of different rows are unlike each other, with false discoveries controlled."""
    if not pool.pooled or pool.same_rows:
        return
    tables = {str(k): each.evidence for k, each in enumerate(pool.pooled)}
    tests = over_time(tables).changes
    differing = tests[tests["adjusted"] <= _DIFFERENT]
    if differing.empty:
        return
    kind, column, other = differing.loc[differing["p_value"].idxmin(), NUMBER]
    notice = families.READING(
        "The pooled tables differ: in {differing} of {tested} means, standard deviations and "
        "correlations, most clearly in the {kind} of {column}.",
        "A pool is for tables of one population: its numbers are averages of unlike ones, and its "
        "intervals do not contain the differences. Compare the releases: first.compare(second).",
        differing=len(differing),
        tested=int(tests["p_value"].notna().sum()),
        kind=kind,
        column=f"{column} with {other}" if other else column,
    )
    yield Caveat("tables differ", notice)


def _of_histograms(evidence: Evidence, hidden: Mapping[str, Traceless]) -> Iterator[Caveat]:
    """What the histograms of a release say, besides the tails."""
    yield from _nearly_constant(evidence)
    yield from _clamped(evidence)
    yield from _far_cells(evidence)
    yield from _hidden_cells(evidence, hidden)
    yield from _hidden_rows(evidence)
    yield from contradicted_count(evidence)


def _missing(evidence: Evidence) -> Iterator[Caveat]:
    """Correlations that depend on which cells are missing."""
    found = [*(_not_at_random if evidence.has_missing_matrix else _missing_together)(evidence)]
    named = {each.column for each in found}
    yield from found
    yield from (each for each in _many_missing(evidence) if each.column not in named)


def contradicted_count(evidence: Evidence) -> tuple[Caveat, ...]:
    """Whether the declared number of rows or persons is off by more than the noise; also alone."""
    counted, declared = evidence.counted, evidence.declared
    if counted is None or declared is None or abs(counted[0] - declared) <= _SURE * counted[1]:
        return ()
    number, sd = counted
    notice = families.READING(
        "The contract states {declared} {unit}, and the published counts give {counted}, with "
        "noise of standard deviation {sd:.2g}.",
        "Numbers are computed for those that were counted. Correct the contract for the next "
        "release.",
        declared=round(declared),
        unit=_unit(evidence),
        counted=round(number),
        sd=sd,
    )
    return (Caveat("count", notice),)


def _unit(evidence: Evidence) -> str:
    return "persons" if evidence.persons else "rows"


def of_column(all_caveats: Sequence[Caveat], column: str) -> tuple[Caveat, ...]:
    """Those of one column."""
    return tuple(each for each in all_caveats if each.column == column)


def kinds_of(all_caveats: Sequence[Caveat], column: str) -> str:
    """The kinds of a column's caveats, for a table: such as ``tail; hidden cells``."""
    return "; ".join(each.kind for each in of_column(all_caveats, column))


def caveats_table(found: Iterable[Caveat]) -> pd.DataFrame:
    """One line each: ``column`` (empty for the whole release), ``kind``, ``code`` and its words."""
    lines = [
        (each.column or "", each.kind, each.notice.code, each.sentence, each.notice.hint)
        for each in found
    ]
    names = ["column", "kind", "code", "sentence", "hint"]
    return pd.DataFrame(lines, columns=names, dtype="str")


def _names(evidence: Evidence) -> list[str]:
    """The table column of every matrix column without the intercept."""
    return [column.name for column in evidence.columns[1:] if column is not None]


def _bounds(evidence: Evidence) -> dict[str, tuple[float, float]]:
    """The declared bounds of the columns that have some."""
    return {
        column.name: limits
        for column, limits in zip(evidence.columns, evidence.bounds, strict=False)
        if column is not None and limits is not None
    }


def _nearly_constant(evidence: Evidence) -> Iterator[Caveat]:
    """Columns of which nearly all cells have one value, and the others are not seen."""
    accuracy, signs = ClippedAccuracy.of(evidence), set(evidence.signs)
    apart = signs
    if accuracy is not None:
        apart = signs | {
            n for n, is_one in zip(accuracy.names, accuracy.apart, strict=True) if is_one
        }
    for column in evidence.columns:
        if not isinstance(column, ColumnFacts) or column.name not in apart:
            continue
        usual = UsualValue.of(evidence, column.name)
        if usual is None:
            continue
        if column.name in signs:
            notice = families.NOISE(
                "At most {most} of {cells} cells of {column} differ from {value:.6g}.",
                "Only which cells differ is published, so the mean and the standard deviation are "
                "unknown, and correlations are those of whether a cell differs.",
                column=column.name,
                most=usual.most,
                cells=usual.cells,
                value=column.centre,
            )
            yield Caveat("sign", notice, column.name)
        else:
            notice = families.NOISE(
                "{column} is constant as far as the noise can tell: at most {most} of {cells} "
                "cells are outside of [{lower:.6g}, {upper:.6g}].",
                "Its standard deviation and its correlations are unknown.",
                column=column.name,
                most=usual.most,
                cells=usual.cells,
                lower=usual.lower,
                upper=usual.upper,
            )
            yield Caveat("constant", notice, column.name)


@dataclass(frozen=True)
class UsualValue:
    """The bin that nearly all cells of a column are in."""

    lower: float
    upper: float
    cells: int  # number of cells with a value
    most: int  # the largest number of cells outside, with three standard deviations of the noise

    @classmethod
    def of(cls, evidence: Evidence, column: str) -> UsualValue | None:
        """The bin with the most cells by all stages; None without histograms."""
        found = noisy_cells(evidence, column)
        if found is None:
            return None
        most = int(np.argmax(found.counts))
        others, sd = found.others(most)
        reach = math.ceil(max(others, 0.0) + _SURE * sd)
        lower, upper = float(found.edges[most]), float(found.edges[most + 1])
        return cls(lower, upper, round(found.cells), min(reach, round(found.cells)))


def decisive(evidence: Evidence) -> tuple[Caveat, ...]:
    """The caveats on whose account a release is not what it seems, however small the noise is.

    They are cells far from all others that have most of a column's variance, and large shares of
    cells that are missing or unreadable.
    """
    if table_units(evidence) is None or evidence.pooled:
        return ()
    far = (each for each in _far_cells(evidence) if each.notice.facts["carries"])
    return (*far, *_many_missing(evidence))


def _many_missing(evidence: Evidence) -> Iterator[Caveat]:
    """Columns of which a large share is missing."""
    present = dict(zip(_names(evidence), evidence.present[1:], strict=False))
    for name, share in present.items():
        if 1 - share > _MANY_MISSING:
            notice = families.READING(
                "{share:.3g} % of the cells of {column} are missing or could not be read.",
                "Its numbers are those of the other cells. Ask the curator why they are missing: "
                "numbers in another notation are, and may be the large ones.",
                share=100 * (1 - share),
                column=name,
            )
            yield Caveat("missing", notice, name)


def _far_cells(evidence: Evidence) -> Iterator[Caveat]:
    """Columns with cells in one place, far from all others, which have many values."""
    for column in evidence.columns:
        if not isinstance(column, ColumnFacts):
            continue
        # Bins of the last stage are as wide as such cells make them, and may have all others in
        # one; those of the first are octaves, of which two modes may leave some empty.
        stages = ((noisy_cells(evidence, column.name, most), gap) for most, gap in _STAGES)
        shown = [(each, gap) for each, gap in stages if each is not None]
        for outwards in (1, -1):
            found = ((each, _isolated(each, outwards, gap)) for each, gap in shown)
            cells, isolated = next((each for each in found if each[1] is not None), (None, None))
            if cells is None or isolated is None:
                continue
            number, carries = isolated
            notice = families.TAILS(
                "About {cells} cells of {column} are from {lower:.6g} to {upper:.6g}, far from all "
                "others{effect}.",
                "If that is a code for missing values, such as 99999 or -9, list it for this "
                "column in the contract: 'missing: [99999]'.",
                column=column.name,
                cells=round(float(cells.counts[number])),
                lower=float(cells.edges[number]),
                upper=float(cells.edges[number + 1]),
                effect=", and have most of its variance" if carries else "",
                carries=carries,
            )
            yield Caveat("far cells", notice, column.name)


def _isolated(cells: NoisyCells, outwards: int, gap: float) -> tuple[int, bool] | None:
    """The bin beyond a gap behind all others, on one side; None if there is none.

    Also whether its cells have most of the variance. A gap ends more than `gap` times as far from
    the most frequent bin as it begins. The bins inside it, on both sides, are several: a column of
    two values has no code for a missing one.
    """
    most = int(np.argmax(cells.counts))
    middle = cells.edges[most] / 2 + cells.edges[most + 1] / 2
    ends = np.abs(np.stack([cells.edges[:-1], cells.edges[1:]]) - middle)
    near, far = ends.min(axis=0), ends.max(axis=0)
    evidence = cells.counts / cells.deviations
    seen = np.flatnonzero(evidence >= _VISIBLE)
    if not seen.size:
        return None
    candidate = int(seen[-1] if outwards > 0 else seen[0])
    inside = seen[far[seen] < near[candidate]]
    same_side = seen[((seen - most) * outwards > 0) & (seen != candidate)]
    alone = inside.size > 1 and near[candidate] > gap * far[inside].max()
    if not (alone and evidence[candidate] > _CLEAR and np.isin(same_side, inside).all()):
        return None
    of_others = float((cells.counts[inside] * far[inside] ** 2).sum())
    return candidate, bool(cells.counts[candidate] * near[candidate] ** 2 > of_others)


def _clamped(evidence: Evidence) -> Iterator[Caveat]:
    facts = {column.name: column for column in evidence.columns if isinstance(column, ColumnFacts)}
    for name in clamped_columns(evidence):
        notice = families.TAILS(
            "Cells of {column} seem to lie near or beyond the bounds in use, [{lower:.6g}, "
            "{upper:.6g}], to which they are clamped.",
            "Its mean and standard deviation are those of the clamped cells. Quantiles from the "
            "histograms are of cells that are not clamped there. A code for missing values belongs "
            "in the contract.",
            column=name,
            lower=facts[name].lower,
            upper=facts[name].upper,
        )
        yield Caveat("clamped", notice, name)


def _tails(
    evidence: Evidence, units: TableUnits, hidden: Mapping[str, Traceless]
) -> Iterator[Caveat]:
    """Columns whose variance may be much larger, by long rows of which the noise hides a part.

    `hidden`: what cells beyond all that the histograms show could do; they bound it as well.
    """
    moments = clipped_moments(evidence)
    if moments is None:
        return
    known = moments.known & np.array([name not in evidence.signs for name in units.names])
    ratios = np.where(known, _largest_ratio(moments), 0.0)
    deviations = units.scale * np.sqrt(np.maximum(moments.variance, 0.0))
    bounded = _bounds(evidence).keys() & {each.column for each in evidence.marginals}
    possible_ones = _largest_deviations(evidence, units)
    for column, deviation, ratio, most in zip(
        evidence.columns[1:], deviations, ratios, possible_ones, strict=True
    ):
        if not isinstance(column, ColumnFacts) or ratio <= _LONG:
            continue
        possible = min(float(deviation * ratio), most)
        if possible <= _LONG * deviation or (
            column.name in bounded
            and (column.name not in hidden or possible >= hidden[column.name].possible)
        ):
            continue
        notice = families.TAILS(
            "Clipping shortens long rows, and the noise hides how much of that is due to {column}: "
            "its standard deviation is {deviation:.3g}, and may be as large as {possible:.3g}.",
            "{remedy}",
            column=column.name,
            deviation=float(deviation),
            possible=possible,
            remedy=_remedy_of_tail(evidence, column),
        )
        yield Caveat("tail", notice, column.name)


def _remedy_of_tail(evidence: Evidence, column: ColumnFacts) -> str:
    if _has_two_values(evidence, column.name):
        return "Its two values could be declared as levels, whose shares are counted."
    others = [each for each in evidence.columns if isinstance(each, ColumnFacts)]
    shorter = [
        each.name
        for each in others
        if (back := BackTransform.from_facts(each)) is not None and back.of == column.name
    ]
    if shorter:
        return f"Use quantiles, or {shorter[0]}, which has a shorter tail."
    if column.derived is not None:  # nothing is computed from what is computed
        return "Use quantiles."
    function = "log1p" if column.lower >= 0 else "asinh"
    return (
        "Use quantiles. The curator can publish a function of it with a shorter tail, such as "
        f"{function}({column.name})."
    )


def _largest_deviations(evidence: Evidence, units: TableUnits) -> Array:
    """Largest standard deviations within the declared bounds, given the means; else infinite."""
    lower, upper = table_means(evidence, units).interval(_CONFIDENCE, "table")
    limits = dict.fromkeys(units.names, (-np.inf, np.inf)) | _bounds(evidence)
    low, high = np.array([limits[name] for name in units.names]).T
    with np.errstate(invalid="ignore"):
        mean = np.clip((low + high) / 2, np.maximum(lower, low), np.minimum(upper, high))
        most: Array = np.sqrt((high - mean) * (mean - low))
    return np.where(np.isfinite(most), most, np.inf)


def _has_two_values(evidence: Evidence, column: str) -> bool:
    """Whether two bins have all cells, as far as the noise can tell."""
    cells = noisy_cells(evidence, column)
    if cells is None:
        return False
    largest = np.argsort(cells.counts)[-2:]
    others = cells.cells - float(cells.counts[largest].sum())
    return others <= _SURE * float(np.hypot.reduce(cells.deviations[largest]))


def _largest_ratio(moments: ClippedMoments) -> Array:
    """Largest standard deviations by what clipping hides, relative to the estimates."""
    variance = np.maximum(moments.variance, 1e-12)
    above = moments.variance_shift[1] + moments.variance_bias
    ratio: Array = np.sqrt(np.maximum(variance + above, 0.0) / variance)
    return ratio


def _missing_together(evidence: Evidence) -> Iterator[Caveat]:
    accuracy, scaled = ClippedAccuracy.of(evidence), ScaledMoments.of(evidence)
    if scaled is None:
        return
    changes = np.abs(scaled.jointly_missing() if accuracy is None else accuracy.missing)
    names = _names(evidence)
    for k, name in enumerate(names):
        partner, missing = int(np.argmax(changes[k])), 1 - float(scaled.present[k])
        if missing > 0 and changes[k, partner] > _TOGETHER:
            notice = families.READING(
                "{share:.3g} % of the cells of {column} are missing. Depending on the rows in "
                "which they are, its correlation with {partner} is off by up to {change:.2g}.",
                "Numbers are those of cells that are present, as if cells were missing "
                "independently of all values.",
                column=name,
                share=100 * missing,
                partner=names[partner],
                change=float(changes[k, partner]),
            )
            yield Caveat("missing together", notice, name)


def _not_at_random(evidence: Evidence) -> Iterator[Caveat]:
    moments = clipped_moments(evidence)
    if moments is None:
        return
    names, changes = _names(evidence), moments.correlation_missing
    for k, share in enumerate(evidence.present[1:]):
        partner = int(np.argmax(changes[k]))
        if share < 1 and changes[k, partner] > _TOGETHER:
            notice = families.READING(
                "{share:.3g} % of the cells of {column} are missing, in rows that are unlike the "
                "others. Its correlation with {partner} is that of the rows with both; that of all "
                "rows may differ by {change:.2g}.",
                "Ask why cells are missing before you speak of all rows.",
                column=names[k],
                share=100 * (1 - share),
                partner=names[partner],
                change=float(changes[k, partner]),
            )
            yield Caveat("not at random", notice, names[k])


def _hidden(evidence: Evidence, units: TableUnits) -> dict[str, Traceless]:
    """The columns whose standard deviation depends on cells that noise hides."""
    bounds = _bounds(evidence)
    if not bounds:
        return {}
    means, deviations = (
        np.where(each.estimable, each.estimate, np.nan)
        for each in (table_means(evidence, units), table_deviations(evidence, units))
    )
    return {each.column: each for each in traceless_cells(evidence, deviations, means, bounds)}


def _hidden_cells(evidence: Evidence, hidden: Mapping[str, Traceless]) -> Iterator[Caveat]:
    bounds = _bounds(evidence)
    for each in hidden.values():
        notice = families.NOISE(
            "Up to {cells} cells of {column} ({share:.2g} %) may lie anywhere within the declared "
            "bounds [{lower:.6g}, {upper:.6g}] and leave no trace in what is published: if all "
            "were at a bound, the standard deviation would be {possible:.3g} instead of "
            "{deviation:.3g}.",
            "Narrower bounds in the contract, a larger epsilon or more rows would tell.",
            column=each.column,
            cells=each.cells,
            share=100 * each.share,
            lower=bounds[each.column][0],
            upper=bounds[each.column][1],
            deviation=each.deviation,
            possible=each.possible,
        )
        yield Caveat("hidden cells", notice, each.column)


def _hidden_rows(evidence: Evidence) -> Iterator[Caveat]:
    rows = traceless_rows(evidence)
    if rows is not None:
        notice = families.NOISE(
            "Up to {hidden} of {rows} {unit} may be unlike all others and leave no trace in what "
            "is published.",
            "No interval and no verdict is about them. A larger epsilon or more {unit} would tell.",
            hidden=min(rows, round(evidence.rows)),
            rows=round(evidence.rows),
            unit=_unit(evidence),
        )
        yield Caveat("hidden rows", notice)
