"""Everything the public report says, worked out from a release and its estimates alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy import estimators
from gramercy.archive.estimate_bundle import EstimateBundle
from gramercy.archive.release_bundle import ReleaseBundle
from gramercy.estimators.moments import centred, means, without_means
from gramercy.schemas.contract import INTERCEPT
from gramercy.schemas.manifest import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]

INSIDE = 2.0  # deviations: an entry within them cannot be told from noise
_MOSTLY = 0.8  # of the draws: an edge that comes back
_MOST = 25  # rows of a table on the page; the files hold all


@dataclass(frozen=True)
class Entry:
    """One entry of the matrix, for a table; the correlation is that of the repaired matrix."""

    row: str
    col: str
    value: float
    sd: float
    correlation: float

    @property
    def deviations(self) -> float:
        """How far it lies from zero, in standard deviations of the noise."""
        return abs(self.value) / self.sd


@dataclass(frozen=True)
class Correlations:
    """Released correlations.

    Parameters
    ----------
    names
        Of the columns; the intercept is none of them where it took the means out.
    matrix
        NaN where a column's own variation is lost in the noise.
    hidden
        Which entries lie inside their noise, or belong to a column that does.
    centred
        Whether they are about the means; else about the public centres.
    """

    names: list[str]
    matrix: Array
    hidden: NDArray[np.bool_]
    centred: bool


def correlations(bundle: ReleaseBundle) -> Correlations:
    """Correlations of the matrix as released, about the means where an intercept carries them.

    Those of noisy rows are about the public centres all the same: see `estimators.moments`.
    """
    facts, law = bundle.manifest, bundle.manifest.noise
    names, matrix = facts.names, bundle.unbiased
    sd = bundle.deviations
    if facts.kind == "precision":
        told = _scaled(_with_signs(matrix), sd)
        return Correlations(names, told, (np.abs(matrix) <= INSIDE * sd) | np.isnan(told), False)
    found = centred(matrix, law) if facts.intercept and len(names) > 1 else None
    if found is not None:
        names, matrix, sd = names[1:], found.matrix, found.sd
    told = _scaled(matrix, sd)
    hidden = (np.abs(matrix) <= INSIDE * sd) | np.isnan(told)
    return Correlations(names, told, hidden, found is not None)


def _with_signs(precision: Array) -> Array:
    """A precision matrix with the signs of its partial correlations off the diagonal."""
    found: Array = 2 * np.diag(np.diag(precision)) - precision
    return found


def _scaled(matrix: Array, sd: Array) -> Array:
    diagonal = np.diag(matrix)
    known = np.where(diagonal > INSIDE * np.diag(sd), diagonal, np.nan)
    found: Array = np.clip(matrix / np.sqrt(np.outer(known, known)), -1, 1)
    return found


def _repaired_correlations(bundle: ReleaseBundle, about_means: bool) -> Array:
    """Of the repaired matrix, shape (p, p); NaN where there is none."""
    p = len(bundle.manifest.names)
    found = np.full((p, p), np.nan)
    first = int(about_means and bundle.repaired[0, 0] > 0)
    matrix = without_means(bundle.repaired) if first else bundle.repaired
    if bundle.manifest.kind == "precision":
        matrix = _with_signs(matrix)
    found[first:, first:] = _scaled(matrix, np.zeros_like(matrix))
    return found


def strongest(bundle: ReleaseBundle, about_means: bool) -> list[Entry]:
    """The largest off-diagonal entries, largest first."""
    correlation = _repaired_correlations(bundle, about_means)
    names, sd = bundle.manifest.names, bundle.deviations
    rows, cols = np.triu_indices(len(names), 1)
    size = -np.abs(bundle.unbiased[rows, cols])
    first = np.argpartition(size, min(_MOST, size.size) - 1)[:_MOST] if size.size else rows
    return [
        Entry(
            names[i],
            names[j],
            float(bundle.unbiased[i, j]),
            float(sd[i, j]),
            float(correlation[i, j]),
        )
        for i, j in sorted(
            ((rows[k], cols[k]) for k in first), key=lambda at: -abs(float(bundle.unbiased[at]))
        )
    ]


@dataclass(frozen=True)
class Listing:
    """The first lines of a table.

    Parameters
    ----------
    name
        Of the table.
    head, lines
        What the page shows of it.
    numbers
        Which columns are numbers.
    total
        How many lines there are.
    aside
        Whether only some readers want it.
    """

    name: str
    head: list[str]
    lines: list[list[Any]]
    numbers: list[bool]
    total: int
    aside: bool

    @classmethod
    def of(cls, name: str, table: pd.DataFrame) -> Listing:
        """From a sealed table."""
        few = table.iloc[:_MOST, :_MOST]
        numbers = [pd.api.types.is_numeric_dtype(kind) for kind in few.dtypes]
        lines = [list(line) for line in few.itertuples(index=False)]
        return cls(name, list(few.columns), lines, numbers, len(table), name in _ASIDE)


_ASIDE = {"laws", "means", "precision", "tuning"}


@dataclass(frozen=True)
class Shown:
    """What the page says of one estimate.

    Parameters
    ----------
    id, name, settings, tuning
        Of the estimate; `settings` in words, where they are not the usual ones.
    quantity
        What its edges weigh.
    weights
        Of the edges, zero where there is none, shape (p, p); None of an estimate without a graph.
    edges
        How many there are.
    strongest
        (row, column, weight), strongest first.
    again
        Share of the draws of this release anew in which every pair is an edge, shape (p, p); None
        where that was not tried.
    names
        The p columns: all but the intercept.
    tables
        Its tables, those that are looked at in passing last.
    """

    id: str
    name: str
    settings: str
    tuning: Mapping[str, float]
    quantity: str
    weights: Array | None
    edges: int
    strongest: list[tuple[str, str, float, float | None]]
    again: Array | None
    names: Sequence[str]
    tables: Sequence[Listing]

    @property
    def sparse(self) -> bool:
        """Whether it is a graph that lacks an edge, so that it is worth drawing."""
        p = len(self.names)
        return self.weights is not None and self.edges < p * (p - 1) // 2

    @property
    def kept(self) -> int:
        """How many edges come back in at least four draws of five."""
        if self.again is None or self.weights is None:
            return 0
        return int(np.triu((self.weights != 0) & (self.again >= _MOSTLY), 1).sum())

    @property
    def others(self) -> float:
        """The share of draws in which a pair that is no edge becomes one, on average."""
        if self.again is None or self.weights is None:
            return 0.0
        absent = np.triu(self.weights == 0, 1)
        return float(self.again[absent].mean()) if absent.any() else 0.0

    @classmethod
    def of(cls, bundle: EstimateBundle, again: Array | None = None) -> Shown:
        """From a sealed estimate, and how often its edges come back: see `second_look`."""
        facts, names = bundle.manifest, bundle.manifest.names
        weights, strongest, edges = None, [], 0
        if bundle.edges is not None:
            # The constant goes with everything: given it, the rest is about the means.
            first = int(names[0] == INTERCEPT)
            names, weights = names[first:], bundle.edges[first:, first:]
            again = None if again is None else again[first:, first:]
            rows, cols = np.nonzero(np.triu(weights, 1))
            order = np.argsort(-np.abs(weights[rows, cols]), kind="stable")[:12]
            edges = rows.size
            strongest = [
                (
                    names[rows[k]],
                    names[cols[k]],
                    float(weights[rows[k], cols[k]]),
                    None if again is None else float(again[rows[k], cols[k]]),
                )
                for k in order
            ]
        return cls(
            facts.estimate,
            str(facts.estimator["name"]),
            _settings(facts.estimator),
            facts.tuning,
            _QUANTITY.get(facts.kind, "weight"),
            weights,
            edges,
            strongest,
            again,
            names,
            sorted(
                (Listing.of(name, table) for name, table in bundle.tables.items() if len(table)),
                key=lambda each: each.aside,
            ),
        )


def _settings(estimator: Mapping[str, Any]) -> str:
    """Settings that are not the usual ones, in words."""
    usual = estimators.registry[estimator["name"]](name=estimator["name"]).model_dump()
    unusual = {key: value for key, value in estimator.items() if value != usual.get(key)}
    said = {True: "yes", False: "no"}
    words = (
        (k.replace("_", " "), said[v] if isinstance(v, bool) else v) for k, v in unusual.items()
    )
    return ", ".join(f"{key} {value}" for key, value in words)


_QUANTITY = {
    "precision": "partial correlation",
    "covariance": "correlation",
}


@dataclass(frozen=True)
class Group:
    """Means of a group of rows: all of them, or those of one level.

    Parameters
    ----------
    name
        Of the group.
    share
        Of the rows, with its deviation.
    means
        By column, in its own units, with deviations.
    """

    name: str
    share: tuple[float, float]
    means: Mapping[str, tuple[float, float]]


def groups(bundle: ReleaseBundle) -> list[Group]:
    """Means, sizes and class means, where the matrix carries a column of ones.

    None of noisy rows: see `estimators.moments`.
    """
    facts = bundle.manifest
    if not facts.intercept or facts.kind == "precision":
        return []
    overall = means(bundle.unbiased, facts.noise, 0)
    if overall is None:
        return []
    columns = facts.behind
    found: list[Group] = []
    numbers = [(at, c) for at, c in enumerate(columns) if isinstance(c, ColumnFacts)][:_MOST]
    for at, (name, column) in enumerate(zip(facts.names, columns, strict=True)):
        given = overall if column is None else None
        if isinstance(column, LevelsFacts):
            given = means(bundle.unbiased, facts.noise, at)
        if given is None or len(found) > _MOST:
            continue
        share = (float(overall.value[at]), float(overall.sd[at]))
        in_units = {
            c.name: (c.centre + c.scale * float(given.value[k]), c.scale * float(given.sd[k]))
            for k, c in numbers
        }
        found.append(Group(name, share, in_units))
    return found


def parameters(facts: Mapping[str, Any], at: str = "") -> list[tuple[str, str]]:
    """Every parameter of a manifest, by its path."""
    told: list[tuple[str, str]] = []
    for key, value in facts.items():
        path = f"{at}.{key}" if at else key
        if isinstance(value, Mapping):
            told += parameters(value, path)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            numbered = {str(place): each for place, each in enumerate(value)}
            told += parameters(numbered, path) if value else [(path, "none")]
        else:
            told.append((path, "none" if value is None else str(value)))
    return told
