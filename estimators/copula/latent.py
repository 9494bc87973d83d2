"""The latent correlations with which the columns of a copula have the released correlations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.copula.distributions import hermite_coefficients, latent_correlations
from gramercy.estimators.copula.released import (
    Category,
    FreeChoice,
    OrderedChoice,
    ReleasedColumns,
    TableColumn,
    spans,
)
from gramercy.estimators.noise.draws import stream, symmetric_root

Array = NDArray[np.float64]


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
                shares = column.choice.shares
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


# For two numeric columns they are exact (see `latent_correlations`). For columns of levels they start from
# covariances with normal variables, which are exact to first order, and are corrected by simulation
# with a public seed. Where no correlation matrix has all of them, the nearest one is taken.

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
