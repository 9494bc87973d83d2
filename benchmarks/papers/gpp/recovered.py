"""Figures 4 and 5: drawings of the recovered graphs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.arrays import Array, Rng
from benchmarks.pages import table
from benchmarks.papers import data
from benchmarks.papers.experiment import Experiment, Figures, Measured
from benchmarks.papers.gpp.protocol import METHODS, Estimate, published
from benchmarks.papers.gpp.real import TABLES, rows_of
from benchmarks.papers.gpp.scoring import decibels

Edges = NDArray[np.bool_]
LEVELS = (math.inf, 20.0, 10.0, 0.0)
DRAWN = ("sachs", "ieee14")
Pairs = list[list[int]]


def measure(rng: Rng, *, key: str) -> Figures:
    """Return the true edges and, at every noise level, as many pairs of largest weight."""
    rows, truth = rows_of(key), data.truth(TABLES[key].name)
    figures: Figures = {"truth": pairs(truth), "p": rows.shape[1]}
    for level in LEVELS:
        result = METHODS["debiased"].find(published(rows, level, rng))
        figures[decibels(level)] = pairs(largest(result, int(truth.sum()) // 2))
    return figures


def largest(result: Estimate, count: int) -> Edges:
    """Return the `count` pairs with the largest weights."""
    upper = np.triu_indices(len(result.weights), 1)
    size = np.abs(result.weights[upper])
    order = np.argsort(-size, kind="stable")[:count]
    order = order[size[order] > 0]
    made = np.zeros(result.weights.shape, dtype=bool)
    made[upper[0][order], upper[1][order]] = True
    return made | made.T


def pairs(edges: Edges) -> Pairs:
    """Return the edges in the upper triangle as pairs of indices."""
    result: Pairs = np.argwhere(np.triu(edges)).tolist()
    return result


def _page(measured: Measured, *, key: str) -> Iterator[str]:
    truth, found = _graphs(measured, key)
    yield from table(
        ("noise", "true edges found", "false edges"),
        (
            (level, f"{len(truth & edges)} of {len(truth)}", f"{len(edges - truth)}")
            for level, edges in found.items()
        ),
    )


def _graphs(
    measured: Measured, key: str
) -> tuple[set[tuple[int, int]], dict[str, set[tuple[int, int]]]]:
    """Return the true and the recovered edges of the first repetition."""

    def of(figure: str) -> set[tuple[int, int]]:
        return {(int(i), int(j)) for i, j in measured.values(figure, key=key)[0]}

    return of("truth"), {decibels(level): of(decibels(level)) for level in LEVELS}


def _draw(measured: Measured, *, key: str) -> Figure:
    truth, found = _graphs(measured, key)
    p = int(measured.mean("p", key=key).mean)
    canvas = Figure(figsize=(2.6 * (1 + len(found)), 2.9), layout="constrained")
    panels = canvas.subplots(1, 1 + len(found))
    graph = nx.Graph(sorted(truth))
    graph.add_nodes_from(range(p))
    places = nx.kamada_kawai_layout(graph)
    for axes, (title, edges) in zip(panels, {"truth": truth, **found}.items(), strict=True):
        _graph(axes, places, p, truth, edges)
        axes.set_title("no noise" if title == "none" else title)
    canvas.supxlabel("black: true and found; red: false; grey, dotted: missed", fontsize=8)
    return canvas


def _graph(
    axes: Axes,
    places: dict[int, Array],
    p: int,
    truth: set[tuple[int, int]],
    edges: set[tuple[int, int]],
) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(range(p))
    nx.draw_networkx_nodes(graph, places, ax=axes, node_size=60, node_color="lightgrey")
    nx.draw_networkx_labels(graph, places, ax=axes, font_size=5)
    for some, style in (
        (truth & edges, {"edge_color": "black"}),
        (edges - truth, {"edge_color": "C3"}),
        (truth - edges, {"edge_color": "grey", "style": "dotted"}),
    ):
        nx.draw_networkx_edges(graph, places, edgelist=sorted(some), ax=axes, **style)
    axes.set_axis_off()


def _experiment(key: str) -> Experiment:
    of, setting = TABLES[key], ((("key", key),),)
    return Experiment(
        title=f"Figures 4 and 5: the graph of {of.title.lower()}",
        about=(
            "Of the debiased graphical lasso, the pairs of the largest |Theta_ij|, as many as the "
            "truth has edges, since at that penalty nearly all pairs have an edge. "
            f"{of.reading} One draw."
        ),
        settings=setting,
        repetitions=1,
        measure=measure,
        page=partial(_page, key=key),
        draw=partial(_draw, key=key),
        quick=setting,
        table=of.name,
    )


EXPERIMENTS = {f"figure-4-{key}": _experiment(key) for key in DRAWN}
