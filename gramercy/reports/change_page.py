"""The page that compares two releases of one data set."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramercy.reports.change_summary import ReleaseComparison, change_facts
from gramercy.reports.correlations import NOISE_BAND
from gramercy.reports.explanations import display_name
from gramercy.reports.heat_maps import changes
from gramercy.reports.rendering import render


def change_page(comparison: ReleaseComparison, title: str) -> str:
    """The page that compares two releases of a data set with this title."""
    return render("change.html", root="", title=title, changed=change_with_figure(comparison))


def change_with_figure(comparison: ReleaseComparison) -> dict[str, Any]:
    """What changed between two releases, with a figure."""
    deviations = comparison.change.deviations
    names = [display_name(name) for name in comparison.names]
    picture = changes(deviations, np.abs(deviations) <= NOISE_BAND, names)
    return change_facts(comparison) | {"picture": picture}
