"""Axes to draw on: matplotlib is optional, and imported when the first plot is drawn."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import TYPE_CHECKING, TypeVar

from gramercy.common.extras import INSTALL_PLOT, is_installed
from gramercy.schemas.problems.analyses import plotting_packages

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    if not is_installed("matplotlib"):
        raise plotting_packages(INSTALL_PLOT)
    import matplotlib.pyplot as plt

    size = (width, height)
    grid = plt.subplots(count, 1, figsize=size, layout="constrained", squeeze=False)[1]
    return list(grid[:, 0])
