"""Bins of a column's histogram: fixed by public facts, and by constants already published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.constants import Constants

Array = NDArray[np.float64]

UNBOUNDED = 2.0**40  # cells of columns without bounds are clamped to +-2^40
AROUND_ZERO = 1e-9
_EQUAL_BINS, _OCTAVES = 64, 20
_SMALLEST_OCTAVE, _LARGEST_OCTAVE = -30, 40
_REACH, _LARGEST_REACH = 4.0, 2.0**1020


@dataclass(frozen=True)
class Grid:
    """A partition of the cells of a numeric column into bins.

    Parameters
    ----------
    edges
        Increasing and finite, shape (bins,). Bin k is [edges[k], edges[k + 1]); smaller cells are
        in the first of these bins, larger ones, and those equal to the last edge, in the last of
        them. The last bin of all, with index len(edges) - 1, counts missing cells.
    """

    edges: Array

    @property
    def size(self) -> int:
        """Number of bins, including the bin of missing cells."""
        return len(self.edges)


@dataclass(frozen=True)
class LevelGrid:
    """One bin for each level of a column, and one for cells that are not a level."""

    levels: int

    @property
    def size(self) -> int:
        """Number of bins, including the bin of other cells."""
        return self.levels + 1


def first_grid(lower: float | None, upper: float | None) -> Grid:
    """Return the bins of the first stage, which depend on the bounds only.

    Parameters
    ----------
    lower, upper
        Declared bounds, or None.

    Returns
    -------
    Grid
        With bounds: 64 equal bins, and where zero is within, half octaves on both sides of it and
        a narrow bin around it, because many columns have most of their cells at or near zero.
        Without bounds: octaves from 2^-30 to 2^40 on both sides of zero.
    """
    if lower is None or upper is None:
        octaves = np.ldexp(1.0, np.arange(_SMALLEST_OCTAVE, _LARGEST_OCTAVE + 1))
        return Grid(np.concatenate([-octaves[::-1], octaves]))
    shares = np.arange(_EQUAL_BINS + 1) / _EQUAL_BINS
    edges = [lower * (1 - shares) + upper * shares, np.array([lower, upper])]
    if lower <= 0 <= upper:
        powers = np.ldexp(1.0, -np.arange(_OCTAVES))
        powers = np.concatenate([powers, powers * np.sqrt(0.5)])
        narrow = (upper / 2 - lower / 2) * (2 * AROUND_ZERO)
        edges += [upper * powers, lower * powers, np.array([-narrow, narrow])]
    return _merged(edges, lower, upper)


def zoomed_grid(constants: Constants, lower: float | None, upper: float | None) -> Grid:
    """Return the bins of the next stage, around published constants.

    Parameters
    ----------
    constants
        Centre and scale from the histogram of the stage before.
    lower, upper
        Declared bounds, or None.

    Returns
    -------
    Grid
        `Constants.bins` equal bins within four scales of the centre, octaves outside up to the
        bounds, and a narrow bin around zero, where values often coincide.
    """
    least = -UNBOUNDED if lower is None else lower
    largest = UNBOUNDED if upper is None else upper
    centre, half = constants.centre, constants.bins // 2
    reach = min(_REACH * constants.scale, _LARGEST_REACH)
    edges = [centre + reach * (np.arange(-half, half + 1) / half), np.array([least, largest])]
    octave = reach
    while centre - octave > least or centre + octave < largest:
        octave *= 2
        edges.append(np.array([centre - octave, centre + octave]))
    if max(centre - reach, least) <= 0 <= min(centre + reach, largest):
        narrow = AROUND_ZERO * constants.scale
        edges.append(np.array([-narrow, narrow]))
    return _merged(edges, least, largest)


def _merged(parts: list[Array], lower: float, upper: float) -> Grid:
    """One partition of [lower, upper] with all of these edges."""
    return Grid(np.unique(np.clip(np.concatenate(parts), lower, upper)))
