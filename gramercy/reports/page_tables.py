"""The tables of a page: largest entries, means of groups, first lines of an estimate's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gramercy.archive.release_bundle import ReleaseBundle
from gramercy.estimators.moments import means
from gramercy.reports.correlations import repaired_correlations
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

_MOST = 25  # of a table on the page; the files hold all


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


def strongest(bundle: ReleaseBundle, about_means: bool) -> list[Entry]:
    """The largest off-diagonal entries, largest first."""
    correlation = repaired_correlations(bundle, about_means)
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
