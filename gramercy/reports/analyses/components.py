"""The part of a report about principal components: scree with the noise band, and loadings."""

from __future__ import annotations

import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import NDArray

from gramercy.archive.bundles.estimate_bundle import EstimateBundle
from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.common.plotting import ACCENT, FAINT, WARM, figure
from gramercy.reports.rendering import render

Array = NDArray[np.float64]

_MOST_COLUMNS, _MOST_COMPONENTS = 60, 8  # of the table of loadings; the files have all
_MOST_TICKS = 12


def part(release: ReleaseBundle, estimate: EstimateBundle) -> Markup:
    """The part about one estimate of kind ``components``."""
    tables, tuning = estimate.tables, estimate.manifest.tuning
    used = tables["columns"]["used"] == "yes"
    names = list(tables["columns"]["column"][used])
    number = int(tuning["components"])
    eigenvalues = tables["eigenvalues"]
    loadings = _square(tables["loadings"]["loading"], number, len(names))
    errors = _square(tables["loadings"]["standard_error"], number, len(names))
    shown = [k for k in range(number) if np.isfinite(loadings[k]).all()][:_MOST_COMPONENTS]
    lines = [
        (name, [(float(loadings[k, at]), float(errors[k, at])) for k in shown])
        for at, name in enumerate(names[:_MOST_COLUMNS])
    ]
    return Markup(
        render(
            "analyses/components.html",
            estimate=estimate.manifest.estimate,
            group=estimate.group,
            scale=str(estimate.manifest.estimator["scale"]),
            number=number,
            total=len(eigenvalues),
            tuning=tuning,
            scree=_scree(estimate.manifest.estimate, eigenvalues, tuning["noise_edge"]),
            shares=tables["shares"].to_dict("records"),
            components=[k + 1 for k in shown],
            unknown=number - sum(np.isfinite(each).all() for each in loadings),
            lines=lines,
            columns=len(names),
            left_out=list(tables["columns"]["column"][~used]),
            unit=release.evidence.unit,
        )
    )


def _square(values: pd.Series, number: int, columns: int) -> Array:
    square: Array = values.to_numpy(dtype=np.float64).reshape(number, columns)
    return square


def _scree(name: str, eigenvalues: pd.DataFrame, edge: float) -> Markup:
    """Eigenvalues as released and corrected, over the band of the noise."""
    order = np.arange(1, len(eigenvalues) + 1)
    title = "Eigenvalues, largest first, and the band in which noise alone may produce them."
    with figure(f"scree-{name}", title, 5.2, 3.0) as drawing:
        axes = drawing.axes
        axes.axhspan(-edge, edge, color=FAINT, alpha=0.25, linewidth=0)
        axes.plot(order, eigenvalues["eigenvalue"], color=ACCENT, marker="o", label="as released")
        corrected = eigenvalues["corrected"]
        axes.plot(order, corrected, color=WARM, marker="x", linestyle="", label="corrected")
        axes.set(xlabel="component", ylabel="eigenvalue")
        axes.set_xticks(order[:: 1 + len(order) // _MOST_TICKS])
        axes.legend(frameon=False)
    return drawing.svg
