"""A graph as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gramercy.common.plotting import axes
from gramercy.schemas.column import INTERCEPT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POSITIVE, NEGATIVE, GREY = "tab:blue", "tab:orange", "0.6"
_WIDEST = 5.0  # line width of the heaviest edge, in points


def draw_graph(graph: Any, ax: Axes | None = None) -> Axes:
    """Draw a graph on a circle: blue edges have positive weights, orange ones negative.

    The intercept is left out if it has no edges, as in estimates about the means.

    Parameters
    ----------
    graph
        A `networkx.Graph` with edge weights.
    ax
        Axes to draw on; None for a new figure.

    Raises
    ------
    MissingPackages
        If matplotlib is not installed.
    """
    nodes = [node for node in graph if node != INTERCEPT or graph.degree(node) > 0]
    side = max(4.0, min(12.0, 1.5 * math.sqrt(len(nodes)) + 2))
    ax = axes(ax, side, side)
    angles = [2 * math.pi * k / max(len(nodes), 1) for k in range(len(nodes))]
    places = {node: (math.sin(t), math.cos(t)) for node, t in zip(nodes, angles, strict=True)}
    weights = [float(weight) for *_, weight in graph.edges(data="weight", default=1.0)]
    heaviest = max((abs(weight) for weight in weights), default=1.0) or 1.0
    for (a, b), weight in zip(graph.edges, weights, strict=True):
        (x0, y0), (x1, y1) = places[a], places[b]
        width = max(_WIDEST * abs(weight) / heaviest, 0.5)
        ax.plot([x0, x1], [y0, y1], lw=width, color=POSITIVE if weight > 0 else NEGATIVE, zorder=1)
    for node, (x, y) in places.items():
        connected = graph.degree(node) > 0
        ax.plot(x, y, "o", ms=6, color=POSITIVE if connected else GREY, zorder=2)
        side_of_circle = "left" if x > 0.1 else "right" if x < -0.1 else "center"
        ax.annotate(
            str(node), (x, y), (x * 1.08, y * 1.08), ha=side_of_circle, va="center", zorder=3
        )
    ax.set_aspect("equal")
    ax.margins(0.25)
    ax.axis("off")
    return ax
