"""Normal variables that are clamped to the bounds of their column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Array = NDArray[np.float64]

_STEPS = 60  # of bisection
_WIDEST, _NARROWEST = 1e3, 1e-6  # standard deviations of a latent normal, in ranges of the bounds
_TWO_VALUES = 0.98  # share of the largest variance from which all cells are at the bounds
_FAR = 1e9  # standard deviation of their latent normal, in ranges
_REACH = 10.0  # standard deviations around the bounds where its mean may be


@dataclass(frozen=True)
class ClampedNormal:
    """A normal variable, clamped to the bounds of its column.

    Parameters
    ----------
    mean, deviation
        Before clamping, in the column's units.
    lower, upper
        Bounds.
    """

    mean: float
    deviation: float
    lower: float
    upper: float

    def values(self, latent: Array) -> Array:
        """See `Marginal.values`."""
        cells: Array = np.clip(self.mean + self.deviation * latent, self.lower, self.upper)
        return cells


def clamped_normal(mean: float, deviation: float, lower: float, upper: float) -> ClampedNormal:
    """The clamped normal variable with a given mean and standard deviation.

    It exists for every distribution between the bounds. At the largest variance, that of two values
    at the bounds, the variable before clamping is infinitely wide; from 98 % of that variance on it
    is taken to be so, and a column of zeros and ones with these bounds stays one.

    Parameters
    ----------
    mean, deviation
        After clamping; brought into the possible range.
    lower, upper
        Finite bounds.

    Notes
    -----
    For every width, the mean after clamping increases with the mean before; with the mean fixed,
    the variance increases with the width. Both are found by bisection.
    """
    width = upper - lower
    target = min(max((mean - lower) / width, 0.0), 1.0)
    variance = (deviation / width) ** 2
    if not (0 < target < 1 and variance > 0):
        return ClampedNormal(lower + target * width, 0.0, lower, upper)
    if variance > _TWO_VALUES * target * (1 - target):
        return ClampedNormal(float(ndtri(target)) * _FAR * width, _FAR * width, lower, upper)
    low, high = np.log([_NARROWEST, _WIDEST])
    for _ in range(_STEPS):
        s = float(np.exp((low + high) / 2))
        m = _latent_mean(target, s)
        first, second = _clamped_moments(m, s)
        low, high = (
            ((low + high) / 2, high)
            if second - first**2 < variance
            else (
                low,
                (low + high) / 2,
            )
        )
    return ClampedNormal(lower + m * width, s * width, lower, upper)


def _latent_mean(target: float, s: float) -> float:
    low, high = -_REACH * s, 1 + _REACH * s
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _clamped_moments(middle, s)[0] < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _clamped_moments(m: float, s: float) -> tuple[float, float]:
    """First and second moment of a normal variable that is clamped to [0, 1]."""
    a, b = m / s, (m - 1) / s
    phi_a, phi_b = (float(np.exp(-x * x / 2)) / np.sqrt(2 * np.pi) for x in (a, b))
    above_a, above_b = float(ndtr(a)), float(ndtr(b))
    excess = (m - 1) * above_b + s * phi_b
    first = m * above_a + s * phi_a - excess
    squares = (m * m + s * s) * above_a + m * s * phi_a
    squares -= ((m - 1) ** 2 + s * s) * above_b + (m - 1) * s * phi_b
    return first, squares - 2 * excess
