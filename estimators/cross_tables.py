"""Counts and cross tables of levels from one released matrix; see `estimators.contingency`."""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import pandas as pd

from gramercy.common.similar_names import most_similar_first
from gramercy.estimators.contingency import cross_shares, independence, table_frame
from gramercy.estimators.estimator import Estimate, Estimator
from gramercy.estimators.intervals import Level
from gramercy.estimators.released_table import ReleasedTable
from gramercy.estimators.table_units import mean_weight, table_units
from gramercy.schemas import families, wordings
from gramercy.schemas.column import level_names
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec

_MOST_CELLS = 1024  # of one table; takes about two seconds
Pair = tuple[LevelsFacts, LevelsFacts | None]


class CrossTables(Estimator):
    """``tables``: counts and shares of levels, with intervals and a test of independence.

    Parameters
    ----------
    rows, columns
        Names of two columns of levels, for one cross table; `rows` alone for the counts of one
        column. Default: every pair of columns of levels, or the only one.
    level
        Confidence level of the intervals.

    Notes
    -----
    Tables: ``cells``, with the margins as lines ``(all)``, and ``tests`` of independence. Cells are
    not negative, add up to their margins, and these to the number of rows; the number of rows of no
    declared level has a line of its own. Intervals of counts cover the noise alone: they are about
    this table. Intervals of shares cover noise and sampling: they are about the population from
    which the rows were sampled. All intervals are cut off at zero.

    If rows were clipped, a row beyond the radius counts less than others, in counts and shares;
    ``mean_weight`` is 1 if there are none.
    """

    name: Literal["tables"] = "tables"
    rows: str | None = None
    columns: str | None = None
    level: Level = 0.95

    def check(self, spec: ReleaseSpec) -> None:
        if not spec.intercept or spec.normalisation.unit_rows:
            raise wordings.analysis_needs_means(self.name)
        self._pairs(tuple(column for column in spec.columns if isinstance(column, LevelsFacts)))

    def fit(self, evidence: Evidence) -> Estimate:
        """Raises RequestError if the release does not suit these settings."""
        if table_units(evidence) is None:
            raise wordings.analysis_needs_means(self.name)
        known = ReleasedTable(evidence)
        facts = [column for column in evidence.columns if isinstance(column, LevelsFacts)]
        cells, tests = [], []
        for rows, columns in self._pairs(tuple(dict.fromkeys(facts))):
            frame = table_frame(known, rows, columns, self.level)
            frame.insert(0, "columns", columns.name if columns else "")
            frame.insert(0, "rows", rows.name)
            cells.append(frame)
            if columns is not None:
                tests.append(_test(known, rows, columns))
        weight = mean_weight(evidence)
        tuning = {"level": self.level, "number_of_rows": known.rows.value}
        if weight is not None:
            tuning["mean_weight"] = weight
        tables = {"cells": pd.concat(cells, ignore_index=True)}
        if tests:
            tables["tests"] = pd.concat(tests, ignore_index=True)
        return Estimate("cross-tables", {}, tuning, tables)

    def _pairs(self, levels: tuple[LevelsFacts, ...]) -> list[Pair]:
        """The tables to make."""
        by_name = {column.name: column for column in levels}
        if not levels:
            raise families.ANALYSIS(
                "The release has no columns of levels.",
                "Tables count the levels of columns of the matrix, which the contract declares by "
                "'levels'. Groups of rows ('by' in the request) are counted by .groups.rows.",
            )
        for name in (self.rows, self.columns):
            if name is not None and name not in by_name:
                raise wordings.not_a_column_of_levels(name, most_similar_first(name, by_name))
        if self.columns is not None and self.rows in (None, self.columns):
            raise families.ANALYSIS(
                "'rows' and 'columns' must be two different columns of levels.",
                "Leave out 'columns' for the counts of one column.",
            )
        pairs: list[Pair] = list(combinations(levels, 2)) or [(levels[0], None)]
        if self.rows is not None:
            pairs = [(by_name[self.rows], by_name.get(self.columns or ""))]
        for rows, columns in pairs:
            size = (len(rows.levels) + 1) * (len(columns.levels) + 1 if columns else 1)
            if size > _MOST_CELLS:
                other = columns.name if columns else ""
                raise families.ANALYSIS(
                    "The table of {rows} and {columns} would have {cells} cells; at most {limit} "
                    "are possible.",
                    "Choose columns with fewer levels by 'rows' and 'columns', or leave out "
                    "'columns' for the counts of one column. .second_moment has the counts of all "
                    "pairs of levels as its entries.",
                    rows=rows.name,
                    columns=other,
                    cells=size,
                    limit=_MOST_CELLS,
                )
        return pairs


def _test(known: ReleasedTable, rows: LevelsFacts, columns: LevelsFacts) -> pd.DataFrame:
    found = independence(cross_shares(known, rows, columns), known.rows.value)
    left_out = [
        f"{facts.name}: {name}"
        for facts, used in ((rows, found.rows), (columns, found.columns))
        for name, kept in zip(level_names(facts.levels), used, strict=True)
        if not kept
    ]
    return pd.DataFrame(
        {
            "rows": pd.Series([rows.name], dtype="str"),
            "columns": pd.Series([columns.name], dtype="str"),
            "chi_squared": [found.statistic],
            "freedom": [found.freedom],
            "p_value": [found.p_value],
            "cramers_v": [found.association],
            "least_expected": [found.least_expected],
            "row_levels": [int(found.rows.sum())],
            "column_levels": [int(found.columns.sum())],
            "left_out": pd.Series(["; ".join(left_out)], dtype="str"),
        }
    )
