"""Graphs of named columns, for networkx, igraph, Gephi and Cytoscape, which can be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from gramercy.common.plotting import Picture
from gramercy.schemas.column import INTERCEPT


class Graph(nx.Graph):  # type: ignore[misc]
    """A `networkx.Graph` with a picture; weights are on its edges."""

    def __repr__(self) -> str:
        return f"<Graph of {len(self)} columns: {self.number_of_edges()} edges>"

    def plot(self) -> Picture:
        """A picture of the graph: blue edges have positive weights, orange ones negative.

        The intercept is left out, as in estimates about the means, if it has no edges. Draw with
        `networkx.draw` for another layout, or for a figure of matplotlib.
        """
        nodes = [node for node in self if node != INTERCEPT or self.degree(node) > 0]
        return Picture.of_graph(nx.to_numpy_array(self, nodes), nodes)


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
