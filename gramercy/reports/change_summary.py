"""What changed between two releases of one data set, beyond their noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramercy.estimators.uncertainty.difference import Change
from gramercy.reports.correlations import INSIDE
from gramercy.reports.words import largest_of_noise, shown_name

_MOST = 10  # entries in the table
_BEYOND = 0.0455  # of a normal variable, beyond two deviations


@dataclass(frozen=True)
class Compared:
    """A release held against an earlier one."""

    later: str
    earlier: str
    names: Sequence[str]
    change: Change = field(repr=False)


def changed(compared: Compared) -> dict[str, Any]:
    """What is said of two releases held against each other."""
    found = compared.change
    away = found.deviations
    p = len(away)
    upper = np.triu_indices(p)
    order = np.argsort(-np.abs(away[upper]), kind="stable")[:_MOST]
    names = [shown_name(name) for name in compared.names]
    return {
        "later": compared.later,
        "earlier": compared.earlier,
        "entries": away[upper].size,
        "beyond": int((np.abs(away[upper]) > INSIDE).sum()),
        "by_chance": _BEYOND * away[upper].size if found.gaussian else None,
        "largest_of_noise": largest_of_noise(away[upper].size) if found.gaussian else None,
        "p_value": found.p_value,
        "strongest": [
            (
                names[upper[0][k]],
                names[upper[1][k]],
                float(found.difference[upper][k]),
                float(found.sd[upper][k]),
                float(away[upper][k]),
            )
            for k in order
        ],
    }
