"""Figures as inline SVG in the colours of the page, also in dark mode."""

from __future__ import annotations

import io
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
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


class Figure:
    """A figure.

    Attributes
    ----------
    axes
        Axes to draw on.
    svg
        The SVG, once the `with` block has ended.
    """

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.svg = Markup()


@contextmanager
def figure(name: str, title: str, width: float, height: float) -> Iterator[Figure]:
    """Draw a figure; equal numbers give equal SVG.

    Parameters
    ----------
    name
        Distinguishes its ids from those of other figures on the page.
    title
        Description for screen readers.
    width, height
        In inches.
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
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<!DOCTYPE.*?>", "", body, flags=re.DOTALL)
    # Only hashes of the figure's name and content remain: 'figure_1' is in every figure.
    needed = set(_REFERENCE.findall(body))
    body = _TAG.sub(
        lambda tag: _ID.sub(lambda match: match[0] * (match[1] in needed), tag[0]), body
    )
    body = _TAG.sub(lambda tag: _STYLE.sub(lambda style: _coloured(style[0]), tag[0]), body)
    opening, rest = body.split(">", 1)
    opening = re.sub(r' (width|height|version|xmlns)="[^"]*"', "", opening)
    label = Markup.escape(title)
    style = f"max-width: {width * 7:.4g}rem"
    drawing = f'{opening} role="img" aria-label="{label}" style="{style}">{rest}'
    return Markup(drawing)  # noqa: S704  matplotlib escapes texts


def _coloured(style: str) -> str:
    for placeholder, name in _COLOURS.items():
        style = style.replace(placeholder, f"var(--{name})")
    return _FONT.sub(r"font-size: \1px", style)
