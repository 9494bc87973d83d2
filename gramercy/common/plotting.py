"""The drawing engine: axes and figures of matplotlib, and pictures for notebooks.

Figures of pages are inline SVG in the colours of the page, also in dark mode. Matplotlib and
markupsafe are optional packages, so they are imported when something is drawn.
"""

from __future__ import annotations

import io
import itertools
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from gramercy.common.extras import INSTALL_PLOT, is_installed
from gramercy.schemas import families

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

# Placeholders that the page's CSS colours replace in the finished SVG.
INK, FAINT, ACCENT, WARM, PAPER = ("#010101", "#020202", "#030303", "#040404", "#050505")
_COLOURS = {INK: "ink", FAINT: "faint", ACCENT: "accent", WARM: "warm", PAPER: "paper"}
_LOCK = threading.RLock()  # matplotlib's settings are global to the process
_TAG = re.compile(r"<[^<>]*>")
_STYLE = re.compile(r'(style|fill|stroke)="[^"]*"')
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r"(?:url\(|href=\")#([^)\"]*)")
_FONT = re.compile(r"font: (?:[a-z0-9]+ )*?([0-9.]+)px [^;\"]*")
_NUMBERS = itertools.count(1)  # of the pictures in a notebook, whose ids differ

Array = NDArray[np.float64]
Method = TypeVar("Method", bound=Callable[..., "Axes"])

_SHARED = """

Parameters
----------
ax
    Axes to draw on; None for a new figure.

Raises
------
MissingPackages
    If matplotlib is not installed."""


def draws(method: Method) -> Method:
    """Complete the docstring of a method ``plot(self, ax=None)``, which says what it draws."""
    method.__doc__ = cleandoc(method.__doc__ or "") + _SHARED
    return method


def axes(ax: Axes | None = None, width: float = 6.0, height: float = 4.0) -> Axes:
    """The axes that are given, or those of a new figure, whose size is in inches."""
    return stacked_axes(1, width, height)[0] if ax is None else ax


def stacked_axes(count: int, width: float, height: float) -> list[Axes]:
    """Axes one below the other in a new figure, each with a scale of its own.

    Raises
    ------
    MissingPackages
        If matplotlib is not installed.
    """
    _require("matplotlib")
    import matplotlib.pyplot as plt

    size = (width, height)
    grid = plt.subplots(count, 1, figsize=size, layout="constrained", squeeze=False)[1]
    return list(grid[:, 0])


