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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from gramercy.common.extras import INSTALL_PLOT, is_installed
from gramercy.common.notation import shortened, significant
from gramercy.schemas import families

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

# Placeholders that the page's CSS colours replace in the finished SVG.
INK, FAINT, ACCENT, WARM, PAPER = ("#010101", "#020202", "#030303", "#040404", "#050505")
_COLOURS = {INK: "ink", FAINT: "faint", ACCENT: "accent", WARM: "warm", PAPER: "paper"}
_LONGEST = 40  # characters of a name next to a plot
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
    """The axes that are given, or those of a new figure, whose size is in inches.

    Raises
    ------
    MissingPackages
        If matplotlib is not installed.
    RequestError
        If `ax` is a text, as the name of a column would be.
    """
    if isinstance(ax, str):
        raise families.ANALYSIS(
            "This plot has all columns, and '{value}' is not axes of matplotlib.",
            "Write plot(ax=ax) to draw on axes of yours. .marginals.plot(COLUMN) has one column.",
            value=ax,
        )
    if ax is not None:
        return ax
    _require("matplotlib")
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def with_words(ax: Axes, title: str = "", x: str = "", y: str = "") -> Axes:
    """The axes with a title and names of their axes, in the style of all plots.

    Texts are plain: a column may be called $x$.
    """
    ax.set_title(title, fontsize="medium", parse_math=False)
    ax.set_xlabel(x, fontsize="small", parse_math=False)
    ax.set_ylabel(y, fontsize="small", parse_math=False)
    ax.tick_params(labelsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


_OF_LEGENDS: Any = {"frameon": False, "fontsize": "small", "borderaxespad": 0.2}


def _legend(ax: Axes, below: float) -> None:
    """A legend some points `below` the axes: no mark is covered."""
    from matplotlib.transforms import offset_copy

    moved = offset_copy(ax.transAxes, ax.get_figure(root=True), y=-below, units="points")
    ax.legend(loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=moved, ncols=3, **_OF_LEGENDS)


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

    @classmethod
    def of_graphs(cls, tables: Mapping[str, NDArray[np.float64]], names: Sequence[str]) -> Picture:
        """The graphs of several tables, shape (p, p), with every column at one place in all."""
        _require("markupsafe")
        from gramercy.common.pictures import small_graphs

        return cls("graph multiples", small_graphs(f"{next(_NUMBERS)}", tables, names))

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
    marked: Sequence[bool] | NDArray[np.bool_] | None = None,
    texts: Sequence[str] = (),
    series: Sequence[str] = ("",),
    hollow_means: str = "with a caveat",
) -> Axes:
    """Draw numbers and their intervals, one below the other; unknown ones have no mark.

    Colours are those of matplotlib's settings, which `figure` sets to the colours of a page.

    Parameters
    ----------
    numbers
        Estimates, lower and upper bounds, shape (3, k), or (3, k, s) for s numbers on each line;
        NaN or infinite where unknown.
    labels
        One label for each line; those without a known number get the addition "(unknown)".
    ax
        Axes to draw on; None for a new figure.
    marked
        Numbers with hollow marks and dashed intervals, shape (k,) or (k, s).
    texts
        What is written at the right of each line.
    series
        Names of the s numbers of a line, each with a colour.
    hollow_means
        What hollow marks mean, in the legend.
    """
    values = numbers.reshape(3, len(labels), len(series))
    count, several = values.shape[1:]
    height = min(40.0, (0.14 + 0.12 * several) * count + 1.2)
    wide = max((len(shortened(str(each), _LONGEST)) for each in (*labels, *texts)), default=0)
    ax = axes(ax, 5.0 + 0.07 * wide * (1 + bool(texts)), height)
    hollow = np.zeros((count, several), dtype=bool)
    hollow |= False if marked is None else np.reshape(marked, (count, -1))
    known: NDArray[np.bool_] = np.asarray(np.isfinite(values).all(axis=0))
    for k, name in enumerate(series):
        places = np.arange(count) + 0.7 * ((k + 0.5) / several - 0.5)
        styles: tuple[tuple[NDArray[np.bool_], Literal["solid", "dashed"]], ...]
        styles = ((~hollow[:, k], "solid"), (hollow[:, k], "dashed"))
        for chosen, line in styles:
            own = chosen & known[:, k]
            estimate, lower, upper = values[:, own, k]
            ax.hlines(places[own], lower, upper, color=f"C{k}", lw=1.6, linestyles=line)
            fill = f"C{k}" if line == "solid" else ax.get_facecolor()
            ax.plot(estimate, places[own], "o", color=f"C{k}", mfc=fill, ms=4)
        if name and known[:, k].any():
            ax.plot([], [], "o", color=f"C{k}", ms=4, label=name)
    if (hollow & known).any():
        ax.plot([], [], "o", color="0.5", mfc="none", ms=4, label=hollow_means)
    if ax.get_legend_handles_labels()[0]:
        _legend(ax, below=44)
    names = [
        shortened(str(name), _LONGEST) if sure else f"{shortened(str(name), _LONGEST)} (unknown)"
        for name, sure in zip(labels, np.asarray(known.any(axis=1)), strict=True)
    ]
    ax.set_yticks(np.arange(count), names, parse_math=False)
    ax.set_ylim(count - 0.4, -0.6)
    for place, text in enumerate(texts):
        ax.annotate(
            text, (1.02, place), xycoords=("axes fraction", "data"), va="center", fontsize="small",
            annotation_clip=False, parse_math=False,
        )  # fmt: skip
    if known.any() and values[1][known].min() < 0 < values[2][known].max():
        ax.axvline(0.0, color=_faint(), lw=1, zorder=0)
    ax.grid(axis="x", alpha=0.3, lw=0.6)
    ax.set_axisbelow(True)
    return with_words(ax)


