"""Heat maps of symmetric matrices: one pixel per entry, names, and values on hover.

They need no script. Names and values are SVG titles, which browsers show on hover; a link enlarges
a map of many columns in a region that scrolls, where the names stay in sight. Their style is that
of the reports' pages. Matplotlib would take ten times as long, and its names would scroll away.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from gramercy.common.notation import significant

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 13  # fewer columns stay in the order of the contract
_STEPS = 256  # strengths are rounded to multiples of 1/256
_MOST_REFINED = 200  # columns whose clusters are also turned so that neighbours agree best
_LONGEST = 24  # characters of a name next to a figure
_LEAST_SCALE = 5  # smallest range of the colour scale for changes, in standard deviations
_MOST_LABELS = 80  # columns whose names fit next to the map without enlarging it
_MOST_SMALL_LABELS = 12  # of a small map
_ALL_CELLS = 64  # up to this many columns, every entry has its value on hover
_MOST_CELLS = 1500  # pairs with a value on hover otherwise, the strongest ones
_POSITIVE, _NEGATIVE, _NOISE = (59, 130, 246), (234, 88, 12), (128, 128, 128)
_LEVELS = 127  # shades of each colour
_NOISE_ALPHA = 26
_FONT, _CHARACTER = 11.0, 0.56  # size of names in pixels, and width of a character in font sizes


def heat_map(correlation: Array, hidden: Mask, names: Sequence[str]) -> Markup:
    """A heat map of correlations; entries within the noise are grey.

    Parameters
    ----------
    correlation
        Shape (p, p); NaN where undefined.
    hidden
        Whether an entry is within the noise; shape (p, p).
    names
        The p columns.

    Returns
    -------
    Markup
        Empty if every pair is within the noise.
    """
    if hidden[np.triu_indices(len(names), 1)].all():
        return Markup()
    title = "Heat map of the released correlations; entries within the noise are grey."
    drawing = _Map.of("heat", title, correlation, hidden, names, 1.0)
    return drawing.full(lambda value: significant(value, 2), "−1", "1")


def changes(deviations: Array, hidden: Mask, names: Sequence[str]) -> Markup:
    """A heat map of the differences between two releases; those within the noise are grey.

    Parameters
    ----------
    deviations
        The difference in standard deviations of its noise; shape (p, p).
    hidden
        Whether an entry is within the noise; shape (p, p).
    names
        The p columns.

    Returns
    -------
    Markup
        Empty if every entry is within the noise.
    """
    if hidden.all():
        return Markup()
    title = "Heat map of the changes between two releases; those within the noise are grey."
    limit = max(_LEAST_SCALE, math.ceil(float(np.abs(deviations).max(initial=0.0))))
    drawing = _Map.of("changes", title, deviations, hidden, names, limit)
    return drawing.full(
        lambda value: f"{significant(value, 2)} standard deviations", f"−{limit}", f"{limit}"
    )


def matrix_map(name: str, values: Array, names: Sequence[str]) -> Markup:
    """A heat map of any symmetric matrix; unknown entries, which are NaN, are grey.

    Parameters
    ----------
    name
        Distinguishes the figures of a page.
    values
        Shape (p, p).
    names
        The p columns.
    """
    unknown = np.isnan(values)
    limit = float(np.abs(values[~unknown]).max(initial=0.0)) or 1.0
    title = "Heat map of a matrix; unknown entries are grey."
    drawing = _Map.of(name, title, values, unknown, names, limit, "unknown")
    ends = significant(-limit, 2), significant(limit, 2)
    return drawing.full(lambda value: significant(value, 3), *ends)


def small_heat_map(
    name: str, heading: str, correlation: Array, hidden: Mask, names: Sequence[str]
) -> Markup:
    """One of several heat maps of correlations side by side, in the order of the contract.

    Parameters
    ----------
    name
        Distinguishes the figures of a page.
    heading
        What it shows.
    correlation, hidden, names
        See `heat_map`.
    """
    title = f"Heat map of the correlations within {heading}; those within the noise are grey."
    return _Map(name, title, correlation, hidden, list(names), 1.0).small(heading)


@dataclass(frozen=True)
class _Map:
    """A matrix in the order in which it is drawn."""

    name: str
    title: str
    values: Array
    hidden: Mask
    names: list[str]
    limit: float
    grey: str = "within the noise"

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        values: Array,
        hidden: Mask,
        names: Sequence[str],
        limit: float,
        grey: str = "within the noise",
    ) -> _Map:
        """The matrix with its columns in the order of their clusters."""
        order = clustered(np.where(hidden, 0.0, np.abs(np.nan_to_num(values))))
        block = np.ix_(order, order)
        return cls(
            name, title, values[block], hidden[block], [names[k] for k in order], limit, grey
        )

    def full(self, words: Callable[[float], str], low: str, high: str) -> Markup:
        """The map with names, values on hover and a colour scale."""
        p = len(self.names)
        cell = max(9.6, min(34.0, 560 / max(p, 1))) if p <= _MOST_LABELS else 12.0
        length = max((len(shortened(name)) for name in self.names), default=1)
        border = length * _CHARACTER * min(_FONT, 0.92 * cell) / cell + 1  # in cells
        wide = p > _MOST_LABELS
        grid = Markup('<div class="grid">{}{}{}</div>').format(
            self._names("top", border, cell), self._names("side", border, cell), self._body(words)
        )
        style = f"--cells: {p}; --border: {border:.2f}; --cell: {cell:.1f}px"
        links = Markup(
            '<p class="small zoom"><a href="#{0}-large">Enlarge, with the names of all columns</a>'
            '<a href="#{0}">Fit to the page</a></p>'
        ).format(self.name)
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
            _scale(low, high, self.grey),
            links if wide else "",
        )

    def small(self, heading: str) -> Markup:
        """The map under a heading, with names if they fit."""
        p = len(self.names)
        cell = 150 / max(p, 1)
        length = max((len(shortened(name)) for name in self.names), default=1)
        border = length * _CHARACTER * min(_FONT, 0.92 * cell) / cell + 1
        labels = Markup()
        if p <= _MOST_SMALL_LABELS:
            labels = self._names("top", border, cell) + self._names("side", border, cell)
        else:
            border = 0.0
        style = f"--cells: {p}; --border: {border:.2f}; --cell: {cell:.2f}px"
        body = self._body(None)
        return Markup(
            '<div class="map small" style="{}"><b>{}</b><div class="grid">{}{}</div></div>'
        ).format(style, shortened(heading), labels, body)

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
        areas = "" if words is None else self._areas(words)
        return Markup(
            '<svg class="body" viewBox="0 0 {0} {0}" role="img" aria-label="{1}">'
            '<image width="{0}" height="{0}" href="{2}"/>{3}</svg>'
        ).format(p, self.title, self._pixels(), Markup(areas))  # noqa: S704  escaped below

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


def _scale(low: str, high: str, grey: str) -> Markup:
    """The colour scale, which needs as little room as its numbers."""
    return Markup(
        '<p class="scale"><span>{}</span><i class="range"></i><span>{}</span>'
        '<i class="noise"></i><span>{}</span></p>'
    ).format(low, high, grey)


def clustered(strength: Array) -> list[int]:
    """The columns in the order of a hierarchical clustering.

    Clusters are merged by their average strength (WPGMA). Strengths are rounded to dyadic
    fractions, whose averages are exact, so that the order is the same on every machine.

    Parameters
    ----------
    strength
        Symmetric and nonnegative, such as absolute correlations with zeros for entries within the
        noise; shape (p, p).

    Returns
    -------
    list
        A permutation of range(p): the identity for few columns, and if no strength is positive.
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


def shortened(name: str) -> str:
    """A name that fits next to a figure; the middle is left out, as names often share a start.

    Examples
    --------
    >>> shortened("age"), shortened("systolic blood pressure at visit 2")
    ('age', 'systolic blo… at visit 2')
    """
    if len(name) <= _LONGEST:
        return name
    half = _LONGEST // 2
    return f"{name[:half]}…{name[1 - _LONGEST + half :]}"
