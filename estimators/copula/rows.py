"""Synthetic rows, and how far they differ from the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.common.similar_names import most_similar_first
from gramercy.estimators.copula.released import (
    Category,
    FreeChoice,
    Number,
    OrderedChoice,
    ReleasedColumns,
    TableColumn,
    has_whole_numbers_alone,
    hermite_coefficients,
    latent_correlations,
    released_columns,
    spans,
)
from gramercy.estimators.noise.draws import Stream, stream, symmetric_root
from gramercy.schemas import families
from gramercy.schemas.cells import DayCells
from gramercy.schemas.column import level_names
from gramercy.schemas.derived import in_days
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_BATCH = 1 << 15  # rows drawn at a time
_MISSING_SEED = 20160302  # of a second public stream, so that missing cells change no other cell
_LARGEST_WHOLE = 2.0**53  # of which a double has every one
_MOST_PAIRS = 20_000  # of a comparison


@dataclass(frozen=True)
class Copula:
    """A Gaussian copula of the columns of a table."""

    released: ReleasedColumns  # distributions and correlations of the release
    latent: Latent  # the variables behind them

    @classmethod
    def of(cls, evidence: Evidence) -> Copula:
        """The copula of a release."""
        released = released_columns(evidence)
        return cls(released, latent_variables(released))

    def draw(self, rows: int, missing: bool = True, integers: Sequence[str] = ()) -> pd.DataFrame:
        """Synthetic rows from a public seed; more rows start with the same ones.

        `rows`: positive. `missing`: whether cells are missing, with the published shares and
        independently of all others. `integers`: numeric columns whose cells are rounded to whole
        numbers. Returns the columns of the table: numbers, and levels as the contract declares
        them. Missing cells, and cells of no declared level, are missing values. Raises RequestError
        if `rows` is not positive, or `integers` has other than numeric columns.
        """
        if rows < 1:
            raise families.ANALYSIS("The number of synthetic rows must be at least 1.")
        columns = self.latent.columns
        check_numeric(integers, [c.facts.name for c in columns if isinstance(c, Number)])
        source, gaps, root = stream(), Stream(_MISSING_SEED), self.latent.root
        slices = self.latent.slices
        batches = []
        for start in range(0, rows, _BATCH):
            size = min(_BATCH, rows - start)
            latent = source.standard_normal((size, len(root))) @ root
            hidden = gaps.random_sample((size, len(columns)))
            batches.append(
                {
                    column.facts.name: _cells(column, latent[:, own], hidden[:, k], missing)
                    for k, (column, own) in enumerate(zip(columns, slices, strict=True))
                }
            )
        table = {name: np.concatenate([each[name] for each in batches]) for name in batches[0]}
        for name in integers:
            table[name] = np.rint(table[name])
        units = {c.facts.name: c.facts.dates for c in columns if isinstance(c, Number)}
        for column in columns:
            if isinstance(column, Number) and column.facts.name not in integers:
                table[column.facts.name] = _computed(column, table, units)
        return pd.DataFrame(table)

    def in_own_types(self, rows: pd.DataFrame, integers: Sequence[str] = ()) -> pd.DataFrame:
        """The rows of `draw` with the types that the columns of the table have.

        Levels are whole numbers, truth values or texts, as they are declared, and numbers that
        stand for dates are dates. Numbers are whole if they are among `integers`, or if the
        released distribution has whole numbers alone.
        """
        return rows.assign(
            **{
                column.facts.name: _in_own_type(
                    column, rows[column.facts.name], column.facts.name in integers
                )
                for column in self.latent.columns
            }
        )


def _in_own_type(column: TableColumn, cells: pd.Series, rounded: bool) -> pd.Series:
    if isinstance(column, Number):
        unit = column.facts.dates
        if unit is None:
            whole = rounded or has_whole_numbers_alone(column.marginal)
            present = cells.dropna()
            if whole and ((present % 1 == 0) & (present.abs() < _LARGEST_WHOLE)).all():
                return cells.astype("Int64" if cells.hasnans else "int64")
            return cells
        days = np.floor(cells * unit.days + 0.5)
        return pd.Timestamp(unit.since) + pd.to_timedelta(days, unit="D")
    levels = column.facts.levels
    if set(levels) <= {"true", "false"}:
        truth = cells.map({"true": True, "false": False}).astype("boolean")
        return truth if truth.hasnans else truth.astype(bool)
    if any(isinstance(each, str) or each != int(each) for each in levels):
        return cells
    return cells.astype("Int64" if cells.hasnans else "int64")


def _computed(
    column: Number, table: Mapping[str, NDArray[Any]], units: Mapping[str, DayCells | None]
) -> NDArray[Any]:
    """The cells of a column, computed from those of others where the real ones are.

    Not if they depend on whether a cell is exactly 0, which synthetic ones hardly are.
    """
    facts = column.facts
    if facts.derived is None or (function := facts.derived.function).of_exact_cells:
        return table[facts.name]
    inputs = list[Array]()
    for read in facts.derived.inputs:
        of, _, level = read.rpartition("=")
        if read in table:
            texts = table[read].dtype == object  # of which only missing ones matter
            cells = np.where(pd.isna(table[read]), np.nan, 0.0) if texts else table[read]
            inputs.append(in_days(cells, function.unit_of(units.get(read))))
        elif of in table:
            named = pd.Series(table[of]).dropna().drop_duplicates().tolist()
            chosen = [
                each for each, text in zip(named, level_names(named), strict=True) if text == level
            ]
            inputs.append(np.isin(table[of], chosen).astype(np.float64))
        else:
            return table[facts.name]
    with np.errstate(all="ignore"):
        return np.clip(function.apply(*inputs), facts.lower, facts.upper)


def check_numeric(wanted: Sequence[str], numeric: Sequence[str]) -> None:
    """Check that all wanted columns are numeric.

    Raises RequestError with the numeric columns, those most similar to a wrong name first.
    """
    if unknown := tuple(name for name in wanted if name not in numeric):
        raise families.ANALYSIS(
            "'integers' names columns that are not numeric: {unknown}.",
            "Numeric columns, most similar first: {known}.",
            unknown=unknown,
            known=most_similar_first(unknown[0], numeric),
        )


def _cells(
    column: Number | Category, latent: Array, hidden: Array, missing: bool
) -> NDArray[np.generic]:
    if isinstance(column, Number):
        cells = column.marginal.values(latent[:, 0])
        return np.where(hidden < column.missing, np.nan, cells) if missing else cells
    levels: list[object] = list(column.facts.levels)
    texts = isinstance(levels[0], str)
    labels = np.array([*levels, None if texts else np.nan], dtype=object if texts else float)
    return labels[column.choice.chosen(latent)]


def compared_marginals(copula: Copula, rows: pd.DataFrame) -> pd.DataFrame:
    """What each column has in the release, and in synthetic rows.

    Returns ``column``, ``quantity`` (``mean``, ``standard deviation`` or ``missing``; ``share`` for
    a level, and ``no level``), ``level`` as text, ``release`` and ``synthetic``.
    """
    lines: list[tuple[str, str, str | None, float, float]] = []
    for column in copula.released.columns:
        name = column.facts.name
        cells = rows[name]
        absent = float(cells.isna().mean())
        if isinstance(column, Category):
            shares = column.shares
            for level, text, share in zip(
                column.facts.levels, level_names(column.facts.levels), shares[:-1], strict=True
            ):
                lines.append((name, "share", text, share, float((cells == level).mean())))
            lines.append((name, "no level", None, float(shares[-1]), absent))
            continue
        coefficients = hermite_coefficients(column.marginal)
        mean, deviation = float(coefficients[0]), float(np.sqrt(max(coefficients[-1], 0.0)))
        lines.append((name, "mean", None, mean, float(cells.mean())))
        lines.append((name, "standard deviation", None, deviation, float(cells.std(ddof=0))))
        lines.append((name, "missing", None, column.missing, absent))
    table = pd.DataFrame(lines, columns=["column", "quantity", "level", "release", "synthetic"])
    return table.astype({"column": "str", "quantity": "str", "level": "str"})


def compared_correlations(copula: Copula, rows: pd.DataFrame) -> pd.DataFrame:
    """Correlations of the release and of synthetic rows.

    Levels have indicators of 0 and 1; two levels of one column are left out.

    Returns ``row``, ``col``, ``release`` and ``synthetic``: the 20,000 pairs of largest difference,
    in the order of the matrix. NaN for synthetic columns of one value.
    """
    names: list[str] = []
    owners: list[int] = []
    parts = []
    for k, column in enumerate(copula.released.columns):
        cells = rows[column.facts.name]
        if isinstance(column, Number):
            names.append(column.facts.name)
            parts.append(cells.to_numpy(dtype=float)[:, None])
        else:
            names += [f"{column.facts.name}={t}" for t in level_names(column.facts.levels)]
            parts.append(np.column_stack([(cells == x).astype(float) for x in column.facts.levels]))
        owners += [k] * parts[-1].shape[1]
    # Correlations of the rows where both cells are present; NaN for a constant column.
    stacked = np.column_stack(parts)
    present = ~np.isnan(stacked)
    shifted = np.where(present, stacked - np.nanmean(stacked, axis=0), 0.0)
    flags = present.astype(float)
    count = np.maximum(flags.T @ flags, 1.0)
    mean = shifted.T @ flags / count  # of column i, over the rows where column j is present
    square = (shifted**2).T @ flags / count - mean**2
    covariance = shifted.T @ shifted / count - mean * mean.T
    with np.errstate(divide="ignore", invalid="ignore"):
        synthetic: Array = covariance / np.sqrt(square * square.T)
    i, j = np.triu_indices(len(names), 1)
    other = np.array(owners)[i] != np.array(owners)[j]
    i, j = i[other], j[other]
    released = copula.released.correlation
    if i.size > _MOST_PAIRS:
        difference = np.nan_to_num(np.abs(released - synthetic)[i, j])
        kept = np.sort(np.argsort(-difference, kind="stable")[:_MOST_PAIRS])
        i, j = i[kept], j[kept]
    labels = np.array(names, dtype=object)
    table = pd.DataFrame(
        {
            "row": labels[i],
            "col": labels[j],
            "release": released[i, j],
            "synthetic": synthetic[i, j],
        }
    )
    return table.astype({"row": "str", "col": "str"})


@dataclass(frozen=True)
class Indicators:
    """Target covariances of numeric columns, and of the indicators of all levels and of none."""

    slices: list[slice]  # those of every table column
    covariance: Array  # shape (m, m); its blocks on the diagonal are zero
    # standard deviations by the distributions of the columns; infinite for constant ones, so that
    # their correlations are zero. Shape (m,).
    deviation: Array
    # Hermite coefficients of every numeric column; None for levels
    expanded: tuple[Array | None, ...]

    @classmethod
    def of(cls, released: ReleasedColumns) -> Indicators:
        """Released correlations, times the standard deviations of the columns' distributions.

        Correlations are used, and not covariances, because the rows of a matrix are weighted where
        they were clipped, and those of histograms are not.
        """
        parts, deviations = [], []
        expanded: list[Array | None] = []
        for column, own in zip(released.columns, released.slices, strict=True):
            part = np.zeros((own.stop - own.start, len(released.correlation)))
            if isinstance(column, Category):
                shares = column.shares
                part[:, own] = np.diag(np.sqrt(shares[:-1] * (1 - shares[:-1])))
                part = np.vstack([part, -part.sum(axis=0)])
                deviations.append(np.sqrt(shares * (1 - shares)))
                expanded.append(None)
            else:
                coefficients = hermite_coefficients(column.marginal)
                expanded.append(coefficients)
                deviations.append(np.sqrt(np.maximum(coefficients[-1:], 0.0)))
                part[0, own] = deviations[-1]
            parts.append(part)
        slices, linear = spans([len(part) for part in parts]), np.vstack(parts)
        covariance = linear @ released.correlation @ linear.T
        for own in slices:
            covariance[own, own] = 0.0
        deviation = np.concatenate(deviations)
        return cls(slices, covariance, np.where(deviation > 0, deviation, np.inf), tuple(expanded))

    def difference(
        self, columns: Sequence[TableColumn], slices: Sequence[slice], latent: Array
    ) -> Array:
        """Target covariances minus those of simulated rows, shape (m, m)."""
        parts = []
        for column, own in zip(columns, slices, strict=True):
            if isinstance(column, Category):
                chosen = column.choice.chosen(latent[:, own])
                parts.append(chosen[:, None] == np.arange(column.choice.shares.size))
            else:
                parts.append(column.marginal.values(latent[:, own]))
        cells = np.column_stack(parts).astype(np.float64)
        cells -= cells.mean(axis=0)
        difference: Array = self.covariance - cells.T @ cells / len(cells)
        for own in self.slices:
            difference[own, own] = 0.0
        return difference

    def errors(self, difference: Array) -> Array:
        """Sum of the squared errors of the correlations of every table column."""
        squares = np.sum((difference / np.outer(self.deviation, self.deviation)) ** 2, axis=1)
        return np.array([float(squares[own].sum()) for own in self.slices])


# Latent correlations of two numeric columns are exact (see `latent_correlations`). Those of columns
# of levels start from covariances with normal variables, which are exact to first order, and are
# corrected by simulation with a public seed. Where no correlation matrix has all of them, the
# nearest one is taken.

_LARGEST = 0.98  # latent correlation with a variable of levels, and its multiple correlation
_CORRECTIONS, _DAMPING = 6, 0.7
_MOST_ROWS, _MOST_NUMBERS = 40_000, 4_000_000  # of the simulation
_RIDGE = 0.01
_SMALLEST = 1e-8  # eigenvalue
_STEPS = 40
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Latent:
    """The latent variables of a copula."""

    columns: tuple[TableColumn, ...]  # of the table, with the chosen kind of choice for levels
    correlation: Array  # positive definite; the identity within a table column. Shape (d, d).
    # sum of the squared errors of the correlations of every table column in a simulation; zero
    # without columns of levels. Shape (columns,).
    errors: Array

    @property
    def slices(self) -> list[slice]:
        """The latent variables of every table column."""
        return latent_slices(self.columns)

    @property
    def root(self) -> Array:
        """The symmetric square root of `correlation`, shape (d, d)."""
        return symmetric_root(self.correlation)


def latent_slices(columns: Sequence[TableColumn]) -> list[slice]:
    """The latent variables of every table column."""
    return spans([c.choice.size if isinstance(c, Category) else 1 for c in columns])


def latent_variables(released: ReleasedColumns) -> Latent:
    """Latent variables that reproduce the released correlations, as far as any do.

    All columns of levels are tried with ordered and with free choices; each column then has the
    kind that left it the smaller errors, and the best of the three attempts is returned.
    """
    targets = Indicators.of(released)
    several = [
        isinstance(c, Category) and np.sum(c.choice.shares > 0) > 2 for c in released.columns
    ]
    ordered = tuple(_ordered(c, targets, k) for k, c in enumerate(released.columns))
    first = _calibrated(ordered, targets)
    if not any(several):
        return first
    free = tuple(
        replace(c, choice=FreeChoice(c.choice.shares)) if isinstance(c, Category) and more else c
        for c, more in zip(ordered, several, strict=True)
    )
    second = _calibrated(free, targets)
    better = second.errors < first.errors
    if better.all() or not better.any():
        return second if better.all() else first
    mixed = tuple(g if take else o for o, g, take in zip(ordered, free, better, strict=True))
    attempts = (_calibrated(mixed, targets), second, first)
    return min(attempts, key=lambda each: float(each.errors.sum()))


def _ordered(column: TableColumn, targets: Indicators, index: int) -> TableColumn:
    """A column of levels in the order of their associations with all other columns."""
    if not isinstance(column, Category):
        return column
    own, shares = targets.slices[index], column.choice.shares
    with np.errstate(divide="ignore", invalid="ignore"):
        associations = np.delete(targets.covariance[own] / targets.deviation, own, axis=1)
        means = np.nan_to_num(associations / shares[:, None], posinf=0.0, neginf=0.0)
    values, vectors = np.linalg.eigh((means.T * shares) @ means)
    scores = means @ vectors[:, -1] if values.size else np.arange(shares.size, dtype=float)
    largest = scores[np.argmax(np.abs(scores))] if scores.size else 1.0
    return replace(column, choice=OrderedChoice(shares, scores if largest > 0 else -scores))


def _calibrated(columns: tuple[TableColumn, ...], targets: Indicators) -> Latent:
    """The latent correlations for given kinds of choices."""
    slices = latent_slices(columns)
    d = slices[-1].stop
    fixed, of_levels = np.zeros((d, d), dtype=bool), np.zeros((d, d), dtype=bool)
    slopes = np.zeros((targets.covariance.shape[0], d))
    for column, own, row, marginal in zip(
        columns, slices, targets.slices, targets.expanded, strict=True
    ):
        fixed[own, own] = True
        if isinstance(column, Category):
            of_levels[own, :] = of_levels[:, own] = True
            slopes[row, own] = column.choice.slopes
        elif marginal is not None:
            slopes[row, own] = marginal[1]
    numeric = [k for k, each in enumerate(targets.expanded) if each is not None]
    wanted = np.eye(d)
    if numeric:
        at = [slices[k].start for k in numeric]
        rows = [targets.slices[k].start for k in numeric]
        expanded = np.stack([each for each in targets.expanded if each is not None])
        exact = latent_correlations(expanded, targets.covariance[np.ix_(rows, rows)])
        own_fixed = np.eye(len(at), dtype=bool)
        wanted[np.ix_(at, at)] = nearest_correlation(exact, own_fixed)
    none = np.zeros(len(columns))
    if len(numeric) == len(columns):
        return Latent(columns, wanted, none)
    inverse = np.zeros((d, len(slopes)))
    for own, row in zip(slices, targets.slices, strict=True):
        if own.stop > own.start:
            inverse[own, row] = np.linalg.pinv(slopes[row, own])
    of_levels &= ~fixed
    wanted[of_levels] = (inverse @ targets.covariance @ inverse.T)[of_levels]
    # Normal draws with exactly zero means and the identity as second moment.
    number = max(min(_MOST_ROWS, _MOST_NUMBERS // max(d, 1)), 4 * d)
    drawn = stream().standard_normal((number, d))
    drawn -= drawn.mean(axis=0)
    values, vectors = np.linalg.eigh(drawn.T @ drawn / number)
    white, best = drawn @ ((vectors / np.sqrt(values)) @ vectors.T), None
    for _ in range(_CORRECTIONS):
        wanted = _feasible(wanted, columns, slices)
        latent = Latent(columns, nearest_correlation(wanted, fixed), none)
        difference = targets.difference(columns, slices, white @ latent.root)
        latent = replace(latent, errors=targets.errors(difference))
        if best is None or latent.errors.sum() < best.errors.sum():
            best = latent
        step = inverse @ difference @ inverse.T
        wanted[of_levels] = wanted[of_levels] + _DAMPING * step[of_levels]
    assert best is not None  # noqa: S101  for mypy: there is at least one correction
    return best


def _feasible(wanted: Array, columns: Sequence[TableColumn], slices: Sequence[slice]) -> Array:
    """Correlations of the variables of levels, reduced to what numeric columns leave possible.

    For each column of levels alone, so that no correlation between numeric columns suffers.
    """
    wanted = np.clip(wanted, -_LARGEST, _LARGEST)
    np.fill_diagonal(wanted, 1.0)
    numeric = [s.start for c, s in zip(columns, slices, strict=True) if not isinstance(c, Category)]
    if not numeric:
        return wanted
    between = wanted[np.ix_(numeric, numeric)] + _RIDGE * np.eye(len(numeric))
    for column, own in zip(columns, slices, strict=True):
        if not isinstance(column, Category) or own.start == own.stop:
            continue
        across = wanted[numeric, own]
        explained = across.T @ np.linalg.solve(between, across)
        largest = float(np.linalg.eigvalsh((explained + explained.T) / 2)[-1])
        if largest > _LARGEST**2:
            across = across * (_LARGEST / np.sqrt(largest))
            wanted[numeric, own] = across
            wanted[own, numeric] = across.T
    return wanted


def nearest_correlation(matrix: Array, fixed: NDArray[np.bool_]) -> Array:
    """A positive definite correlation matrix near a given one.

    `matrix`: symmetric, shape (p, p). `fixed`: entries that are those of the identity in the
    result, the diagonal among them; shape (p, p). Returns shape (p, p): the same matrix if it is
    one already.

    Alternating projections with Dykstra's correction (Higham 2002), at most 40 of them; then the
    smallest step towards the identity that leaves no eigenvalue below 1e-8.
    """
    identity = np.eye(len(matrix))
    matrix = np.where(fixed, identity, matrix)
    values, vectors = np.linalg.eigh(matrix)
    correction = np.zeros_like(matrix)
    for _ in range(_STEPS):
        if values[0] >= -_TOLERANCE:
            break
        shifted = matrix - correction
        values, vectors = np.linalg.eigh(shifted)
        projected = (vectors * np.maximum(values, 0.0)) @ vectors.T
        correction = projected - shifted
        matrix = np.where(fixed, identity, (projected + projected.T) / 2)
        values = np.linalg.eigvalsh(matrix)
    missing = _SMALLEST - float(values[0])
    step = missing / (1 - values[0]) if missing > 0 else 0.0
    return (1 - step) * matrix + step * identity
