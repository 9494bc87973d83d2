"""The discrete Gaussian N_Z(0, sigma^2), seeded, by its table of probabilities; and what it hides.

For benchmarks alone: a release draws it exactly (`mechanisms.sampling.discrete`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gramercy.mechanisms.accounting.concentrated import zcdp_delta
from gramercy.mechanisms.accounting.guarantee import Guarantee

Array = NDArray[np.float64]
Rng = np.random.Generator
_REACH = 12.0  # deviations; what is left out has less than 1e-32


@dataclass(frozen=True)
class Discrete:
    """Its integers and their probabilities."""

    sigma: float
    values: Array
    probabilities: Array

    @property
    def variance(self) -> float:
        """Below sigma^2, by much where sigma is small."""
        return float((self.values**2 * self.probabilities).sum())

    @property
    def changed(self) -> float:
        """The probability that a cell does not stay as it is."""
        return float(self.probabilities[self.values != 0].sum())

    def draw(self, shape: tuple[int, ...], rng: Rng) -> Array:
        """Independent integers."""
        at = np.searchsorted(np.cumsum(self.probabilities), rng.random(shape))
        return self.values[np.minimum(at, self.values.size - 1)]

    def delta(self, shift: int, epsilon: float) -> float:
        """The exact delta at `epsilon` of one cell that moves by `shift`: both ways are alike."""
        ratio = (2 * self.values * shift - shift**2) / (2 * self.sigma**2)  # of logarithms
        left = -np.expm1(np.minimum(ratio + epsilon, 0.0))
        return float((self.probabilities * left).sum())


@lru_cache(maxsize=64)
def discrete(sigma: float) -> Discrete:
    """Of any sigma above zero."""
    end = math.ceil(_REACH * sigma) + 1
    values = np.arange(-end, end + 1, dtype=float)
    weights = np.exp(-np.square(values / sigma) / 2)
    return Discrete(sigma, values, weights / weights.sum())


def moved(shift: int, sigma: float, failure: float) -> Guarantee:
    """The exact guarantee of one cell that moves by `shift`; `failure` as `Guarantee` has it."""
    made = discrete(sigma)
    return Guarantee.from_profile(lambda epsilon: made.delta(shift, epsilon), failure)


def zcdp_epsilon(distance: float, sigma: float, delta: float) -> float:
    """An epsilon that holds at `delta` for integer rows this far apart: (d^2 / 2 sigma^2)-zCDP."""
    rho = distance**2 / (2 * sigma**2)
    low, high = 0.0, rho + 2 * math.sqrt(rho * math.log(1 / delta))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_delta(rho, middle) > delta else (low, middle)
    return high
