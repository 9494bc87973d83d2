"""The part of a report about a regression: its coefficients as a plot and as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
from markupsafe import Markup

from gramercy.archive.bundles.estimate_bundle import EstimateBundle
from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.common.plotting import ACCENT, FAINT, figure
from gramercy.reports.explanations import display_name
from gramercy.reports.rendering import render

_MOST_TERMS = 40  # of the plot and the table; the files have all


def part(release: ReleaseBundle, estimate: EstimateBundle) -> Markup:
    """The part about one estimate of kind ``regression``."""
    tables, facts = estimate.tables, estimate.manifest
    coefficients, terms = tables["coefficients"], tables["terms"]
    values = dict(zip(tables["fit"]["quantity"], tables["fit"]["value"], strict=True))
    references = terms[terms["role"] == "reference"]
    shown = tables["standardised"].iloc[:_MOST_TERMS]
    return Markup(
        render(
            "analyses/regression.html",
            estimate=facts.estimate,
            group=estimate.group,
            outcome=str(terms["column"].iloc[0]),
            level=facts.tuning["level"],
            law=str(tables["fit"]["errors"].iloc[0]),
            fit=values,
            picture=_forest(facts.estimate, shown) if shown["estimate"].notna().any() else None,
            lines=coefficients.iloc[: 1 + _MOST_TERMS].to_dict("records"),
            total=len(coefficients),
            selects="selected" in coefficients,
            selected=_selected(coefficients),
            unknown=int((coefficients["known"] == "no").sum()),
            references=list(zip(references["column"], references["level"], strict=True)),
            corrected=any(share < 1 for share in release.evidence.present),
            clipped=release.evidence.radius is not None,
        )
    )


def _selected(coefficients: pd.DataFrame) -> int:
    """Number of predictors in predictions."""
    if "selected" not in coefficients:
        return len(coefficients) - 1
    return int((coefficients["selected"].iloc[1:] == "yes").sum())


def _forest(name: str, shown: pd.DataFrame) -> Markup:
    """Standardised coefficients with their intervals, the first term on top."""
    places = np.arange(len(shown))[::-1]
    title = "Standardised coefficients with their intervals."
    with figure(f"forest-{name}", title, 5.6, 0.9 + 0.22 * len(shown)) as drawing:
        axes = drawing.axes
        axes.axvline(0, color=FAINT, linewidth=0.8)
        axes.hlines(places, shown["lower"], shown["upper"], color=ACCENT, linewidth=1.4)
        axes.plot(shown["estimate"], places, "o", color=ACCENT, markersize=4)
        axes.set_yticks(places, [display_name(term) for term in shown["term"]])
        axes.set_ylim(-0.7, len(shown) - 0.3)
        axes.set_xlabel("standard deviations of the outcome")
    return drawing.svg
