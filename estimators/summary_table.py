"""The first table of a paper: sizes, means, standard deviations, quantiles and shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.common.similar_names import most_similar_first
from gramercy.estimators.accuracy.clipped_means import largest_shifts
from gramercy.estimators.caveats import caveats, caveats_table, kinds_of
from gramercy.estimators.contingency import group_means, table_frame
from gramercy.estimators.derived_columns import in_units_of_inputs, with_units_of_inputs
from gramercy.estimators.estimator import Estimate, Estimator
from gramercy.estimators.intervals import Level
from gramercy.estimators.released_table import ReleasedTable
from gramercy.estimators.table_units import TableUnits, mean_weight, table_units
from gramercy.estimators.uncertainty.entry_estimates import Target
from gramercy.estimators.uncertainty.table_entries import table_deviations, table_means
from gramercy.schemas import wordings
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec

Array = NDArray[np.float64]


class SummaryTable(Estimator):
    """``moments``: size, missing share, mean, standard deviation and quantiles of every column.

    Parameters
    ----------
    by
        Name of a column of levels: then also the means within each of its levels.
    level
        Confidence level of the intervals.
    target
        Whose means and standard deviations the intervals of ``columns`` contain: those of the
        ``population`` of which the rows are a sample (the default), or of the ``table`` itself.

    Notes
    -----
    Tables: ``columns``, one line for each numeric column; ``levels``, counts and shares of the
    levels; ``quantiles``, if the release publishes histograms; ``derived``, what derived columns
    say in the units of their inputs, see `estimators.derived_columns`; ``groups``, if `by` is
    given; ``caveats``, what the numbers do not say, if there is something. Cells are clamped to the
    bounds, which are in the table; ``unit`` is there if numbers of a column stand for dates.
    Intervals cover noise and sampling, and ``caveat`` has what they cannot cover: the kinds of
    `estimators.caveats`.

    If rows were clipped, a row beyond the radius counts less than others; ``mean_weight`` is 1 if
    there are none, and ``clipping`` bounds how far a mean may therefore be from that of equally
    weighted rows: see `estimators.accuracy.clipped_means`. Means and standard deviations are of the
    cells that are present, if the release publishes their shares, for cells that are missing
    completely at random; otherwise a missing cell counts as the column's centre.
    """

    name: Literal["moments"] = "moments"
    by: str | None = None
    level: Level = 0.95
    target: Target = "population"

    def check(self, spec: ReleaseSpec) -> None:
        if not spec.intercept or spec.normalisation.unit_rows:
            raise wordings.analysis_needs_means(self.name)
        if self.by is not None:
            _column_of_levels(spec.columns, self.by)

    def fit(self, evidence: Evidence) -> Estimate:
        """Raises RequestError if the release does not suit these settings."""
        units = table_units(evidence)
        if units is None:
            raise wordings.analysis_needs_means(self.name)
        known = ReleasedTable(evidence)
        tables: dict[str, pd.DataFrame] = {}
        if any(isinstance(column, ColumnFacts) for column in evidence.columns):
            tables["columns"] = _columns(known, units, self.level, self.target)
        facts = [each for each in evidence.columns if isinstance(each, LevelsFacts)]
        if facts:
            tables["levels"] = _levels(known, list(dict.fromkeys(facts)), self.level, self.target)
        quantiles = known.quantiles(level=self.level)
        if len(quantiles):
            names = ("value", "lower", "upper")
            tables["quantiles"] = with_units_of_inputs(quantiles, evidence.columns, names)
        derived = in_units_of_inputs(evidence, units, self.level, self.target)
        if len(derived):
            tables["derived"] = derived
        if self.by is not None:
            by = _column_of_levels(evidence.columns, self.by)
            tables["groups"] = group_means(evidence, units, by, self.level)
        if limits := caveats(evidence):
            tables["caveats"] = caveats_table(limits)
        tuning = {"level": self.level, "number_of_rows": known.rows.value}
        weight = mean_weight(evidence)
        if weight is not None:
            tuning["mean_weight"] = weight
        return Estimate("summary", {}, tuning, tables)


def _column_of_levels(columns: Sequence[Any], name: str) -> LevelsFacts:
    levels = {column.name: column for column in columns if isinstance(column, LevelsFacts)}
    if name not in levels:
        raise wordings.not_a_column_of_levels(name, most_similar_first(name, levels))
    return levels[name]


def _columns(known: ReleasedTable, units: TableUnits, level: float, target: Target) -> pd.DataFrame:
    """Means and standard deviations of the numeric columns, with what else is known of them."""
    evidence = known.evidence
    numeric = [k for k, c in enumerate(evidence.columns[1:]) if isinstance(c, ColumnFacts)]
    facts = [c for c in evidence.columns if isinstance(c, ColumnFacts)]
    missing = [
        (np.nan, np.nan) if one is None else (one.value, one.standard_error)
        for one in (known.missing(c.name) for c in facts)
    ]
    means, deviations = table_means(evidence, units), table_deviations(evidence, units)
    table = pd.DataFrame({"column": pd.Series([c.name for c in facts], dtype="str")})
    table["missing"], table["missing_error"] = np.array(missing).T
    for name, entries in (("mean", means), ("deviation", deviations)):
        lower, upper = entries.interval(level, target)
        values = (entries.estimate, entries.error(target), lower, upper)
        for key, each in zip(("", "_error", "_lower", "_upper"), values, strict=True):
            table[name + key] = np.where(entries.estimable, each, np.nan)[numeric]
    table["clipping"] = largest_shifts(evidence, units, level)
    table["lower_bound"] = [c.lower for c in facts]
    table["upper_bound"] = [c.upper for c in facts]
    if any(c.unit for c in facts):
        table["unit"] = pd.Series([c.unit or "" for c in facts], dtype="str")
    limits = caveats(evidence)
    table["caveat"] = pd.Series([kinds_of(limits, c.name) for c in facts], dtype="str")
    return table.assign(law=means.law, target=target)


def _levels(
    known: ReleasedTable, facts: list[LevelsFacts], level: float, target: Target
) -> pd.DataFrame:
    """Counts and shares of the levels of every column."""
    frames = []
    for column in facts:
        frame = table_frame(known, column, None, level, target).iloc[:-1].drop(columns="column")
        frame.insert(0, "column", column.name)
        frames.append(frame.rename(columns={"row": "level"}))
    return pd.concat(frames, ignore_index=True)