class Picture:
    """A matrix or a graph as in reports: names and values are shown on hover; for notebooks.

    Attributes
    ----------
    html
        It loads nothing, has no script, and its style affects nothing else on a page.
    """

    def __init__(self, kind: str, drawing: str) -> None:
        sheet = (files("gramercy") / "reports/templates/style.css").read_text(encoding="utf-8")
        style = f".gramercy {{ background: var(--paper); color: var(--ink); {sheet} }}"
        self.html = (
            f"<style>{style.replace(':root', '&')}</style>"
            f'<div class="gramercy"><figure class="{kind}">{drawing}</figure></div>'
        )

    @classmethod
    def of_matrix(
        cls,
        values: NDArray[np.float64],
        names: Sequence[str],
        uncertain: NDArray[np.bool_] | None = None,
    ) -> Picture:
        """The heat map of a symmetric matrix, shape (p, p); NaN where unknown.

        Entries that are `uncertain` are hatched.
        """
        _require("PIL", "markupsafe")
        from gramercy.common.pictures import matrix_map

        return cls("heat", matrix_map(f"matrix-{next(_NUMBERS)}", values, names, uncertain))

    @classmethod
    def of_graph(cls, weights: NDArray[np.float64], names: Sequence[str]) -> Picture:
        """The graph of a symmetric matrix of weights, shape (p, p); zero for a missing edge."""
        _require("markupsafe")
        from gramercy.common.pictures import graph

        return cls("graph", graph(f"{next(_NUMBERS)}", weights, names))

    def save(self, path: str | Path) -> None:
        """Write it as a page of its own."""
        Path(path).write_text(f'<!doctype html><meta charset="utf-8">{self.html}', encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.html


def _require(*packages: str) -> None:
    if not all(map(is_installed, packages)):
        raise families.MISSING_PACKAGES(
            "Plots need matplotlib:", "{command}.", command=INSTALL_PLOT
        )


def forest(
    numbers: Array,
    labels: Sequence[str],
    ax: Axes | None = None,
    marked: Sequence[bool] | None = None,
) -> Axes:
    """Draw numbers and their intervals, one below the other; unknown ones have no mark.

    Parameters
    ----------
    numbers
        Estimates, lower and upper bounds, shape (3, k); NaN or infinite where unknown.
    labels
        One label for each number; unknown ones get the addition "(unknown)".
    ax
        Axes to draw on; None for a new figure.
    marked
        Which numbers have caveats: their marks are hollow, and their intervals dashed.
    """
    count = numbers.shape[1]
    ax = axes(ax, 6.0, max(1.2, min(16.0, 0.3 * count + 0.8)))
    known = np.asarray(np.isfinite(numbers).all(axis=0))
    estimate, lower, upper = numbers[:, known]
    places = np.arange(count)
    hollow = np.zeros(count, dtype=bool) if marked is None else np.asarray(marked, dtype=bool)
    styles: tuple[tuple[NDArray[np.bool_], Literal["solid", "dashed"], str], ...] = (
        (~hollow, "solid", "tab:blue"),
        (hollow, "dashed", "white"),
    )
    for chosen, line, fill in styles:
        own = chosen[known]
        if own.any():
            at = places[known][own]
            ax.hlines(at, lower[own], upper[own], color="tab:blue", lw=2, linestyles=line)
            ax.plot(estimate[own], at, "o", color="tab:blue", mfc=fill, ms=5)
    names = [
        str(name) if sure else f"{name} (unknown)" for name, sure in zip(labels, known, strict=True)
    ]
    ax.set_yticks(places, names)
    ax.set_ylim(count - 0.5, -0.5)
    if known.any() and lower.min() < 0 < upper.max():
        ax.axvline(0.0, color="0.6", lw=1, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


class Figure:
    """Axes to draw on, and the SVG once the `with` block of `figure` has ended."""

    svg: Markup

    def __init__(self, axes: Axes) -> None:
        self.axes = axes


@contextmanager
def figure(name: str, title: str, width: float, height: float) -> Iterator[Figure]:
    """Draw a figure of a size in inches, described for screen readers by its title.

    Equal numbers give equal SVG. The name distinguishes its ids from those of other figures.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "text.parse_math": False,  # a column may be called $x$
        "font.family": ["DejaVu Sans"],
        "font.size": 9,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": FAINT,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "xtick.color": FAINT,
        "ytick.color": FAINT,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
    }
    with _LOCK, matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()  # so that the user's settings have no effect
        matplotlib.rcParams.update(settings)
        # Only measures text: the reader's browser has the glyphs to draw it.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        canvas = Canvas(figsize=(width, height), dpi=144, layout="constrained")
        drawing = Figure(canvas.add_subplot())
        yield drawing
        text = io.StringIO()
        # `savefig` would draw twice, first to arrange the figure, which drawing does as well.
        backend: Any = FigureCanvasSVG(canvas)
        backend.print_svg(text, metadata={"Date": None, "Creator": None})
    drawing.svg = _inline(text.getvalue(), title, width)


def _inline(svg: str, title: str, width: float) -> Markup:
    from markupsafe import Markup

    body = svg[svg.index("<svg") :]
    body = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<!DOCTYPE.*?>", "", body, flags=re.DOTALL)
    # Only hashes of the figure's name and content remain: 'figure_1' is in every figure.
    needed = set(_REFERENCE.findall(body))
    body = _TAG.sub(
        lambda tag: _ID.sub(lambda match: match[0] * (match[1] in needed), tag[0]), body
    )

    def coloured(style: re.Match[str]) -> str:
        text = style[0]
        for placeholder, name in _COLOURS.items():
            text = text.replace(placeholder, f"var(--{name})")
        return _FONT.sub(r"font-size: \1px", text)

    body = _TAG.sub(lambda tag: _STYLE.sub(coloured, tag[0]), body)
    opening, rest = body.split(">", 1)
    opening = re.sub(r' (width|height|version|xmlns)="[^"]*"', "", opening)
    label = Markup.escape(title)
    style = f"max-width: {width * 7:.4g}rem"
    drawing = f'{opening} role="img" aria-label="{label}" style="{style}">{rest}'
    return Markup(drawing)  # noqa: S704  matplotlib escapes texts
