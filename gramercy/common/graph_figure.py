"""The graph of an estimated precision matrix, with names, and weights on hover; without scripts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from gramercy.common.heat_maps import clustered, shortened
from gramercy.common.notation import significant

Array = NDArray[np.float64]
Point = tuple[float, float]

_MOST_EDGES, _MOST_NODES = 200, 100  # of a figure, the strongest edges first
_MOST_FREE = 24  # more nodes are placed on a circle, where no name covers another
_UNSTABLE = 0.5  # share of redraws; an edge that recurs less often is dashed
_FONT, _CHARACTER = 12.0, 6.7  # size of names and width of a character, in pixels
_WIDTH = 760.0  # of the nodes that are placed freely
_ACROSS, _DOWN, _BETWEEN = 92.0, 72.0, 56.0  # extents of a part by the root of its size; a gap
_FLAT = 1e-6  # relative extent of points on a line


def graph(
    name: str, partial: Array, names: Sequence[str], stability: Array | None = None
) -> Markup:
    """The graph of an estimated precision matrix.

    Parameters
    ----------
    name
        Id of the estimate.
    partial
        Partial correlations, zero for pairs without an edge; shape (p, p).
    names
        The p columns.
    stability
        Share of redraws in which each pair is an edge; unstable edges are dashed. Shape (p, p).

    Returns
    -------
    Markup
        The drawing, and a sentence on what is left out of it.
    """
    rows, cols = np.nonzero(np.triu(partial, 1))
    order = np.argsort(-np.abs(partial[rows, cols]), kind="stable")
    edges = list(zip(rows[order].tolist(), cols[order].tolist(), strict=True))
    if not edges:
        return Markup("<p>The graph has no edges.</p>")
    drawn = _strongest(edges)
    nodes = sorted({node for edge in drawn for node in edge})
    title = f"Graph of {len(nodes)} columns and {len(drawn)} edges."
    if len(nodes) <= _MOST_FREE:
        place, labels, box = _placed_freely(nodes, drawn, partial, names)
    else:
        place, labels, box = _on_circle(nodes, partial, names)
    strongest = abs(float(partial[drawn[0]]))
    lines = Markup().join(
        _line(
            place(a, b),
            float(partial[a, b]),
            strongest,
            f"{names[a]} with {names[b]}",
            unstable=stability is not None and bool(stability[a, b] < _UNSTABLE),
        )
        for a, b in reversed(drawn)  # the strongest on top
    )
    return Markup(
        '<div class="pane" role="region" aria-label="{}" tabindex="0">'
        '<svg class="graph" viewBox="{}" style="width: {:.0f}px" role="img" aria-label="{}">'
        "{}{}</svg></div>{}"
    ).format(
        f"Graph {name}", box, float(box.split()[2]), title, lines, labels,
        _left_out(len(edges), len(drawn), len(names), len(nodes)),
    )  # fmt: skip


def _strongest(edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The first edges that a figure has room for."""
    nodes: set[int] = set()
    drawn: list[tuple[int, int]] = []
    for edge in edges[:_MOST_EDGES]:
        if len(nodes | {*edge}) > _MOST_NODES:
            break
        nodes |= {*edge}
        drawn.append(edge)
    return drawn


def _left_out(edges: int, drawn: int, columns: int, nodes: int) -> Markup:
    words = []
    if drawn < edges:
        words.append(f"Only the {drawn} strongest of {edges:,} edges are drawn")
    if nodes < columns:
        others = columns - nodes
        are = "s without a drawn edge are" if others > 1 else " without a drawn edge is"
        words.append(f"{others:,} column{are} left out")
    return Markup('<p class="small">{}.</p>').format("; ".join(words)) if words else Markup()


def _line(path: str, weight: float, strongest: float, pair: str, *, unstable: bool) -> Markup:
    """An edge: its width and opacity are the size of its weight."""
    size = abs(weight) / strongest
    style = f"stroke-width: {0.8 + 4 * size:.2f}; stroke-opacity: {0.35 + 0.6 * size:.2f}"
    style += "; stroke-dasharray: 4 4" if unstable else ""
    colour = "accent" if weight > 0 else "warm"
    return Markup(
        '<path d="{}" style="stroke: var(--{}); {}; stroke-linecap: round"><title>{}</title></path>'
    ).format(path, colour, style, f"{pair}: {significant(weight, 2)}")


