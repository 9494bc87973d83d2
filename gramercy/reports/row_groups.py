"""The part of a report about groups of rows: small multiples of their correlations, and means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.common.pictures import small_heat_map
from gramercy.reports.correlations import correlations
from gramercy.reports.explanations import display_name
from gramercy.reports.own_columns import OwnColumn, own_columns

MOST_PICTURES, MOST_COLUMNS = 24, 40  # on the page; the files have all groups and columns
_NO_CORRELATIONS = 3  # fewer columns have a picture of one entry


@dataclass(frozen=True)
class RowGroup:
    """One group on the page.

    Parameters
    ----------
    name
        Its name.
    rows
        Noisy number of rows, and the standard deviation of the noise.
    columns
        Its columns in their own units, by name; empty if they are not known.
    picture
        Heat map of its correlations; empty for a group after the first few, or without pairs.
    """

    name: str
    rows: tuple[float, float]
    columns: dict[str, OwnColumn]
    picture: Markup


def row_groups(bundle: ReleaseBundle) -> list[RowGroup]:
    """The groups of a release, in the order of the levels."""
    return [
        _row_group(name.level, index, bundle.of_group(index))
        for index, name in enumerate(bundle.groups)
    ]


def _row_group(name: str, index: int, group: ReleaseBundle) -> RowGroup:
    facts, own, picture = group.manifest, own_columns(group), Markup()
    if index < MOST_PICTURES and len(facts.names) >= _NO_CORRELATIONS:
        released = correlations(group)
        if not np.isnan(released.matrix).all():
            labels = [display_name(each) for each in released.names]
            picture = small_heat_map(
                f"group-{index}", name, released.matrix, released.hidden, labels
            )
    shown = [] if own is None else own.columns[:MOST_COLUMNS]
    columns = {column.name: column for column in shown}
    return RowGroup(name, (facts.rows.observed, facts.rows.sd), columns, picture)