def over_time(
    labels: Sequence[str], numbers: Array, ax: Axes, together: Sequence[float] = ()
) -> None:
    """Draw a number of each period with its interval, and that of all periods `together`.

    Parameters
    ----------
    labels, numbers
        One label for each period; estimates, lower and upper bounds, shape (3, k), NaN where
        unknown.
    ax
        Axes to draw on.
    together
        Estimate, lower and upper bound; empty if unknown.
    """
    most_ticks = 6
    places, known = np.arange(len(labels)), np.isfinite(numbers).all(axis=0)
    estimate, lower, upper = numbers[:, known]
    if len(together) and np.isfinite(together).all():
        middle, low, high = together
        ax.axhspan(low, high, color="C1", alpha=0.2, lw=0)
        ax.axhline(middle, color="C1", lw=1)
    ax.vlines(places[known], lower, upper, color="C0", lw=1.5)
    ax.plot(places[known], estimate, "o", color="C0", ms=4)
    step = -(-len(labels) // most_ticks)
    ax.set_xticks(places[::-step][::-1], list(labels[::-step])[::-1], rotation=30, ha="right")
    ax.set_xlim(-0.5, len(labels) - 0.5)
    ax.grid(axis="y", alpha=0.3, lw=0.6)
    ax.set_axisbelow(True)


def scree(eigenvalues: Array, corrected: Array, edge: float, ax: Axes) -> None:
    """Draw eigenvalues as released and corrected for noise, over the band of noise alone."""
    order = np.arange(1, len(eigenvalues) + 1)
    ax.axhspan(-edge, edge, color=_faint(), alpha=0.25, lw=0, label="noise alone, 95 %")
    ax.plot(order, eigenvalues, "o-", color="C0", ms=4, label="as released")
    ax.plot(order, corrected, "x", color="C1", label="corrected for noise")
    ax.set_ylim(bottom=min(-edge, float(np.nanmin(eigenvalues, initial=0.0))) * 1.1)
    ax.set_xticks(order[:: 1 + len(order) // 12])
    ax.legend(frameon=False, fontsize="small")
    with_words(ax, x="component", y="eigenvalue")


def matrix(
    values: Array, names: Sequence[str], uncertain: NDArray[np.bool_], ax: Axes | None
) -> Axes:
    """Draw a heat map of a symmetric matrix, shape (p, p), with its values if they fit.

    Unknown entries, which are NaN, are grey, and `uncertain` ones hatched.
    """
    most_values, most_names, p = 12, 80, len(names)
    cell = 0.5 if p <= most_values else 0.19
    longest = max(len(shortened(each, _LONGEST)) for each in names)
    size = min(16.0, 1.2 + cell * p + 0.075 * longest)
    ax = axes(ax, size + 1.0, size)
    known = ~np.isnan(values)
    limit = float(np.abs(values[known]).max(initial=0.0)) or 1.0
    image = ax.imshow(values, cmap="RdBu", vmin=-limit, vmax=limit, interpolation="nearest")
    ax.set_facecolor("0.8")
    hatched: Any = {"fill": False, "hatch": "/////", "edgecolor": "0.35", "lw": 0}
    for i, j in np.argwhere(uncertain & known):
        ax.add_patch(_rectangle(j, i, **hatched))
    for i, j in np.argwhere(known) if p <= most_values else ():
        colour = "white" if abs(values[i, j]) > 0.6 * limit else "black"
        box = {"boxstyle": "square,pad=0.1", "fc": image.cmap(image.norm(values[i, j])), "lw": 0}
        at: Any = {"ha": "center", "va": "center", "fontsize": "small", "color": colour}
        text = significant(values[i, j], 2) if limit > 1 else f"{values[i, j]:.2f}"
        ax.text(j, i, text.replace("-0.00", "0.00"), bbox=box, **at)
    keys = ((~known, {"color": "0.8"}, "unknown"), (uncertain & known, hatched, "uncertain"))
    handles = [
        _rectangle(0, 0, label=label, **style) for where, style, label in keys if where.any()
    ]
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.7).ax
    bar.tick_params(labelsize="small")
    if handles:
        bar.legend(loc="lower left", bbox_to_anchor=(0, 1), handles=handles, **_OF_LEGENDS)
    shown = range(0, p, -(-p // most_names))
    listed = [shortened(names[k], _LONGEST) for k in shown]
    ax.set_xticks(shown, listed, rotation=90, parse_math=False)
    ax.set_yticks(shown, listed, parse_math=False)
    ax.spines[:].set_visible(False)
    return ax


def _faint() -> str:
    """The colour of lines of reference."""
    import matplotlib

    return str(matplotlib.rcParams["grid.color"])


def _rectangle(x: float, y: float, **style: Any) -> Rectangle:
    """The cell of a heat map."""
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.5, y - 0.5), 1, 1, **style)


def loading_map(loadings: pd.DataFrame, ax: Axes | None, title: str) -> Axes:
    """Draw loadings from -1 to 1 as a heat map with their values; unknown ones are hatched.

    `loadings`: columns of the table by components or factors; NaN where unknown.
    """
    most_values, white, (rows, columns) = 40, 0.6, loadings.shape
    names = [shortened(str(name), _LONGEST) for name in loadings.index]
    wide = max(map(len, names), default=0)
    height = max(2.0, min(40.0, 1.2 + 0.28 * rows))
    ax = axes(ax, 2.2 + 0.075 * wide + 0.7 * columns, height)
    values = loadings.to_numpy(dtype=np.float64)
    ax.set_facecolor("0.8")
    ax.patch.set(hatch="////", edgecolor="0.5")
    if values.size:
        image = ax.imshow(values, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
        words = "loading (hatched: unknown)" if np.isnan(values).any() else "loading"
        ax.figure.colorbar(image, ax=ax, label=words)
    for i, j in np.argwhere(np.isfinite(values)) if rows <= most_values else ():
        colour = "white" if abs(values[i, j]) > white else "black"
        text = f"{values[i, j]:.2f}".replace("-0.00", "0.00")
        ax.text(j, i, text, ha="center", va="center", color=colour, fontsize="small")
    ax.set_xticks(range(columns), [str(name) for name in loadings.columns])
    ax.set_yticks(range(rows), names, parse_math=False)
    return with_words(ax, title)


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
    from cycler import cycler
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
        "axes.prop_cycle": cycler(color=[ACCENT, WARM]),
        "grid.color": FAINT,
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
