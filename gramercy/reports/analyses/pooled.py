"""The part of a report about a pool: the weights of the releases, and how the errors fall."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from markupsafe import Markup

from gramercy.archive.bundles.estimate_bundle import EstimateBundle
from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.common.notation import significant
from gramercy.common.plotting import ACCENT, FAINT, figure
from gramercy.reports.rendering import render

_MOST_RELEASES, _MOST_COLUMNS = 30, 60  # that a page shows; the files have all


def part(release: ReleaseBundle, estimate: EstimateBundle) -> Markup:
    """The part about one estimate of kind ``pooled``."""
    facts, tables = estimate.manifest, estimate.tables
    releases, tuning = tables["releases"], facts.tuning
    own, error = releases.iloc[0], math.hypot(tuning["noise"], tuning["sampling_error"])
    return Markup(
        render(
            "analyses/pooled.html",
            estimate=facts.estimate,
            lines=releases.iloc[:_MOST_RELEASES].to_dict("records"),
            total=len(releases),
            tuning=tuning,
            error=error,
            noise_share=_share(tuning["noise"], own["noise"]),
            error_share=_share(error, own["standard_error"]),
            picture=_errors(facts.estimate, releases.iloc[:_MOST_RELEASES], tuning["noise"], error),
            columns=tables["columns"].iloc[:_MOST_COLUMNS].to_dict("records")
            if "columns" in tables
            else [],
            counted=release.manifest.count_key,
            clipped=release.evidence.radius is not None,
        )
    )


def _share(pool: float, own: float) -> float | None:
    return pool / own if own > 0 else None


def _errors(name: str, releases: pd.DataFrame, noise: float, error: float) -> Markup:
    """Typical errors of each release and of the pool, the pool at the bottom."""
    places = np.arange(len(releases) + 1)[::-1]
    labels = [
        f"{each['release']} ({significant(each['weight'], 2)})"
        for each in releases.to_dict("records")
    ]
    title = "Typical error of an entry: of each release, and of the pool."
    with figure(f"pool-{name}", title, 5.6, 0.9 + 0.32 * len(places)) as drawing:
        axes = drawing.axes
        both = [*releases["standard_error"], error]
        axes.barh(places, both, height=0.7, color=FAINT, alpha=0.35, label="noise and sampling")
        axes.barh(places, [*releases["noise"], noise], height=0.35, color=ACCENT, label="noise")
        axes.set_yticks(places, [*labels, "pool"])
        axes.set_xlabel("typical standard deviation of an entry")
        axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return drawing.svg
