"""Graphs of named columns, for networkx, igraph, Gephi and Cytoscape, which can be drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from gramercy.common.notation import shortened
from gramercy.common.plotting import Picture, axes, draws, with_words
from gramercy.schemas.column import INTERCEPT

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Graph(nx.Graph):  # type: ignore[misc]
    """A `networkx.Graph` with a picture; weights are on its edges."""

    def __repr__(self) -> str:
        return f"<Graph of {len(self)} columns: {self.number_of_edges()} edges>"

    @draws
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the graph: edges of positive and of negative weights have different colours.

        Columns without edges are left out. `picture` shows names and weights on hover; for another
        layout, use `networkx.draw`.
        """
        drawn = axes(ax, 6.0, 5.0)
        draw_graph(nx.to_numpy_array(self), list(self), drawn)
        edges = self.number_of_edges()
        return with_words(drawn, f"Graph of {edges} edge{'s' * (edges != 1)}")

    def picture(self) -> Picture:
        """A picture for notebooks and pages: edges are blue, and orange if negative.

        The intercept is left out, as in estimates about the means, if it has no edges.

        Raises
        ------
        MissingPackages
            If the packages that draw are not installed.
        """
        nodes = [node for node in self if node != INTERCEPT or self.degree(node) > 0]
        return Picture.of_graph(nx.to_numpy_array(self, nodes), nodes)


def draw_graph(
    weights: NDArray[np.float64],
    names: Sequence[str],
    ax: Axes,
    like: NDArray[np.float64] | None = None,
) -> None:
    """Draw a symmetric matrix of weights, shape (p, p), as a graph; zero for a missing edge.

    Columns are placed, and lines are as wide, as the weights `like` tell: those of
    `pictures.all_edges` for several graphs that are compared.
    """
    from gramercy.common.pictures import MOST_FREE, SHORT, places

    shape = weights if like is None else like
    at, largest = places(shape), float(np.abs(shape).max(initial=0.0)) or 1.0
    for i, j in zip(*np.nonzero(np.triu(weights, 1)), strict=True):
        if i in at and j in at:
            size = abs(weights[i, j]) / largest
            style: Any = {"lw": 0.8 + 4 * size, "alpha": 0.35 + 0.6 * size}
            (x, y), (u, v) = at[i], at[j]
            colour = "C0" if weights[i, j] > 0 else "C1"
            ax.plot([x, u], [y, v], color=colour, solid_capstyle="round", **style)
    on_circle, most = len(at) > MOST_FREE, 24 if like is None else SHORT
    for k, (x, y) in at.items():
        ax.plot(x, y, "o", color="0.3", ms=4)
        words: Any
        angle, words = math.atan2(y, x), {"ha": "center", "va": "bottom"}
        offset, turn = (0.0, 5.0), 0.0
        if on_circle:  # names point away from its centre
            offset, turn = (6 * math.cos(angle), 6 * math.sin(angle)), math.degrees(angle)
            words = {"ha": "left" if x >= 0 else "right", "va": "center"}
            turn -= 0 if x >= 0 else 180
        ax.annotate(
            shortened(names[k], most), (x, y), offset, textcoords="offset points", fontsize="small",
            rotation=turn, rotation_mode="anchor", parse_math=False, **words,
        )  # fmt: skip
    ax.set_aspect("equal" if on_circle else "auto")
    ax.margins(0.35 if on_circle else 0.15)
    ax.set_axis_off()


def weighted_graph(names: Sequence[str], edges: NDArray[np.float64], **facts: str) -> Graph:
    """The graph of a symmetric matrix of weights, shape (p, p); zero for a missing edge.

    Each of its p nodes also has its name as the attributes ``name``, by which igraph finds it, and
    ``label``, which Gephi and Cytoscape show: the ids of GraphML are internal to a file.
    """
    graph = Graph(**facts)
    graph.add_nodes_from((name, {"name": name, "label": name}) for name in names)
    for i, j in zip(*np.nonzero(np.triu(edges, 1)), strict=True):
        graph.add_edge(names[i], names[j], weight=float(edges[i, j]))
    return graph


def has_own_names(graph: Any) -> bool:
    """Whether no node has the name or the label of another one."""
    return all(
        facts.get(key, node) == node
        for node, facts in graph.nodes(data=True)
        for key in ("name", "label")
    )
