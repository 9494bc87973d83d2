"""Figures as SVG inside the page, in the page's own colours, so that they turn dark with it."""

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

# Stand-ins that are replaced by the page's colours when a figure is done.
INK, FAINT, ACCENT, WARM, PAPER = ("#010101", "#020202", "#030303", "#040404", "#050505")
_COLOURS = {INK: "ink", FAINT: "faint", ACCENT: "accent", WARM: "warm", PAPER: "paper"}
_ONE_AT_A_TIME = threading.RLock()  # matplotlib's settings are the process's own
_TAG = re.compile(r"<[^<>]*>")
_STYLE = re.compile(r'(style|fill|stroke)="[^"]*"')
_FONT = re.compile(r"font: (?:[a-z0-9]+ )*?([0-9.]+)px [^;\"]*")


class Figure:
    """A figure that is drawn once.

    Attributes
    ----------
    axes
        Where to draw.
    svg
        The picture, once the `with` block has ended.
    """

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.svg = Markup()


@contextmanager
def figure(name: str, title: str, width: float, height: float) -> Iterator[Figure]:
    """Draw a figure; the same numbers give the same text.

    Parameters
    ----------
    name
        Keeps its ids apart from those of other figures on the page.
    title
        What it shows, for those who cannot see it.
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
    with _ONE_AT_A_TIME, matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()  # whatever the user's own settings are
        matplotlib.rcParams.update(settings)
        # The page's reader has fonts of their own; here text is only measured.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        canvas = Canvas(figsize=(width, height), dpi=144, layout="constrained")
        FigureCanvasSVG(canvas)
        drawn = Figure(canvas.add_subplot())
        yield drawn
        text = io.StringIO()
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    drawn.svg = _for_the_page(text.getvalue(), title, width)


def _for_the_page(svg: str, title: str, width: float) -> Markup:
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<!DOCTYPE.*?>", "", body, flags=re.DOTALL)
    body = _TAG.sub(lambda tag: _STYLE.sub(lambda style: _coloured(style[0]), tag[0]), body)
    opening, rest = body.split(">", 1)
    opening = re.sub(r' (width|height|version|xmlns)="[^"]*"', "", opening)
    label = Markup.escape(title)
    most = f"max-width: {width * 7:.4g}rem"
    return Markup(f'{opening} role="img" aria-label="{label}" style="{most}">{rest}')


def _coloured(style: str) -> str:
    for stand_in, name in _COLOURS.items():
        style = style.replace(stand_in, f"var(--{name})")
    return _FONT.sub(r"font-size: \1px", style)
