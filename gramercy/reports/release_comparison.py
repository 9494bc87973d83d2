"""What changed between two releases of one data set by more than their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from gramercy.archive.bundles.bundle_kinds import DescribedRelease, read_release
from gramercy.archive.store.archive import Archive
from gramercy.estimators.table_comparison import Change, change
from gramercy.reports.correlations import NOISE_BAND
from gramercy.reports.reader_notes import display_name, median_largest_noise

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


def compare_releases(
    archive: Archive, later: DescribedRelease, earlier: DescribedRelease
) -> ReleaseComparison:
    """The differences between two comparable releases."""
    evidence = []
    for each in (later, earlier):
        with archive.rewrite_paths_in_errors():
            place = archive.release(each.manifest.dataset.id, each.manifest.release)
            evidence.append(read_release(place).evidence)
    newer, older = evidence
    pairs = zip(newer.groups, older.groups, strict=True)
    groups = {name: change(group, before) for (name, group), (_, before) in pairs}
    compared = change(newer, older)
    return ReleaseComparison(later.name, earlier.name, later.manifest.names, compared, groups)


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
