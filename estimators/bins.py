"""What the bins of a noisy histogram tell about the cells in them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EXPLAINED = 2.0  # standard deviations of noise that explain a difference
UNIT = 1.0  # of whole numbers
_NARROW = 1e-3  # share of the width of a neighbour
_CERTAINLY = 4.0  # standard deviations that the sum of empty bins hardly ever exceeds
_FEW, _CLEARLY = 0.01, 4.0  # share of cells that need not be whole; times what noise explains


def are_whole(counts: Array, edges: Array, sd: float) -> bool:
    """Whether the cells of a column are whole numbers, as far as its bins can tell.

    In bins of at most half a unit, smooth densities would have far more cells between whole numbers
    than noise explains, and all other bins have no more than that.
    """
    widths = np.diff(edges)
    fine = widths <= UNIT / 2
    between = fine & ~contain_whole_numbers(edges)
    explained = [
        EXPLAINED * sd * math.sqrt(chosen.sum()) + _FEW * counts.sum()
        for chosen in (between, ~fine)
    ]
    if counts[between].sum() > explained[0] or counts[~fine].sum() > explained[1]:
        return False
    smooth = counts[fine].sum() * widths[between].sum() / max(widths[fine].sum(), 1e-300)
    return bool(smooth > _CLEARLY * explained[0])


def occupied(counts: Array, sd: float) -> slice:
    """The bins between the outermost ones whose counts noise does not give.

    On each side, this is the end of the outermost run of bins whose sum is clearly above zero; all
    bins if there is no such run. Farther out, most bins are empty, and the sum of their noise
    exceeds what is left of a column's tail.
    """
    last = _outermost(counts[::-1], sd)
    first = _outermost(counts, sd)
    if first is None or last is None or first > counts.size - 1 - last:
        return slice(0, counts.size)
    return slice(first, counts.size - last)


def _outermost(counts: Array, sd: float) -> int | None:
    """Index of the outer end of the first significant run, which extends towards the beginning."""
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    for inner in range(1, counts.size + 1):
        lengths = np.arange(1, inner + 1)
        significant = sums[inner] - sums[inner - lengths] > _CERTAINLY * sd * np.sqrt(lengths)
        if significant.any():
            return inner - 1 - int(np.argmax(significant))
    return None


def contain_whole_numbers(edges: Array) -> NDArray[np.bool_]:
    """Which bins contain a whole number; the last one includes its upper edge."""
    found = np.ceil(edges[:-1]) < edges[1:]
    found[-1] |= edges[-1] == np.rint(edges[-1])
    return found


def narrow(widths: Array) -> NDArray[np.bool_]:
    """Which bins are far narrower than a neighbour: they are for cells that coincide."""
    return widths <= _NARROW * np.maximum(*neighbours(widths))


def neighbours(values: Array) -> tuple[Array, Array]:
    """The values of the bins before and after each bin; those at the ends are repeated."""
    return np.append(values[:1], values[:-1]), np.append(values[1:], values[-1:])
