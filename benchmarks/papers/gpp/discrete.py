"""The discrete Gaussian N_Z(0, sigma^2) by a table of probabilities, and its guarantees.

It uses seeded noise, for benchmarks only. A release draws it exactly
(`mechanisms.sampling.discrete`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gramercy.mechanisms.accounting.gdp import zcdp_delta
from gramercy.mechanisms.accounting.guarantee import Guarantee

Array = NDArray[np.float64]
Rng = np.random.Generator
_REACH = 12.0  # standard deviations; the omitted tails have less than 1e-32


@dataclass(frozen=True)
class Discrete:
    """A discrete Gaussian: integers and their probabilities."""

    sigma: float
    values: Array
    probabilities: Array

    @property
    def variance(self) -> float:
        """The exact variance, which is far below sigma^2 if sigma is small."""
        return float((self.values**2 * self.probabilities).sum())

    @property
    def changed(self) -> float:
        """The probability that the noise changes a cell."""
        return float(self.probabilities[self.values != 0].sum())

    def draw(self, shape: tuple[int, ...], rng: Rng) -> Array:
        """Draw independent integers."""
        at = np.searchsorted(np.cumsum(self.probabilities), rng.random(shape))
        return self.values[np.minimum(at, self.values.size - 1)]

    def delta(self, shift: int, epsilon: float) -> float:
        """The exact delta at `epsilon` for one cell that moves by `shift`, in either direction."""
        log_ratio = (2 * self.values * shift - shift**2) / (2 * self.sigma**2)
        excess = -np.expm1(np.minimum(log_ratio + epsilon, 0.0))
        return float((self.probabilities * excess).sum())


@lru_cache(maxsize=64)
def discrete(sigma: float) -> Discrete:
    """Return the discrete Gaussian with this positive sigma."""
    end = math.ceil(_REACH * sigma) + 1
    values = np.arange(-end, end + 1, dtype=float)
    weights = np.exp(-np.square(values / sigma) / 2)
    return Discrete(sigma, values, weights / weights.sum())


def moved(shift: int, sigma: float, failure: float) -> Guarantee:
    """The exact guarantee for one cell that moves by `shift`; see `Guarantee` for `failure`."""
    made = discrete(sigma)
    return Guarantee.from_profile(lambda epsilon: made.delta(shift, epsilon), failure)


def zcdp_epsilon(distance: float, sigma: float, delta: float) -> float:
    """Upper bound on epsilon at `delta` for rows `distance` apart, by (d^2 / 2 sigma^2)-zCDP."""
    rho = distance**2 / (2 * sigma**2)
    low, high = 0.0, rho + 2 * math.sqrt(rho * math.log(1 / delta))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_delta(rho, middle) > delta else (low, middle)
    return high
