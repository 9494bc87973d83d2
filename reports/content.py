"""Everything the public report says, worked out from a release and its estimates alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.release import EstimateBundle, ReleaseBundle
from estimators.moments import means
from schemas.contract import INTERCEPT
from schemas.manifest import ColumnFacts, LevelsFacts, ReleaseManifest

Array = NDArray[np.float64]

INSIDE = 2.0  # deviations: an entry within them cannot be told from noise
_MOST = 25  # rows of a table on the page; the files hold all


@dataclass(frozen=True)
class Entry:
    """One entry of the matrix, for a table; the correlation is that of the denoised matrix."""

    row: str
    col: str
    value: float
    sd: float
    correlation: float

    @property
    def deviations(self) -> float:
        """How far it lies from zero, in standard deviations of the noise."""
        return abs(self.value) / self.sd


def correlations(bundle: ReleaseBundle) -> tuple[Array, NDArray[np.bool_]]:
    """Released correlations, and which of them lie inside their noise.

    Returns
    -------
    ndarray, ndarray of bool, shape (p, p)
        NaN where a column's own variation is lost in the noise.
    """
    raw, law = bundle.raw, bundle.manifest.noise
    diagonal = np.diag(raw)
    known = np.where(diagonal > INSIDE * law.sd_diagonal, diagonal, np.nan)
    found = np.clip(raw / np.sqrt(np.outer(known, known)), -1, 1)
    hidden = np.abs(raw) <= INSIDE * law.sd_off_diagonal
    np.fill_diagonal(hidden, diagonal <= INSIDE * law.sd_diagonal)
    return found, hidden


def strongest(bundle: ReleaseBundle) -> list[Entry]:
    """The off-diagonal entries that stand out most, strongest first."""
    root = np.sqrt(np.diag(bundle.denoised))
    root[root <= 0] = np.nan
    correlation = np.clip(bundle.denoised / np.outer(root, root), -1, 1)
    names, sd = bundle.manifest.names, bundle.manifest.noise.sd_off_diagonal
    rows, cols = np.triu_indices(len(names), 1)
    size = -np.abs(bundle.raw[rows, cols])
    first = np.argpartition(size, min(_MOST, size.size) - 1)[:_MOST] if size.size else rows
    return [
        Entry(names[i], names[j], float(bundle.raw[i, j]), sd, float(correlation[i, j]))
        for i, j in sorted(
            ((rows[k], cols[k]) for k in first), key=lambda at: -abs(float(bundle.raw[at]))
        )
    ]


def partial_correlations(precision: Array) -> Array:
    """-T_ij / sqrt(T_ii T_jj), zero on the diagonal; shape (p, p)."""
    root = np.sqrt(np.diag(precision))
    found: Array = -precision / np.outer(root, root)
    np.fill_diagonal(found, 0.0)
    return found


@dataclass(frozen=True)
class Graph:
    """What the page says of one estimate.

    Parameters
    ----------
    id, name, penalty
        Of the estimate.
    partial
        Partial correlations, shape (p, p).
    edges
        How many are not zero.
    strongest
        (row, column, partial correlation), strongest first.
    """

    id: str
    name: str
    penalty: float
    partial: Array
    edges: int
    strongest: list[tuple[str, str, float]]

    @property
    def sparse(self) -> bool:
        """Whether it has zeros, so that a graph is worth drawing."""
        p = self.partial.shape[0]
        return bool(self.edges < p * (p - 1) // 2)

    @classmethod
    def of(cls, bundle: EstimateBundle) -> Graph:
        """From a sealed estimate."""
        facts = bundle.manifest
        partial = partial_correlations(bundle.precision)
        rows, cols = np.nonzero(np.triu(partial, 1))
        order = np.argsort(-np.abs(partial[rows, cols]), kind="stable")[:12]
        return cls(
            facts.estimate,
            str(facts.estimator["name"]),
            facts.penalty,
            partial,
            rows.size,
            [
                (facts.names[rows[k]], facts.names[cols[k]], float(partial[rows[k], cols[k]]))
                for k in order
            ],
        )


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
    """Means, sizes and class means, where the matrix carries a column of ones."""
    facts = bundle.manifest
    if not facts.intercept:
        return []
    overall = means(bundle.raw, facts.noise, 0)
    if overall is None:
        return []
    found = []
    for at, name in enumerate(facts.names):
        column = _column(facts, name)
        given = overall if name == INTERCEPT else None
        if isinstance(column, LevelsFacts):
            given = means(bundle.raw, facts.noise, at)
        if given is None:
            continue
        share = (float(overall.value[at]), float(overall.sd[at]))
        found.append(Group(name, share, _in_units(facts, given.value, given.sd)))
    return found


def _in_units(facts: ReleaseManifest, value: Array, sd: Array) -> dict[str, tuple[float, float]]:
    told = {}
    for at, name in enumerate(facts.names):
        column = _column(facts, name)
        if isinstance(column, ColumnFacts):
            told[name] = (
                column.centre + column.scale * float(value[at]),
                column.scale * float(sd[at]),
            )
    return told


def _column(facts: ReleaseManifest, feature: str) -> ColumnFacts | LevelsFacts | None:
    """The table's column behind a column of the matrix; None for the intercept."""
    at = facts.names.index(feature) - int(facts.intercept)
    for column in facts.columns:
        width = len(column.levels) if isinstance(column, LevelsFacts) else 1
        if 0 <= at < width:
            return column
        at -= width
    return None


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
