"""Exact guarantees: Gaussian differential privacy, its conversions and its composition.

Everything is evaluated with 60 digits and rounded towards less privacy: epsilon, delta, mu upwards,
calibrated mu downwards. Sources: Dong, Roth, Su (2022), Corollary 1 for delta(epsilon); Balle and
Wang (2018) for the calibration; Smith and Thakurta (2022) for adaptive composition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mpmath import MPContext

_mp = MPContext()
_mp.dps = 60


def _up(value: Any) -> float:
    """The smallest double at or above `value`."""
    near = float(value)
    return near if _mp.mpf(near) >= value else math.nextafter(near, math.inf)


def _down(value: Any) -> float:
    """The largest double at or below `value`."""
    near = float(value)
    return near if _mp.mpf(near) <= value else math.nextafter(near, -math.inf)


def _delta(mu: Any, epsilon: Any) -> Any:
    """delta(epsilon) = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2), in 60 digits."""
    if mu == 0:
        return _mp.mpf(0)
    mu, epsilon = _mp.mpf(mu), _mp.mpf(epsilon)
    middle = -epsilon / mu
    return _mp.ncdf(middle + mu / 2) - _mp.exp(epsilon) * _mp.ncdf(middle - mu / 2)


def gdp_delta(mu: float, epsilon: float) -> float:
    """The exact delta at `epsilon` of a mu-GDP mechanism, rounded up."""
    return _up(_delta(mu, epsilon)) if mu < math.inf else 1.0


def gdp_epsilon(mu: float, delta: float) -> float:
    """The exact epsilon at `delta` of a mu-GDP mechanism, rounded up.

    Infinite when `delta` is not positive and `mu` is, since a Gaussian has no pure epsilon.
    """
    if mu == 0:
        return 0.0
    if not (delta > 0 and mu < math.inf):
        return math.inf
    if _delta(mu, 0) <= delta:
        return 0.0
    low, high = _mp.mpf(0), _mp.mpf(1)
    while _delta(mu, high) > delta:
        low, high = high, 2 * high
    for _ in range(40):
        half = (low + high) / 2
        low, high = (half, high) if _delta(mu, half) > delta else (low, half)
    for _ in range(4):  # Newton on log delta, from 40 bits: 60 digits after three steps
        at = _delta(mu, high)
        slope = -_mp.exp(high) * _mp.ncdf(-high / mu - _mp.mpf(mu) / 2) / at
        high -= _mp.log(at / _mp.mpf(delta)) / slope
    found = _up(high)
    while _delta(mu, found) > delta:
        found = math.nextafter(found, math.inf)
    return found


def gdp_mu(epsilon: float, delta: float) -> float:
    """The largest mu that is (epsilon, delta)-differentially private, rounded down.

    Raises
    ------
    ValueError
        Unless 0 <= epsilon < inf and 0 < delta < 1.
    """
    if not (0 <= epsilon < math.inf and 0 < delta < 1):
        raise ValueError("needs 0 <= epsilon < inf and 0 < delta < 1")
    low, high = _mp.mpf(0), _mp.mpf(1)
    while _delta(high, epsilon) < delta:
        low, high = high, 2 * high
    while low == 0:  # bracket from below as well, so that tiny mu get their relative digits
        half = high / 2
        low, high = (half, high) if _delta(half, epsilon) <= delta else (low, half)
    for _ in range(40):
        half = (low + high) / 2
        low, high = (half, high) if _delta(half, epsilon) <= delta else (low, half)
    for _ in range(4):
        at = _delta(low, epsilon)
        slope = _mp.npdf(-epsilon / low + low / 2) / at
        low -= _mp.log(at / _mp.mpf(delta)) / slope
    found = _down(low)
    while _delta(found, epsilon) > delta:
        found = math.nextafter(found, 0)
    return found


@dataclass(frozen=True)
class Guarantee:
    """What a release guarantees, whatever an attacker knows.

    Parameters
    ----------
    mu
        Gaussian differential privacy: telling two neighbours apart is at least as hard as telling
        N(0, 1) from N(mu, 1).
    delta0
        Probability with which the mu-GDP guarantee may fail.
    pure
        Pure epsilon, where there is one; infinite elsewhere.
    """

    mu: float
    delta0: float = 0.0
    pure: float = math.inf

    def __post_init__(self) -> None:
        if not (self.mu >= 0 and 0 <= self.delta0 <= 1 and self.pure >= 0):
            raise ValueError("mu and pure must be >= 0, and delta0 in [0, 1]")

    @classmethod
    def of_pure(cls, epsilon: float) -> Guarantee:
        """Pure epsilon-DP, which is mu-GDP with mu = -2 Phi^-1(1 / (1 + e^epsilon))."""
        ctx = MPContext()
        ctx.dps = 60 + int(epsilon)
        mu = 2 * ctx.sqrt(2) * ctx.erfinv(ctx.tanh(ctx.mpf(epsilon) / 2))
        return cls(mu=_up(_mp.mpf(mu)), pure=epsilon)

    def delta(self, epsilon: float) -> float:
        """The smallest delta known to hold at `epsilon`, rounded up."""
        if epsilon >= self.pure:
            return 0.0
        return min(1.0, _up(_mp.mpf(gdp_delta(self.mu, epsilon)) + self.delta0))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon known to hold at `delta`, rounded up."""
        left = _down(_mp.mpf(delta) - self.delta0)
        return min(self.pure, gdp_epsilon(self.mu, left))


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of all of them together, also when each was chosen after seeing the others."""
    squares, failures, pure = _mp.mpf(0), _mp.mpf(0), _mp.mpf(0)
    for each in guarantees:
        squares += _mp.mpf(each.mu) ** 2
        failures += _mp.mpf(each.delta0)
        pure += _mp.mpf(each.pure)
    return Guarantee(_up(_mp.sqrt(squares)), min(1.0, _up(failures)), _up(pure))


def within(total: Guarantee, epsilon: float, delta: float) -> bool:
    """Whether `total` fits a budget: by basic composition or by the GDP filter, whichever holds.

    Both are valid for adaptively chosen releases, and so is their union. NaN never fits.
    """
    if total.pure <= epsilon:
        return True
    left = _mp.mpf(delta) - _mp.mpf(total.delta0)
    return bool(left > 0 and total.mu < math.inf and _delta(total.mu, epsilon) <= left)


def noise_scale(squared_sensitivity: float, mu: float) -> float:
    """The smallest Gaussian scale s whose guarantee Delta/s, rounded up, is at most `mu`."""
    scale = _up(_mp.sqrt(squared_sensitivity) / mu)
    while gaussian_mu(squared_sensitivity, scale) > mu:
        scale = math.nextafter(scale, math.inf)
    return scale


def gaussian_mu(squared_sensitivity: float, scale: float) -> float:
    """Mu = Delta / s of Gaussian noise with standard deviation `scale`, rounded up."""
    return _up(_mp.sqrt(squared_sensitivity) / _mp.mpf(scale))
