"""What changed between two releases of one data set by more than their noise, and its page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from gramercy.common.pictures import changes
from gramercy.estimators.table_comparison import Change
from gramercy.reports.correlations import NOISE_BAND
from gramercy.reports.reader_notes import display_name, median_largest_noise
from gramercy.reports.rendering import Links, navigation, no_links, render


def change_page(comparison: ReleaseComparison, title: str, links: Links = no_links) -> str:
    """The page that compares two releases of a data set with this title."""
    dataset, _, later = comparison.later.partition("/")
    earlier = comparison.earlier.partition("/")[2]
    place = navigation(links, f"Change from {earlier} to {later}", (dataset, title))
    changed = change_with_figure(comparison)
    return render("change.html", navigation=place, title=title, changed=changed)


def change_with_figure(comparison: ReleaseComparison) -> dict[str, Any]:
    """What changed between two releases, with a figure."""
    deviations = comparison.change.deviations
    names = [display_name(name) for name in comparison.names]
    picture = changes(deviations, np.abs(deviations) <= NOISE_BAND, names)
    return change_facts(comparison) | {"picture": picture}


_LISTED_ENTRIES = 10
_LISTED_GROUPS, _ENTRIES_OF_A_GROUP = 12, 3
_RATE = 0.05  # expected share of false changes among the groups that are said to have changed
_TAIL = 0.0455  # P(|x| > 2) of a standard normal variable x


@dataclass(frozen=True)
class ReleaseComparison:
    """Two releases of a data set, and the differences between them: of all rows, and of groups."""

    later: str
    earlier: str
    names: Sequence[str]
    change: Change = field(repr=False)
    groups: Mapping[str, Change] = field(default_factory=dict, repr=False)


def change_facts(comparison: ReleaseComparison) -> dict[str, Any]:
    """The comparison as plain data: the largest changes, and how many are expected by chance."""
    change = comparison.change
    names = [display_name(name) for name in comparison.names]
    entries = len(names) * (len(names) + 1) // 2
    return {
        "later": comparison.later,
        "earlier": comparison.earlier,
        "entries": entries,
        "beyond": _beyond(change),
        "by_chance": _TAIL * entries if change.gaussian else None,
        "largest_of_noise": median_largest_noise(entries) if change.gaussian else None,
        "p_value": change.p_value,
        "strongest": _strongest(change, names, _LISTED_ENTRIES),
        "groups": _groups(comparison.groups, names),
    }


def _beyond(change: Change) -> int:
    upper = np.triu_indices(len(change.deviations))
    return int((np.abs(change.deviations[upper]) > NOISE_BAND).sum())


def _strongest(
    change: Change, names: Sequence[str], count: int
) -> list[tuple[str, str, float, float, float]]:
    """The entries that changed most: columns, difference, its noise, and their quotient."""
    i, j = np.triu_indices(len(names))
    order = np.argsort(-np.abs(change.deviations[i, j]), kind="stable")[:count]
    matrices = (change.difference, change.sd, change.deviations)
    return [
        (names[a], names[b], *(float(matrix[a, b]) for matrix in matrices))
        for a, b in zip(i[order], j[order], strict=True)
    ]


def _groups(changes: Mapping[str, Change], names: Sequence[str]) -> dict[str, Any] | None:
    """The groups that changed most, with a test of each; None without groups."""
    if not changes:
        return None
    p_values = {name: change.p_value for name, change in changes.items()}
    tested = {name: value for name, value in p_values.items() if value is not None}
    adjusted = dict(
        zip(tested, scipy.stats.false_discovery_control([*tested.values()]).tolist(), strict=True)
    )
    changed = {name for name, value in adjusted.items() if value <= _RATE}
    order = sorted(changes, key=lambda name: (tested.get(name, math.inf), -_beyond(changes[name])))
    return {
        "count": len(changes),
        "tested": len(tested),
        "rate": _RATE,
        "changed": len(changed),
        "listed": [
            {
                "group": name,
                "p_value": p_values[name],
                "adjusted": adjusted.get(name),
                "changed": name in changed,
                "beyond": _beyond(changes[name]),
                "strongest": _strongest(changes[name], names, _ENTRIES_OF_A_GROUP),
            }
            for name in order[:_LISTED_GROUPS]
        ],
    }
