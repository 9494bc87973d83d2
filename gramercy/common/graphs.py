"""Graphs of named columns, for networkx, igraph, Gephi and Cytoscape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray


def weighted_graph(names: Sequence[str], edges: NDArray[np.float64], **facts: str) -> Any:
    """The graph of a matrix of weights.

    Parameters
    ----------
    names
        Its p nodes. Each also has its name as the attributes ``name``, by which igraph finds it,
        and ``label``, which Gephi and Cytoscape show: the ids of GraphML are internal to a file.
    edges
        Weights, shape (p, p), symmetric; zero for a missing edge.
    facts
        Attributes of the graph.

    Returns
    -------
    networkx.Graph
        Its edges have the attribute ``weight``.
    """
    graph = nx.Graph(**facts)
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
