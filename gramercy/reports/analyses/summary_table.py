"""The part of a report about the summary table: means and standard deviations with intervals."""

from __future__ import annotations

import pandas as pd
from markupsafe import Markup

from gramercy.archive.bundles.estimate_bundle import EstimateBundle
from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.reports.rendering import render

_MOST_LINES = 100  # of each table; the files have all
_SHOWN = ("columns", "levels", "groups")


def part(release: ReleaseBundle, estimate: EstimateBundle) -> Markup:
    """The part about one estimate of kind ``summary``."""
    shown = {name: estimate.tables.get(name, pd.DataFrame()) for name in _SHOWN}
    tables = {name: table.head(_MOST_LINES).to_dict("records") for name, table in shown.items()}
    return Markup(
        render(
            "analyses/summary_table.html",
            estimate=estimate.manifest.estimate,
            group=estimate.group,
            tables=tables,
            by=estimate.manifest.estimator["by"],
            law=next(lines[0]["law"] for lines in tables.values() if lines),
            tuning=estimate.manifest.tuning,
            counted=release.manifest.count_key,
            moved=any(each["clipping"] != 0 for each in tables["columns"]),
            clipped=release.evidence.radius is not None,
        )
    )
