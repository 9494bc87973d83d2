"""Pictures of matrices and graphs, and axes to draw on, by optional packages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from importlib.resources import files
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from gramercy.common.extras import INSTALL_PLOT, is_installed
from gramercy.schemas import families

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NUMBERS = itertools.count(1)  # of the pictures in a notebook, whose ids differ

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
    """The axes to draw on: those that are given, or new ones.

    Parameters
    ----------
    ax
        Axes of the caller; None for a new figure.
    width, height
        Size of a new figure, in inches.

    Raises
    ------
    MissingPackages
        If matplotlib is not installed.
    """
    return stacked_axes(1, width, height)[0] if ax is None else ax


def stacked_axes(count: int, width: float, height: float) -> list[Axes]:
    """Axes one below the other in a new figure, each with a scale of its own; see `axes`."""
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
    def of_matrix(cls, values: NDArray[np.float64], names: Sequence[str]) -> Picture:
        """The heat map of a symmetric matrix, shape (p, p); NaN where unknown."""
        _require("PIL", "markupsafe")
        from gramercy.common.heat_maps import matrix_map

        return cls("heat", matrix_map(f"matrix-{next(_NUMBERS)}", values, names))

    @classmethod
    def of_graph(cls, weights: NDArray[np.float64], names: Sequence[str]) -> Picture:
        """The graph of a symmetric matrix of weights, shape (p, p); zero for a missing edge."""
        _require("markupsafe")
        from gramercy.common.graph_figure import graph

        return cls("graph", graph(f"{next(_NUMBERS)}", weights, names))

    def save(self, path: str | Path) -> None:
        """Write it as a page of its own."""
        Path(path).write_text(f'<!doctype html><meta charset="utf-8">{self.html}', encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.html


def _require(*packages: str) -> None:
    if not all(map(is_installed, packages)):
        raise families.MISSING_PACKAGES(
            "Plots need matplotlib:",
            "{command}.",
            command=INSTALL_PLOT,
        )
