"""The part of a report about the summary table: means and standard deviations with intervals."""

from __future__ import annotations

from markupsafe import Markup

from gramercy.archive.estimate_bundle import EstimateBundle
from gramercy.archive.release_bundle import ReleaseBundle
from gramercy.reports.rendering import render

_MOST_LINES = 100  # of each table; the files have all
_SHOWN = ("columns", "levels", "groups")


def part(release: ReleaseBundle, estimate: EstimateBundle) -> Markup:
    """The part about one estimate of kind ``summary``."""
    tables = {
        name: estimate.tables[name].head(_MOST_LINES).to_dict("records")
        for name in _SHOWN
        if name in estimate.tables
    }
    return Markup(
        render(
            "analyses/summary_table.html",
            estimate=estimate.manifest.estimate,
            group=estimate.group,
            tables=tables,
            by=estimate.manifest.estimator["by"],
            law=next(iter(tables.values()))[0]["law"],
            tuning=estimate.manifest.tuning,
            counted=release.manifest.count_key,
            clipped=release.evidence.radius is not None,
        )
    )
