"""Published histograms of columns, continued where the noise hides their tails.

Most bins far out are empty, and their noise is not. So a histogram ends where two bins in a row are
within the noise, and beyond that end its tail is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.accuracy.row_laws import Marginal
from gramercy.schemas.evidence import Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]

_NOISE_OF_COUNT = 2.0  # standard deviations that the count of a bin must exceed
_BODY = 2.0  # scales from the centre within which columns of few values have gaps
_POWERS, _BISECTIONS = (0.1, 40.0), 40


def published_marginals(
    histograms: Sequence[Histogram], facts: Sequence[ColumnFacts | LevelsFacts | None]
) -> tuple[Marginal | None, ...]:
    """The histograms of these columns in scaled units; None without one, and for levels."""
    published = {each.column: each for each in histograms}
    return tuple(
        _marginal(published[each.name], each)
        if isinstance(each, ColumnFacts) and each.name in published
        else None
        for each in facts
    )


def _marginal(published: Histogram, column: ColumnFacts) -> Marginal | None:
    inside = np.isfinite(published.lower) & np.isfinite(published.upper)
    edges = np.append(published.lower[inside], published.upper[inside][-1:])
    scaled = (edges - column.centre) / column.scale
    hidden = _NOISE_OF_COUNT * published.sd
    weights = seen(scaled, published.count[inside].astype(np.float64), hidden)
    if not weights.any():
        return None
    return Marginal(scaled, weights, with_tails(scaled, weights, hidden) - weights)


def seen(edges: Array, counts: Array, hidden: float, body: float = _BODY) -> Array:
    """The counts from the largest one outwards, up to a gap; zero in bins that may be empty.

    Parameters
    ----------
    edges, counts
        A histogram, shapes (k + 1,) and (k,).
    hidden
        Largest count of a bin that the noise may hide.
    body
        Gaps closer to zero than this do not count.
    """
    weights = np.where(counts > hidden, counts, 0.0)
    near = np.minimum(np.abs(edges[:-1]), np.abs(edges[1:])) < body
    empty = (weights == 0) & ~near
    gaps, mode = np.flatnonzero(empty[:-1] & empty[1:]), int(np.argmax(counts))
    above, below = gaps[gaps > mode], gaps[gaps + 1 < mode]
    if above.size:
        weights[above[0] :] = 0.0
    if below.size:
        weights[: below[-1] + 2] = 0.0
    return weights


def with_tails(edges: Array, weights: Array, hidden: float) -> Array:
    """Continue a histogram beyond its last bin that is not empty, on both sides of zero.

    Counts far out are lost in the noise, but much of the variance of a heavy-tailed column is
    there. The mass beyond a distance falls as a power of the distance; the power follows from the
    last bin and the bins from half its distance. Gaussian tails stay nearly empty.

    Parameters
    ----------
    edges, weights
        See `Marginal`; zero is the centre of the column.
    hidden
        Largest weight of a bin that the noise may hide.
    """
    above = _with_upper_tail(edges, weights, hidden)
    below = _with_upper_tail(-edges[::-1], weights[::-1], hidden)[::-1]
    continued: Array = np.maximum(above, below)
    return continued


def _with_upper_tail(edges: Array, weights: Array, hidden: float) -> Array:
    last = int(np.flatnonzero(weights)[-1])
    first = min(int(np.searchsorted(edges, edges[last] / 2)), last - 1)
    if last + 1 == len(weights) or first < 0 or edges[first] <= 0:
        return weights
    start = edges[last]
    power = _tail_power(
        float(weights[first:last].sum() / weights[last]),
        float(start / edges[first]),
        float(start / edges[last + 1]),
    )
    reached = (edges[last:] / start) ** -power
    mass = weights[last] / (1 - reached[1])  # beyond the start of that bin
    continued = weights.copy()
    continued[last + 1 :] = np.minimum(mass * -np.diff(reached[1:]), hidden)
    return continued


def _tail_power(ratio: float, inside: float, outside: float) -> float:
    """The a with (inside^a - 1) / (1 - outside^a) = ratio; inside > 1 > outside. By bisection."""
    low, high = _POWERS
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_low = inside**middle - 1 < ratio * (1 - outside**middle)
        low, high = (middle, high) if too_low else (low, middle)
    return high
