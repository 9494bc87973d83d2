"""The columns of a release in their own units: of all rows, of groups of rows, and of levels."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
from gramercy.common.notation import significant
from gramercy.common.pictures import small_heat_map
from gramercy.estimators.caveats import Caveat, caveats, kinds_of
from gramercy.estimators.derived_columns import in_units_of_inputs
from gramercy.estimators.proposals import Proposal, of_release
from gramercy.estimators.released_table import ReleasedTable
from gramercy.estimators.table_units import effect_of_missing_cells, mean_weight
from gramercy.estimators.uncertainty.entry_estimates import Entries
from gramercy.estimators.uncertainty.jackknife import describe_sampling, has_jackknife
from gramercy.estimators.uncertainty.moment_errors import means
from gramercy.estimators.uncertainty.table_entries import table_deviations, table_means
from gramercy.reports.correlations import LEVEL, Correlations, correlations, units_of
from gramercy.reports.reader_notes import display_name
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

_MOST_LINES = 25  # groups and columns of the table of means
MOST_PICTURES, MOST_COLUMNS = 24, 40  # on the page; the files have all groups and columns
_NO_CORRELATIONS = 3  # fewer columns have a picture of one entry
_MISSING = 0.05  # share of missing cells that a page asks about where it is not published


@dataclass(frozen=True)
class Known:
    """An estimate with its intervals; NaN if it is not known."""

    estimate: float
    error: float  # standard error, from noise and sampling together
    # intervals of the table itself, and of a population of which its rows are a sample
    of_table: tuple[float, float]
    of_population: tuple[float, float]

    @property
    def pair(self) -> tuple[float, float]:
        """The estimate and its standard error."""
        return self.estimate, self.error


def _known(entries: Entries) -> list[Known]:
    """All entries of a vector."""
    estimate = np.where(entries.estimable, entries.estimate, np.nan)
    bounds = [*entries.interval(LEVEL, "table"), *entries.interval(LEVEL, "population")]
    columns = np.transpose([estimate, entries.standard_error, *bounds]).tolist()
    return [Known(number, error, (a, b), (c, d)) for number, error, a, b, c, d in columns]


@dataclass(frozen=True)
class OwnColumn:
    """A column in its own unit."""

    name: str  # Name of the column, or of a level
    mean: Known  # That of a level is its share
    deviation: Known | None  # None for a level
    # Published share of rows with a value; None if it is unknown, or for a level
    present: float | None
    limits: str = ""  # The kinds of its caveats
    unit: str | None = None  # The unit of dates, if its numbers stand for them
    level_of: str = ""  # For a level, the column in the table


@dataclass(frozen=True)
class MissingCells:
    """What a share of missing cells could do to correlations, where it is not published."""

    share: float  # The share that is assumed for each column
    # Largest possible change of any correlation, and the median over the pairs of columns
    largest: float
    median: float


@dataclass(frozen=True)
class OwnColumns:
    """All columns of a release in their own units."""

    columns: list[OwnColumn]  # In the order of the matrix
    limits: tuple[Caveat, ...]  # What the numbers of single columns do not say
    law: str  # What the standard errors assume about the rows, in words
    # None if the shares of missing cells are published, or if no two numeric columns are known
    missing: MissingCells | None
    # Mean weight of the rows, and its standard deviation by noise; None if none were clipped
    weight: tuple[float, float] | None
    derived: tuple[dict[str, Any], ...]  # derived columns in the units of their inputs
    proposals: tuple[Proposal, ...]  # functions of columns that would say more

    @property
    def levels(self) -> dict[str, list[OwnColumn]]:
        """The levels of each column that has some."""
        groups = itertools.groupby(self.columns, lambda each: each.level_of)
        return {column: [*levels] for column, levels in groups if column}


def own_columns(bundle: ReleaseBundle) -> OwnColumns | None:
    """The columns in their own units; None if the release does not determine them."""
    evidence = bundle.evidence
    units = units_of(bundle)
    if units is None:
        return None
    pairs = _known(table_means(evidence, units)), _known(table_deviations(evidence, units))
    published = evidence.present[1:] or (None,) * len(units.names)
    limits = tuple(each for each in caveats(evidence) if each.column)
    columns = [
        OwnColumn(name, mean, sd, share, kinds_of(limits, name), facts.unit)
        if isinstance(facts, ColumnFacts)
        else OwnColumn(name, mean, None, None, level_of=facts.name if facts else "")
        for name, mean, sd, share, facts in zip(
            units.names, *pairs, published, evidence.columns[1:], strict=True
        )
    ]
    numeric = [isinstance(column, ColumnFacts) for column in evidence.columns[1:]]
    known = ~units.unknown(bundle.unbiased, bundle.deviations, evidence.terms)
    pairs_known = np.triu(known & np.logical_and.outer(numeric, numeric), 1)
    missing = None
    if not evidence.present and pairs_known.any():
        moments = units.moments(bundle.repaired)
        effect = effect_of_missing_cells(moments, units, _MISSING)[pairs_known]
        missing = MissingCells(_MISSING, float(effect.max()), float(np.median(effect)))
    weight = mean_weight(evidence)
    weight_and_noise = None
    if weight is not None and evidence.radius is not None:
        noise = evidence.radius**2 * float(evidence.deviations[0, 0]) / evidence.rows_each
        weight_and_noise = weight, noise
    derived = in_units_of_inputs(evidence, units, LEVEL, "population").to_dict("records")
    return OwnColumns(
        columns,
        limits,
        sampling_law(bundle),
        missing,
        weight_and_noise,
        tuple(derived),
        tuple(of_release(evidence)),
    )


def sampling_law(bundle: ReleaseBundle) -> str:
    """What standard errors on the page assume about the rows, in words."""
    evidence = bundle.evidence
    if has_jackknife(evidence) or evidence.lost is None:
        law = describe_sampling(evidence)
        return f"by the {law}" if has_jackknife(evidence) else f"for {law}"
    return "by the kurtosis of the published histograms"


def column_labels(bundle: ReleaseBundle, found: Correlations) -> list[str]:
    """The columns in a figure of correlations.

    Those of a column of which only is published which cells differ from a value are labelled so.
    """
    evidence = bundle.evidence
    differing = {
        facts.name: f"{facts.name} ≠ {significant(facts.centre, 4)}"
        for facts in evidence.columns
        if isinstance(facts, ColumnFacts) and facts.name in evidence.signs
    }
    return [differing.get(name, display_name(name)) for name in found.names]


@dataclass(frozen=True)
class RowGroup:
    """One group on the page."""

    name: str  # Its name
    rows: tuple[float, float]  # Noisy number of rows, and the standard deviation of the noise
    # Its columns in their own units, by name; empty if they are not known
    columns: dict[str, OwnColumn]
    # Heat map of its correlations; empty for a group after the first few, or without pairs
    picture: Markup


def row_groups(bundle: ReleaseBundle) -> list[RowGroup]:
    """The groups of a release, in the order of the levels."""
    groups = []
    for index, stated in enumerate(bundle.groups):
        name, group, picture = stated.level, bundle.of_group(index), Markup()
        facts, own = group.manifest, own_columns(group)
        if index < MOST_PICTURES and len(facts.names) >= _NO_CORRELATIONS:
            released = correlations(group)
            if not np.isnan(released.matrix).all():
                labels = column_labels(group, released)
                picture = small_heat_map(
                    f"group-{index}", name, released.matrix, released.hidden, labels
                )
        shown = [] if own is None else own.columns[:MOST_COLUMNS]
        columns = {column.name: column for column in shown}
        groups.append(RowGroup(name, bundle.group_sizes[index], columns, picture))
    return groups


@dataclass(frozen=True)
class LevelMeans:
    """Means of a group of rows: all of them, or those of one level."""

    name: str  # Name of the level, or of the intercept
    level_of: str  # Its column in the table; empty for all rows
    share: tuple[float, float]  # Share of the rows, with its standard error
    # Mean of each numeric column in its own units, with standard errors; of the cells that are
    # present, if their share is published
    means: Mapping[str, tuple[float, float]]


def level_means(bundle: ReleaseBundle) -> list[LevelMeans]:
    """Means, shares and class means of a matrix with an intercept.

    Empty for noisy rows: see `estimators.uncertainty.moment_errors`.
    """
    facts = bundle.manifest
    if not facts.intercept or not facts.publication.is_moment:
        return []
    overall = means(bundle.evidence, 0)
    if overall is None:
        return []
    columns = facts.source_columns
    present = bundle.evidence.present or (1.0,) * len(columns)
    known = ReleasedTable(bundle.evidence)
    means_of_groups: list[LevelMeans] = []
    numbers = [(at, c) for at, c in enumerate(columns) if isinstance(c, ColumnFacts)][:_MOST_LINES]
    for at, (name, column) in enumerate(zip(facts.names, columns, strict=True)):
        within = overall if column is None else None
        if isinstance(column, LevelsFacts):
            within = means(bundle.evidence, at)
        if within is None or len(means_of_groups) > _MOST_LINES:
            continue
        share = (float(overall.value[at]), float(overall.sd[at]))
        if isinstance(column, LevelsFacts):
            shares, k = known.levels(column), at - columns.index(column)
            share = float(shares.value[k]), float(shares.standard_error[k])
        in_units = {
            c.name: (
                c.centre + c.scale * float(within.value[k]) / present[k],
                c.scale * float(within.sd[k]) / present[k],
            )
            for k, c in numbers
            if present[k] > 0
        }
        level_of = column.name if isinstance(column, LevelsFacts) else ""
        means_of_groups.append(LevelMeans(name, level_of, share, in_units))
    return means_of_groups
