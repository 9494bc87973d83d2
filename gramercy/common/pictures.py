"""Pictures without scripts: heat maps of symmetric matrices, and graphs.

Names and values are SVG titles, which browsers show on hover. Their style is that of the reports'
pages. A heat map has one pixel per entry; a link enlarges a map of many columns in a region that
scrolls, where the names stay in sight. Matplotlib would take ten times as long, its names would
scroll away, and nothing would be shown on hover.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from gramercy.common.notation import shortened, significant

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Point = tuple[float, float]

FEWEST = 13  # fewer columns stay in the order of the contract
_STEPS = 256  # strengths are rounded to multiples of 1/256
_MOST_REFINED = 200  # columns whose clusters are also turned so that neighbours agree best
_LEAST_SCALE = 5  # smallest range of the colour scale for changes, in standard deviations
_MOST_LABELS = 80  # columns whose names fit next to the map without enlarging it
_MOST_SMALL_LABELS = 12  # of a small map
_ALL_CELLS = 64  # up to this many columns, every entry has its value on hover
_MOST_CELLS = 1500  # pairs with a value on hover otherwise, the strongest ones
_POSITIVE, _NEGATIVE, _NOISE = (59, 130, 246), (234, 88, 12), (128, 128, 128)
_LEVELS = 127  # shades of each colour
_NOISE_ALPHA = 26
_FONT, _CHARACTER = 11.0, 0.56  # size of names in pixels, and width of a character in font sizes
# Graphs.
_MOST_EDGES, _MOST_NODES = 200, 100  # of a figure, the strongest edges first
MOST_FREE = 24  # more nodes are placed on a circle, where no name covers another
_UNSTABLE = 0.5  # share of redraws; an edge that recurs less often is dashed
_NODE_FONT, _NODE_CHARACTER = 12.0, 6.7  # size of names and width of a character, in pixels
SHORT = 12  # characters of a name in one of several graphs
_RADIUS, _SMALL_RADIUS = 150.0, 84.0  # the least ones of a circle, in pixels
_WIDTH = 760.0  # of the nodes that are placed freely
_ACROSS, _DOWN, _BETWEEN = 92.0, 72.0, 56.0  # extents of a part by the root of its size; a gap
_FLAT = 1e-6  # relative extent of points on a line


def heat_map(correlation: Array, hidden: Mask, names: Sequence[str]) -> Markup:
    """A heat map of correlations, shape (p, p); entries within the noise, `hidden`, are grey.

    Correlations are NaN where undefined. Empty if every pair is within the noise.
    """
    if hidden[np.triu_indices(len(names), 1)].all():
        return Markup()
    title = "Heat map of the released correlations; entries within the noise are grey."
    drawing = _Map("heat", title, 1.0, *_in_clusters(correlation, hidden, names))
    return drawing.full(lambda value: significant(value, 2), "−1", "1")


def changes(deviations: Array, hidden: Mask, names: Sequence[str]) -> Markup:
    """A heat map of the differences between two releases; those within the noise are grey.

    `deviations` are in standard deviations of the noise. Empty if all of them are hidden.
    """
    if hidden.all():
        return Markup()
    title = "Heat map of the changes between two releases; those within the noise are grey."
    limit = max(_LEAST_SCALE, math.ceil(float(np.abs(deviations).max(initial=0.0))))
    drawing = _Map("changes", title, limit, *_in_clusters(deviations, hidden, names))
    return drawing.full(
        lambda value: f"{significant(value, 2)} standard deviations", f"−{limit}", f"{limit}"
    )


def matrix_map(
    name: str, values: Array, names: Sequence[str], uncertain: Mask | None = None
) -> Markup:
    """A heat map of any symmetric matrix; unknown entries, which are NaN, are grey.

    `name` distinguishes the figures of a page. Entries that are `uncertain` are hatched; among many
    columns they are grey as well.
    """
    unknown = np.isnan(values)
    wide = np.zeros_like(unknown) if uncertain is None else uncertain & ~unknown
    if len(names) > _ALL_CELLS:
        unknown, wide = unknown | wide, np.zeros_like(wide)
    limit = float(np.abs(values[~unknown]).max(initial=0.0)) or 1.0
    title = "Heat map of a matrix; unknown entries are grey."
    ordered = _in_clusters(values, unknown, names)
    places = [list(names).index(each) for each in ordered[2]]
    drawing = _Map(name, title, limit, *ordered, "unknown", wide[np.ix_(places, places)])
    ends = significant(-limit, 2), significant(limit, 2)
    return drawing.full(lambda value: significant(value, 3), *ends)


def small_heat_map(
    name: str, heading: str, correlation: Array, hidden: Mask, names: Sequence[str]
) -> Markup:
    """One of several heat maps of correlations side by side, in the order of the contract."""
    title = f"Heat map of the correlations within {heading}; those within the noise are grey."
    return _Map(name, title, 1.0, correlation, hidden, list(names)).small(heading)


def _in_clusters(
    values: Array, hidden: Mask, names: Sequence[str]
) -> tuple[Array, Mask, list[str]]:
    """A matrix with its columns in the order of their clusters."""
    order = clustered(np.where(hidden, 0.0, np.abs(np.nan_to_num(values))))
    block = np.ix_(order, order)
    return values[block], hidden[block], [names[k] for k in order]


@dataclass(frozen=True)
class _Map:
    """A matrix in the order in which it is drawn."""

    name: str
    title: str
    limit: float
    values: Array
    hidden: Mask
    names: list[str]
    grey: str = "within the noise"
    hatched: Mask | None = None

    def full(self, words: Callable[[float], str], low: str, high: str) -> Markup:
        """The map with names, values on hover and a colour scale."""
        p = len(self.names)
        cell = max(9.6, min(34.0, 560 / max(p, 1))) if p <= _MOST_LABELS else 12.0
        border, wide = self._border(cell), p > _MOST_LABELS
        grid = Markup('<div class="grid">{}{}{}</div>').format(
            self._names("top", border, cell), self._names("side", border, cell), self._body(words)
        )
        style = f"--cells: {p}; --border: {border:.2f}; --cell: {cell:.1f}px"
        links = Markup(
            '<p class="small zoom"><a href="#{0}-large">Enlarge, with the names of all columns</a>'
            '<a href="#{0}">Fit to the page</a></p>'
        ).format(self.name)
        scale = Markup(
            '<p class="scale"><span>{}</span><i class="range"></i><span>{}</span>'
            '<i class="noise"></i><span>{}</span>{}</p>'
        ).format(low, high, self.grey, self._hatching_key())
        return Markup(
            '<div class="map{}" id="{}" style="{}"><div class="pane" id="{}-large" role="region"'
            ' aria-label="{}" tabindex="0">{}</div>{}{}</div>'
        ).format(
            " wide" if wide else "",
            self.name,
            style,
            self.name,
            self.title.partition(";")[0],
            grid,
            scale,
            links if wide else "",
        )

    def small(self, heading: str) -> Markup:
        """The map under a heading, with names if they fit."""
        p = len(self.names)
        cell = 150 / max(p, 1)
        labels, border = Markup(), 0.0
        if p <= _MOST_SMALL_LABELS:
            border = self._border(cell)
            labels = self._names("top", border, cell) + self._names("side", border, cell)
        style = f"--cells: {p}; --border: {border:.2f}; --cell: {cell:.2f}px"
        body = self._body(None)
        return Markup(
            '<div class="map small" style="{}"><b>{}</b><div class="grid">{}{}</div></div>'
        ).format(style, shortened(heading), labels, body)

    def _border(self, cell: float) -> float:
        """Room for the longest name, in cells."""
        length = max((len(shortened(name)) for name in self.names), default=1)
        return length * _CHARACTER * min(_FONT, 0.92 * cell) / cell + 1

    def _names(self, side: str, border: float, cell: float) -> Markup:
        """The names along one side; the unit of the drawing is a cell."""
        p, size = len(self.names), min(_FONT, 0.92 * cell) / cell
        box = f"0 0 {border:.2f} {p}" if side == "side" else f"0 0 {p} {border:.2f}"
        at = border - 0.4 if side == "side" else 0.4 - border
        turn = "" if side == "side" else ' transform="rotate(-90)"'
        texts = Markup().join(
            Markup('<text x="{:.2f}" y="{:.2f}"><title>{}</title>{}</text>').format(
                at, k + 0.5 + 0.36 * size, name, shortened(name)
            )
            for k, name in enumerate(self.names)
        )
        anchor = "end" if side == "side" else "start"
        opening = Markup(
            '<svg class="{}" viewBox="{}" aria-hidden="true" font-size="{:.3f}" text-anchor="{}">'
        ).format(side, box, size, anchor)
        return opening + Markup("<g{}>{}</g></svg>").format(Markup(turn), texts)  # noqa: S704

    def _body(self, words: Callable[[float], str] | None) -> Markup:
        """The pixels, and areas with names and values."""
        p = len(self.names)
        areas = self._hatching() + ("" if words is None else self._areas(words))
        return Markup(
            '<svg class="body" viewBox="0 0 {0} {0}" role="img" aria-label="{1}">'
            '<image width="{0}" height="{0}" href="{2}"/>{3}</svg>'
        ).format(p, self.title, self._pixels(), Markup(areas))  # noqa: S704  escaped below

    def _hatching(self) -> str:
        """Diagonal lines over the entries that are uncertain."""
        if self.hatched is None or not self.hatched.any():
            return ""
        lines = "".join(
            f"M{j} {i + 0.5}l.5-.5M{j} {i + 1}l1-1M{j + 0.5} {i + 1}l.5-.5"
            for i, j in np.argwhere(self.hatched).tolist()
        )
        return f'<path class="hatching" d="{lines}"/>'

    def _hatching_key(self) -> Markup:
        if not self._hatching():
            return Markup()
        return Markup('<i class="hatched"></i><span>uncertain</span>')

    def _areas(self, words: Callable[[float], str]) -> str:
        names, p = [str(escape(name)) for name in self.names], len(self.names)
        rows, cols = np.indices((p, p)).reshape(2, -1)
        areas = []
        if p > _ALL_CELLS:
            areas = [
                f'<path d="M0 {i}h{p}v1H0z"><title>{name}</title></path>'
                for i, name in enumerate(names)
            ]
            shown = np.argwhere(np.triu(~self.hidden, 1))
            size = -np.abs(self.values[tuple(shown.T)])
            pairs = shown[np.argsort(size, kind="stable")[:_MOST_CELLS]]
            rows, cols = np.concatenate([pairs, pairs[:, ::-1]]).T
        for i, j in zip(rows.tolist(), cols.tolist(), strict=True):
            value = self.grey if self.hidden[i, j] else words(float(self.values[i, j]))
            value += ", uncertain" if self.hatched is not None and self.hatched[i, j] else ""
            pair = names[i] if i == j else f"{names[i]} with {names[j]}"
            areas.append(f'<path d="M{j} {i}h1v1h-1z"><title>{pair}: {value}</title></path>')
        return "".join(areas)

    def _pixels(self) -> str:
        """A PNG of one pixel per entry: its colour is the sign, its opacity the size."""
        from PIL import Image

        level = np.rint(np.clip(np.nan_to_num(self.values) / self.limit, -1, 1) * _LEVELS)
        index = np.where(self.hidden, 0, level + _LEVELS + 1).astype(np.uint8)
        steps = np.arange(-_LEVELS, _LEVELS + 1)
        colours = np.where((steps > 0)[:, None], _POSITIVE, _NEGATIVE)
        palette = np.concatenate([[_NOISE], colours]).astype(np.uint8)
        opacity = [_NOISE_ALPHA, *np.rint(np.abs(steps) * 255 / _LEVELS).astype(int).tolist()]
        picture = Image.fromarray(index)
        picture.putpalette(palette.tobytes())
        stream = io.BytesIO()
        picture.save(stream, "png", transparency=bytes(opacity), optimize=True)
        return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"


def clustered(strength: Array) -> list[int]:
    """The columns in the order of a hierarchical clustering.

    `strength` is symmetric and nonnegative, such as absolute correlations with zeros for entries
    within the noise; shape (p, p). The order is range(p) for few columns, and if no strength is
    positive. Clusters are merged by their average strength (WPGMA). Strengths are rounded to dyadic
    fractions, whose averages are exact, so that the order is the same on every machine.
    """
    p = len(strength)
    above = np.triu_indices(p, 1)
    largest = float(strength[above].max(initial=0.0))
    if p < FEWEST or largest == 0:
        return list(range(p))
    from scipy.cluster.hierarchy import leaves_list, linkage

    distances = 1 - np.round(np.minimum(strength[above] / largest, 1) * _STEPS) / _STEPS
    merged = linkage(distances, "weighted", optimal_ordering=p <= _MOST_REFINED)
    order: list[int] = leaves_list(merged).tolist()
    return order


def graph(
    name: str,
    partial: Array,
    names: Sequence[str],
    stability: Array | None = None,
    like: Array | None = None,
) -> Markup:
    """The graph of partial correlations, shape (p, p), zero for pairs without an edge.

    `stability` is the share of redraws in which each pair is an edge; unstable edges are dashed.
    Columns are those with an edge in `like`, the weights by which they are placed, and lines are as
    wide as its largest weight tells: graphs with equal `like` can be compared.
    """
    shape = partial if like is None else like
    nodes, placed = _nodes(shape)
    edges = _edges(partial)
    if not nodes:
        return Markup("<p>The graph has no edges.</p>")
    drawn = [edge for edge in edges if {*edge} <= {*nodes}][:_MOST_EDGES]
    drawn = placed if like is None else drawn
    title = f"Graph of {len(nodes)} columns and {len(drawn)} edges."
    short = names if like is None else [shortened(each, SHORT) for each in names]
    if len(nodes) <= MOST_FREE:
        place, labels, box = _placed_freely(nodes, placed, shape, names, short)
    else:
        radius = _RADIUS if like is None else _SMALL_RADIUS
        place, labels, box = _on_circle(nodes, shape, names, short, radius)
    words = []
    if len(drawn) < len(edges):
        words.append(f"Only the {len(drawn)} strongest of {len(edges):,} edges are drawn")
    if like is None and (others := len(names) - len(nodes)):
        are = "s without a drawn edge are" if others > 1 else " without a drawn edge is"
        words.append(f"{others:,} column{are} left out")
    left_out = Markup('<p class="small">{}.</p>').format("; ".join(words)) if words else ""
    strongest = float(np.abs(shape[~np.eye(len(shape), dtype=bool)]).max())
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
    ).format(f"Graph {name}", box, float(box.split()[2]), title, lines, labels, left_out)


def small_graphs(name: str, tables: Mapping[str, Array], names: Sequence[str]) -> Markup:
    """The graphs of several tables next to each other, every column at one place in all of them."""
    like = all_edges([*tables.values()])
    return Markup().join(
        Markup("<div><b>{}</b>{}</div>").format(table, graph(f"{name}-{k}", own, names, like=like))
        for k, (table, own) in enumerate(tables.items())
    )


def all_edges(tables: Sequence[Array]) -> Array:
    """The largest weight of each pair in any table, in size; shape (p, p)."""
    largest: Array = np.max(np.abs(tables), axis=0)
    return largest


def places(partial: Array) -> dict[int, Point]:
    """Where the columns with edges are in a figure of matplotlib, which measures upwards."""
    nodes, edges = _nodes(partial)
    if len(nodes) <= MOST_FREE:
        at, _ = _free_places(nodes, edges, partial, 24.0)
    else:
        angles = _angles(nodes, partial)
        at = {v: (200 * math.cos(angle), 200 * math.sin(angle)) for v, angle in angles.items()}
    return {v: (x, -y) for v, (x, y) in at.items()}


def _edges(partial: Array) -> list[tuple[int, int]]:
    """Pairs with an edge, the strongest first."""
    rows, cols = np.nonzero(np.triu(partial, 1))
    order = np.argsort(-np.abs(partial[rows, cols]), kind="stable")
    return list(zip(rows[order].tolist(), cols[order].tolist(), strict=True))


def _nodes(partial: Array) -> tuple[list[int], list[tuple[int, int]]]:
    """The columns and the strongest edges that a figure has room for."""
    nodes: set[int] = set()
    drawn: list[tuple[int, int]] = []
    for edge in _edges(partial)[:_MOST_EDGES]:
        if len(nodes | {*edge}) > _MOST_NODES:
            break
        nodes |= {*edge}
        drawn.append(edge)
    return sorted(nodes), drawn


def _line(path: str, weight: float, strongest: float, pair: str, *, unstable: bool) -> Markup:
    """An edge: its width and opacity are the size of its weight."""
    size = abs(weight) / strongest
    style = f"stroke-width: {0.8 + 4 * size:.2f}; stroke-opacity: {0.35 + 0.6 * size:.2f}"
    style += "; stroke-dasharray: 4 4" if unstable else ""
    colour = "accent" if weight > 0 else "warm"
    return Markup(
        '<path d="{}" style="stroke: var(--{}); {}; stroke-linecap: round"><title>{}</title></path>'
    ).format(path, colour, style, f"{pair}: {significant(weight, 2)}")


def _free_places(
    nodes: Sequence[int], edges: Sequence[tuple[int, int]], partial: Array, margin: float
) -> tuple[dict[int, Point], Point]:
    """Positions at which the distance of two columns follows the strength of their edges.

    Also the width and height of the figure, in pixels.
    """
    import networkx as nx

    lengths = nx.Graph()
    lengths.add_nodes_from(nodes)
    for a, b in sorted(edges):
        lengths.add_edge(a, b, length=1 / math.sqrt(0.05 + abs(float(partial[a, b]))))
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
    return at, (width, below)


def _placed_freely(
    nodes: Sequence[int],
    edges: Sequence[tuple[int, int]],
    partial: Array,
    names: Sequence[str],
    short: Sequence[str],
) -> tuple[Callable[[int, int], str], Markup, str]:
    """Straight edges between columns whose distance follows the strength of their edges."""
    margin = max((len(shortened(short[v])) for v in nodes), default=0) * _NODE_CHARACTER / 2 + 8
    at, (width, below) = _free_places(nodes, edges, partial, margin)

    def place(a: int, b: int) -> str:
        return f"M {at[a][0]:.1f} {at[a][1]:.1f} L {at[b][0]:.1f} {at[b][1]:.1f}"

    labels = Markup().join(
        Markup(
            '<circle cx="{0:.1f}" cy="{1:.1f}" r="3.5"><title>{2}</title></circle>'
            '<text x="{0:.1f}" y="{3:.1f}" text-anchor="middle">{4}</text>'
        ).format(x, y, names[v], y - 8, shortened(short[v]))
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


def _angles(nodes: Sequence[int], partial: Array) -> dict[int, float]:
    """Angles on a circle, in the order of clusters."""
    block = np.abs(partial[np.ix_(nodes, nodes)])
    np.fill_diagonal(block, 0.0)
    order = [nodes[k] for k in clustered(block)]
    return {v: 2 * math.pi * k / len(order) - math.pi / 2 for k, v in enumerate(order)}


def _on_circle(
    nodes: Sequence[int],
    partial: Array,
    names: Sequence[str],
    short: Sequence[str],
    least_radius: float,
) -> tuple[Callable[[int, int], str], Markup, str]:
    """Positions on a circle in the order of clusters; edges bend towards its centre."""
    angle = _angles(nodes, partial)
    order = [*angle]
    radius = max(least_radius, 1.15 * _NODE_FONT * len(order) / (2 * math.pi))
    border = max(len(shortened(short[v])) for v in order) * _NODE_CHARACTER + 14
    centre = radius + border

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
                shortened(short[v]),
            )  # fmt: skip

    return place, Markup().join(labels()), f"0 0 {2 * centre:.0f} {2 * centre:.0f}"