def _placed_freely(
    nodes: Sequence[int], edges: Sequence[tuple[int, int]], partial: Array, names: Sequence[str]
) -> tuple[Callable[[int, int], str], Markup, str]:
    """Positions at which the distance of two columns follows the strength of their edges."""
    import networkx as nx

    lengths = nx.Graph()
    lengths.add_nodes_from(nodes)
    for a, b in sorted(edges):
        lengths.add_edge(a, b, length=1 / math.sqrt(0.05 + abs(float(partial[a, b]))))
    margin = max((len(shortened(names[v])) for v in nodes), default=0) * _CHARACTER / 2 + 8
    at: dict[int, Point] = {}
    left, top, below, width = 0.0, 0.0, 0.0, 0.0
    parts = sorted(map(sorted, nx.connected_components(lengths)), key=lambda part: -len(part))
    for part in parts:  # in rows, the largest first
        spread = math.sqrt(len(part))
        size = _ACROSS * spread + 2 * margin, _DOWN * spread + _BETWEEN
        if left + size[0] > _WIDTH and left:
            left, top = 0.0, below
        for v, (x, y) in _kamada_kawai(lengths.subgraph(part)).items():
            at[v] = (left + margin + x * _ACROSS * spread, top + _BETWEEN / 2 + y * _DOWN * spread)
        left, below = left + size[0], max(below, top + size[1])
        width = max(width, left)

    def place(a: int, b: int) -> str:
        return f"M {at[a][0]:.1f} {at[a][1]:.1f} L {at[b][0]:.1f} {at[b][1]:.1f}"

    labels = Markup().join(
        Markup(
            '<circle cx="{0:.1f}" cy="{1:.1f}" r="3.5"><title>{2}</title></circle>'
            '<text x="{0:.1f}" y="{3:.1f}" text-anchor="middle">{4}</text>'
        ).format(x, y, names[v], y - 8, shortened(names[v]))
        for v, (x, y) in at.items()
    )
    return place, labels, f"0 0 {width:.0f} {below:.0f}"


def _kamada_kawai(part: Any) -> dict[int, Point]:
    """Positions in the unit square: deterministic, and rounded to be equal on every machine."""
    import networkx as nx

    distances = dict(nx.all_pairs_dijkstra_path_length(part, weight="length"))
    layout = nx.kamada_kawai_layout(part, dist=distances)
    points = np.array([layout[v] for v in sorted(layout)])
    points -= points.min(axis=0)
    spans = points.max(axis=0)
    points = np.round(points / np.where(spans > _FLAT * spans.max(), spans, spans.max()), 3)
    return dict(zip(sorted(layout), map(tuple, points.tolist()), strict=True))


def _on_circle(
    nodes: Sequence[int], partial: Array, names: Sequence[str]
) -> tuple[Callable[[int, int], str], Markup, str]:
    """Positions on a circle in the order of clusters; edges bend towards its centre."""
    block = np.abs(partial[np.ix_(nodes, nodes)])
    np.fill_diagonal(block, 0.0)
    order = [nodes[k] for k in clustered(block)]
    radius = max(150.0, 1.15 * _FONT * len(order) / (2 * math.pi))
    border = max(len(shortened(names[v])) for v in order) * _CHARACTER + 14
    centre = radius + border
    angle = {v: 2 * math.pi * k / len(order) - math.pi / 2 for k, v in enumerate(order)}

    def at(v: int, distance: float) -> Point:
        return centre + distance * math.cos(angle[v]), centre + distance * math.sin(angle[v])

    def place(a: int, b: int) -> str:
        (x, y), (u, v) = at(a, radius), at(b, radius)
        pull = 0.12 + 0.6 * abs(math.sin((angle[a] - angle[b]) / 2))  # of the bend to the centre
        bend = [(s + t) / 2 * (1 - pull) + centre * pull for s, t in ((x, u), (y, v))]
        return f"M {x:.1f} {y:.1f} Q {bend[0]:.1f} {bend[1]:.1f} {u:.1f} {v:.1f}"

    def labels() -> Iterator[Markup]:
        for v in order:
            (x, y), (u, w) = at(v, radius), at(v, radius + 8)
            turned = math.degrees(angle[v])
            left = math.cos(angle[v]) < -1e-9
            yield Markup(
                '<circle cx="{:.1f}" cy="{:.1f}" r="3"><title>{}</title></circle>'
                '<text transform="translate({:.1f} {:.1f}) rotate({:.2f})" y="4"'
                ' text-anchor="{}">{}</text>'
            ).format(
                x, y, names[v], u, w, turned + 180 * left, "end" if left else "start",
                shortened(names[v]),
            )  # fmt: skip

    return place, Markup().join(labels()), f"0 0 {2 * centre:.0f} {2 * centre:.0f}"
