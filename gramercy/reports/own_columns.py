"""The columns of a release in their own units, and what its numbers mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.estimators.table_units import TableUnits, effect_of_missing_cells, mean_weight
from gramercy.estimators.uncertainty.entries import table_deviations, table_means
from gramercy.estimators.uncertainty.jackknife import describe_sampling, has_jackknife
from gramercy.reports.correlations import units_of
from gramercy.reports.notes import Note, warning
from gramercy.schemas import wordings
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts

_MISSING = 0.05  # share of missing cells that a page asks about where it is not published


@dataclass(frozen=True)
class OwnColumn:
    """A column in its own unit.

    Parameters
    ----------
    name
        Name of the column, or of a level.
    mean
        Mean with its standard error; NaN if it is not known. That of a level is its share.
    deviation
        The same of the standard deviation; None for a level.
    present
        Published share of rows with a value; None if it is unknown, or for a level.
    """

    name: str
    mean: tuple[float, float]
    deviation: tuple[float, float] | None
    present: float | None


@dataclass(frozen=True)
class MissingCells:
    """What a share of missing cells could do to correlations, where it is not published.

    Parameters
    ----------
    share
        The share that is assumed for each column.
    largest, median
        Largest possible change of any correlation, and the median over the pairs of columns.
    """

    share: float
    largest: float
    median: float


@dataclass(frozen=True)
class OwnColumns:
    """All columns of a release in their own units.

    Parameters
    ----------
    columns
        In the order of the matrix.
    law
        What the standard errors assume about the rows, in words.
    missing
        None if the shares of missing cells are published, or if no two numeric columns are known.
    weight
        Mean weight of the rows, and its standard deviation by noise; None if none were clipped.
    """

    columns: list[OwnColumn]
    law: str
    missing: MissingCells | None
    weight: tuple[float, float] | None


def own_columns(bundle: ReleaseBundle) -> OwnColumns | None:
    """The columns in their own units; None if the release does not determine them."""
    evidence = bundle.evidence
    units = units_of(bundle)
    if units is None:
        return None
    means, deviations = table_means(evidence, units), table_deviations(evidence, units)
    pairs = [
        np.where(entries.estimable, [entries.estimate, entries.standard_error], np.nan).T.tolist()
        for entries in (means, deviations)
    ]
    published = evidence.present[1:] or (None,) * len(units.names)
    columns = [
        OwnColumn(name, tuple(mean), tuple(sd), share)
        if isinstance(facts, ColumnFacts)
        else OwnColumn(name, tuple(mean), None, None)
        for name, mean, sd, share, facts in zip(
            units.names, *pairs, published, evidence.columns[1:], strict=True
        )
    ]
    missing = None if evidence.present else _effect_of_missing(bundle, units)
    return OwnColumns(columns, sampling_law(bundle), missing, _weight(evidence))


def sampling_law(bundle: ReleaseBundle) -> str:
    """What standard errors on the page assume about the rows, in words."""
    evidence = bundle.evidence
    law = describe_sampling(evidence)
    return f"by the {law}" if has_jackknife(evidence) else f"for {law}"


def meaning_notes(bundle: ReleaseBundle) -> list[Note]:
    """What a reader must know about the meaning of the numbers, before all other notes."""
    evidence, facts = bundle.evidence, bundle.manifest
    if not evidence.unit:
        return []
    notice = wordings.unit_rows(f"{facts.dataset.id}/{facts.release}")
    return [warning("Associations of directions, not correlations of the table", notice)]


def _effect_of_missing(bundle: ReleaseBundle, units: TableUnits) -> MissingCells | None:
    unknown = units.unknown(bundle.unbiased, bundle.deviations)
    moments = units.moments(bundle.repaired)
    numeric = [isinstance(column, ColumnFacts) for column in bundle.evidence.columns[1:]]
    known = ~unknown & np.logical_and.outer(numeric, numeric)
    above = np.triu(known, 1)
    if not above.any():
        return None
    effect = effect_of_missing_cells(moments, units, _MISSING)[above]
    return MissingCells(_MISSING, float(effect.max()), float(np.median(effect)))


def _weight(evidence: Evidence) -> tuple[float, float] | None:
    weight = mean_weight(evidence)
    if weight is None or evidence.radius is None:
        return None
    return weight, evidence.radius**2 * float(evidence.deviations[0, 0])
