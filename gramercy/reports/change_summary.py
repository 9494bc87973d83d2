"""What changed between two releases of one data set by more than their noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramercy.estimators.uncertainty.difference import Change
from gramercy.reports.correlations import NOISE_BAND
from gramercy.reports.explanations import display_name, median_largest_noise

_LISTED_ENTRIES = 10
_TAIL = 0.0455  # P(|x| > 2) of a standard normal variable x


@dataclass(frozen=True)
class ReleaseComparison:
    """Two releases of a data set, and the difference between them."""

    later: str
    earlier: str
    names: Sequence[str]
    change: Change = field(repr=False)


def change_facts(comparison: ReleaseComparison) -> dict[str, Any]:
    """The comparison as plain data: the largest changes, and how many are expected by chance."""
    change = comparison.change
    upper = np.triu_indices(len(change.deviations))
    deviations = change.deviations[upper]
    order = np.argsort(-np.abs(deviations), kind="stable")[:_LISTED_ENTRIES]
    names = [display_name(name) for name in comparison.names]
    return {
        "later": comparison.later,
        "earlier": comparison.earlier,
        "entries": deviations.size,
        "beyond": int((np.abs(deviations) > NOISE_BAND).sum()),
        "by_chance": _TAIL * deviations.size if change.gaussian else None,
        "largest_of_noise": median_largest_noise(deviations.size) if change.gaussian else None,
        "p_value": change.p_value,
        "strongest": [
            (
                names[upper[0][k]],
                names[upper[1][k]],
                float(change.difference[upper][k]),
                float(change.sd[upper][k]),
                float(deviations[k]),
            )
            for k in order
        ],
    }
