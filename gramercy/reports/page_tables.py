"""Tables of a page: largest entries, means of groups, excerpts of an estimate's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.estimators.uncertainty.moment_errors import means
from gramercy.reports.correlations import repaired_correlations
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

_MAX_LINES = 25  # lines of a table that the page shows; the files have all


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
        """Absolute value in standard deviations of the noise."""
        return abs(self.value) / self.sd


def strongest(bundle: ReleaseBundle, about_means: bool) -> list[Entry]:
    """The largest off-diagonal entries, largest first."""
    correlation = repaired_correlations(bundle, about_means)
    names, sd = bundle.manifest.names, bundle.deviations
    rows, cols = np.triu_indices(len(names), 1)
    size = -np.abs(bundle.unbiased[rows, cols])
    first = (
        np.argpartition(size, min(_MAX_LINES, size.size) - 1)[:_MAX_LINES] if size.size else rows
    )
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
        Name of the level, or of the intercept.
    share
        Share of the rows, with its standard error.
    means
        Mean of each numeric column in its own units, with standard errors; of the cells that are
        present, if their share is published.
    """

    name: str
    share: tuple[float, float]
    means: Mapping[str, tuple[float, float]]


def groups(bundle: ReleaseBundle) -> list[Group]:
    """Means, shares and class means of a matrix with an intercept.

    Empty for noisy rows: see `estimators.uncertainty.moment_errors`.
    """
    facts = bundle.manifest
    if not facts.intercept or not facts.publication.is_moment:
        return []
    overall = means(bundle.unbiased, facts.noise, 0)
    if overall is None:
        return []
    columns = facts.source_columns
    present = bundle.evidence.present or (1.0,) * len(columns)
    means_of_groups: list[Group] = []
    numbers = [(at, c) for at, c in enumerate(columns) if isinstance(c, ColumnFacts)][:_MAX_LINES]
    for at, (name, column) in enumerate(zip(facts.names, columns, strict=True)):
        within = overall if column is None else None
        if isinstance(column, LevelsFacts):
            within = means(bundle.unbiased, facts.noise, at)
        if within is None or len(means_of_groups) > _MAX_LINES:
            continue
        share = (float(overall.value[at]), float(overall.sd[at]))
        in_units = {
            c.name: (
                c.centre + c.scale * float(within.value[k]) / present[k],
                c.scale * float(within.sd[k]) / present[k],
            )
            for k, c in numbers
            if present[k] > 0
        }
        means_of_groups.append(Group(name, share, in_units))
    return means_of_groups


@dataclass(frozen=True)
class TableExcerpt:
    """The first lines of a table.

    Parameters
    ----------
    name
        Name of the table.
    head, lines
        Its header and the lines on the page.
    numbers
        Which columns are numeric.
    total
        Number of lines in the file.
    secondary
        Whether the page shows the table collapsed.
    """

    name: str
    head: list[str]
    lines: list[list[Any]]
    numbers: list[bool]
    total: int
    secondary: bool

    @classmethod
    def of(cls, name: str, table: pd.DataFrame) -> TableExcerpt:
        """The excerpt of a sealed table."""
        excerpt = table.iloc[:_MAX_LINES, :_MAX_LINES]
        numbers = [pd.api.types.is_numeric_dtype(kind) for kind in excerpt.dtypes]
        lines = [list(line) for line in excerpt.itertuples(index=False)]
        return cls(name, list(excerpt.columns), lines, numbers, len(table), name in _SECONDARY)


_SECONDARY = {"laws", "means", "precision", "tuning"}
