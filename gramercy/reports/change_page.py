"""The page that compares two releases of one data set."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramercy.common.pictures import changes
from gramercy.reports.correlations import NOISE_BAND
from gramercy.reports.reader_notes import display_name
from gramercy.reports.release_comparison import ReleaseComparison, change_facts
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
