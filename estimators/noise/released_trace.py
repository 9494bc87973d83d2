"""The trace of a second moment, estimated from the released one and public bounds."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_DOUBT, _DISBELIEF = 2.0, 4.0  # standard deviations below the public bound
_SMALLEST_SHARE = 1 / 16  # of the bound: the trace of rows clipped at four times their length
_NODES, _REACH = 100, 20.0


def estimate_trace(released: float, sd: float, bound: float, unit: bool) -> float:
    """Estimate the trace without noise.

    Parameters
    ----------
    released
        Released trace minus the mean of the noise.
    sd
        Standard deviation of the noise on it.
    bound
        Public upper bound; may be infinite.
    unit
        Whether rows were divided by their own length. Then the trace is the bound, except for rows
        without a length: zero rows, and lines that could not be read.

    Returns
    -------
    float
        From 0 to `bound`, and positive unless `released` is not and `sd` is 0.

    Notes
    -----
    In general the posterior mean, for a prior density proportional to 1 / (t + b / 16) on [0, b], b
    the bound: clipped rows may be about as long as the radius, or several times shorter. Without a
    bound, `sd` takes the place of b / 16. The mean is close to the released trace where that is
    several standard deviations from both ends.

    For unit rows it is the bound, unless the released trace is more than two standard deviations
    below; from four on, it is the posterior mean, and a mixture of both in between. So a public
    fact that does not hold for all rows costs no more than a fraction of the noise.
    """
    mean = _posterior_mean(released, sd, bound)
    if not unit or math.isinf(bound):
        return mean
    shortfall = bound - released
    if shortfall <= _DOUBT * sd:
        return bound
    weight = min((shortfall / sd - _DOUBT) / (_DISBELIEF - _DOUBT), 1.0) if sd else 1.0
    return weight * mean + (1 - weight) * bound


def _posterior_mean(released: float, sd: float, bound: float) -> float:
    """Mean of the posterior that `estimate_trace` describes, by Gauss-Legendre quadrature."""
    mode = min(max(released, 0.0), bound)
    if sd == 0:
        return mode
    decay = sd / (1 + abs(released - mode) / sd)  # the density falls to 1/e at about this distance
    lower, upper = max(0.0, mode - _REACH * decay), min(bound, mode + _REACH * decay)
    nodes, weights = _quadrature()
    offsets = lower - mode + (upper - lower) * (nodes + 1) / 2  # from the mode
    smallest = sd if math.isinf(bound) else _SMALLEST_SHARE * bound
    prior = 1 / (mode + offsets + smallest)
    density = weights * prior * np.exp(-offsets * (offsets + 2 * (mode - released)) / (2 * sd * sd))
    return float(mode + (offsets * density).sum() / density.sum())


@cache
def _quadrature() -> tuple[Array, Array]:
    """Nodes and weights on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights
