"""The part of a report about synthetic rows: their distributions and correlations, compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import NDArray

from gramercy.archive.bundles.estimate_bundle import EstimateBundle
from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.common.plotting import ACCENT, FAINT, figure
from gramercy.reports.rendering import render
from gramercy.schemas.evidence import Histogram

Array = NDArray[np.float64]

_MOST_COLUMNS, _MOST_LEVELS = 60, 20  # that a page shows; the files have all
_BARS = 32
_WIDTH, _HEIGHT = 128, 32
_CENTRAL = 0.005  # share of the synthetic cells at each end that a picture leaves out


@dataclass(frozen=True)
class ColumnLine:
    """One column: numbers of the release and of the synthetic rows, and both distributions.

    Parameters
    ----------
    column
        Name of the table column.
    picture
        The release in bars and the synthetic rows as a line; empty without a published
        distribution.
    quantities
        (quantity or level, release, synthetic).
    more
        Number of levels that are left out.
    """

    column: str
    picture: Markup
    quantities: list[tuple[str, float, float]]
    more: int


def part(release: ReleaseBundle, estimate: EstimateBundle) -> Markup:
    """The part about one estimate of kind ``synthetic``."""
    tables, tuning = estimate.tables, estimate.manifest.tuning
    rows, marginals = tables["rows"], tables["marginals"]
    histograms = {each.column: each for each in release.marginals}
    lines = [
        _line(str(name), rows[name], marginals[marginals["column"] == name], histograms.get(name))
        for name in rows.columns[:_MOST_COLUMNS]
    ]
    return Markup(
        render(
            "analyses/synthetic.html",
            estimate=estimate.manifest.estimate,
            group=estimate.group,
            rows=len(rows),
            lines=lines,
            columns=len(rows.columns),
            tuning=tuning,
            correlations=_correlations(estimate.manifest.estimate, tables["correlations"]),
        )
    )


def _line(
    name: str, cells: pd.Series, marginals: pd.DataFrame, histogram: Histogram | None
) -> ColumnLine:
    levels = marginals["level"].notna()
    labels = marginals["level"].where(levels, marginals["quantity"])
    quantities = list(
        zip(
            labels.astype(str),
            marginals["release"].astype(float),
            marginals["synthetic"].astype(float),
            strict=True,
        )
    )
    if levels.any():
        shares = marginals[levels]
        picture = _overlay(shares["release"].to_numpy(), shares["synthetic"].to_numpy())
        left_out = max(len(shares) - _MOST_LEVELS, 0)
        kept = quantities[: len(shares) - left_out] + quantities[len(shares) :]
        return ColumnLine(name, picture, kept, left_out)
    return ColumnLine(name, _distribution(cells, histogram), quantities, 0)


def _distribution(cells: pd.Series, histogram: Histogram | None) -> Markup:
    """A published histogram over equal bins, and the synthetic cells in the same bins."""
    present = cells.dropna().to_numpy(dtype=np.float64)
    if histogram is None or not present.size:
        return Markup()
    low, high = np.quantile(present, [_CENTRAL, 1 - _CENTRAL])
    edges = np.linspace(low, high if high > low else low + 1.0, _BARS + 1)
    lower, upper = histogram.lower[:-1], histogram.upper[:-1]
    overlap = np.minimum(upper[:, None], edges[1:]) - np.maximum(lower[:, None], edges[:-1])
    parts = np.maximum(overlap, 0.0) / (upper - lower)[:, None]
    released = np.maximum(histogram.count[:-1], 0) @ parts
    synthetic = np.histogram(present, edges)[0].astype(np.float64)
    return _overlay(released, synthetic)


def _overlay(released: Array, synthetic: Array) -> Markup:
    """Bars for the release and a stepped line for the synthetic rows, each with the same area."""
    heights = [each / (float(each.sum()) or 1.0) for each in (released, synthetic)]
    largest = max(float(each.max(initial=0.0)) for each in heights) or 1.0
    step = _WIDTH / max(released.size, 1)
    bars, line = "", f"M0,{_HEIGHT}"
    for k, (bar, level) in enumerate(zip(*heights, strict=True)):
        top, edge = (_HEIGHT * (1 - each / largest) for each in (bar, level))
        bars += (
            f'<rect x="{k * step:.1f}" y="{top:.1f}" width="{max(step - 0.5, 0.5):.1f}" '
            f'height="{_HEIGHT - top:.1f}"/>'
        )
        line += f"V{edge:.1f}H{(k + 1) * step:.1f}"
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    path = f'<path d="{line}V{_HEIGHT}" fill="none" stroke="var(--warm)" stroke-width="1.2"/>'
    svg = f'<svg {size} aria-hidden="true"><g fill="var(--accent)">{bars}</g>{path}</svg>'
    return Markup(svg)  # noqa: S704  of numbers only


def _correlations(name: str, correlations: pd.DataFrame) -> Markup:
    """Correlations of the synthetic rows over those of the release."""
    if correlations.empty:
        return Markup()
    title = "Correlations of the synthetic rows over those of the release"
    with figure(f"synthetic-{name}", title, 3.6, 3.4) as drawing:
        axes = drawing.axes
        axes.plot([-1, 1], [-1, 1], color=FAINT, lw=1)
        axes.plot(correlations["release"], correlations["synthetic"], ".", color=ACCENT, ms=4)
        axes.set_xlim(-1, 1)
        axes.set_ylim(-1, 1)
        axes.set_xlabel("release")
        axes.set_ylabel("synthetic rows")
    return drawing.svg
