"""The graph of an estimate, which can be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

from gramercy.common.graph_plot import draw_graph
from gramercy.common.plotting import draws

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Graph(nx.Graph):  # type: ignore[misc]
    """A `networkx.Graph` with a picture; weights are on its edges."""

    def __repr__(self) -> str:
        return f"<Graph of {len(self)} columns: {self.number_of_edges()} edges>"

    @draws
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the graph; see `gramercy.common.graph_plot.draw_graph`."""
        return draw_graph(self, ax)
