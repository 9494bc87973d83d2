"""Exact guarantees: Gaussian differential privacy and its conversions.

Everything is evaluated with 60 digits and rounded towards less privacy: epsilon, delta, mu upwards,
calibrated mu downwards. Sources: Dong, Roth, Su (2022), Corollary 1 for delta(epsilon); Balle and
Wang (2018) for the calibration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from mpmath import MPContext
from scipy.special import log_ndtr, ndtr

_mp = MPContext()
_mp.dps = 60

UP = 1 + 2.0**-50  # more than what a few double-precision operations can lose

_GRID = 1000  # steps of epsilon, for the mu that holds a whole profile
_ROUNDED = 2.0**-52
_LEAST_MU = 1e-9  # no release is free
_KEPT = 4096  # results: a release asks for each of its own several times, and digits take long
_MOST_PURE = 700.0  # beyond it a pure epsilon says nothing that a double could show


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


def _quick_delta(mu: float, epsilon: float) -> float:
    """The same in double precision: good to nine digits, and not rounded up."""
    middle = -epsilon / mu
    return float(ndtr(middle + mu / 2) - math.exp(epsilon + log_ndtr(middle - mu / 2)))


@lru_cache(_KEPT)
def gdp_delta(mu: float, epsilon: float) -> float:
    """The exact delta at `epsilon` of a mu-GDP mechanism, rounded up."""
    return _up(_delta(mu, epsilon)) if mu < math.inf else 1.0


@lru_cache(_KEPT)
def gdp_epsilon(mu: float, delta: float) -> float:
    """The exact epsilon at `delta` of a mu-GDP mechanism, rounded up.

    Infinite when `delta` is not positive and `mu` is, since a Gaussian has no pure epsilon.
    """
    if mu == 0 and delta >= 0:
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


@lru_cache(_KEPT)
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


@lru_cache(_KEPT)
def pure_gdp(epsilon: float) -> float:
    """The mu of a pure epsilon, -2 Phi^-1(1 / (1 + e^epsilon)), rounded up."""
    ctx = MPContext()
    ctx.dps = 60 + int(epsilon)
    return _up(_mp.mpf(2 * ctx.sqrt(2) * ctx.erfinv(ctx.tanh(ctx.mpf(epsilon) / 2))))


def gdp_pure(mu: float) -> float:
    """The largest pure epsilon whose `pure_gdp` is at most `mu`, rounded down."""
    half = _mp.mpf(mu) / 2
    epsilon = _down(_mp.log(_mp.ncdf(half) / _mp.ncdf(-half)))
    while pure_gdp(epsilon) > mu:
        epsilon = math.nextafter(epsilon, 0)
    return epsilon


@lru_cache(_KEPT)
def shift_mu(epsilon: float) -> float:
    """The mu of noise whose log density changes at a rate of at most `epsilon`, rounded up.

    It holds where noise Z is added to what a neighbour moves by D, and where the density of
    Z + t D, 0 <= t <= 1, has a logarithm whose derivative in t stays within +-epsilon: for Laplace
    noise, for densities proportional to exp(-norm), for `mechanisms.matrix_laplace`, and for
    post-processing of these, such as rounding. It does not hold for every pure epsilon, for which
    `pure_gdp` is exact: the density of staircase noise jumps, and discrete noise has none.

    Notes
    -----
    Let an event have the probability Phi(z(t)) once the noise is moved by t D. The derivative of
    that probability is the mean of the score over the event; the score has mean zero, so it is at
    most epsilon Phi(-|z|). Such a path gets furthest if it is symmetric about z = 0, from -mu/2 to
    mu/2, and there d(-log Phi(-z)) = epsilon dt: Phi(-mu/2) = exp(-epsilon/2) / 2. Laplace noise
    attains it.
    """
    mu = 2 * _mp.sqrt(epsilon)  # not too small: Phi(-mu/2) <= exp(-mu^2/8) / 2
    for _ in range(8 if epsilon else 0):  # Newton on a convex function, from the right: 60 digits
        mu -= (_rate(mu) - epsilon) * _mp.ncdf(-mu / 2) / _mp.npdf(mu / 2)
    found = _up(mu)
    while _rate(found) < epsilon:
        found = math.nextafter(found, math.inf)
    return found


def _rate(mu: Any) -> Any:
    """The epsilon of `shift_mu`, in 60 digits: -2 log(2 Phi(-mu/2))."""
    return -2 * _mp.log(2 * _mp.ncdf(-_mp.mpf(mu) / 2))


def shift_epsilon(mu: float) -> float:
    """The largest rate whose `shift_mu` is at most `mu`, rounded down."""
    epsilon = _down(_rate(mu))
    while shift_mu(epsilon) > mu:
        epsilon = math.nextafter(epsilon, 0)
    return epsilon


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
    profile
        The exact delta at an epsilon, rounded up, where it is less than what mu and delta0 tell.
        Of one release alone: composition goes by the numbers above.

    Examples
    --------
    >>> once = Guarantee(mu=0.25)
    >>> round(once.epsilon(1e-6), 3), round(once.power(0.05), 3)
    (1.061, 0.082)
    >>> four_times = Guarantee(mu=0.5)  # squares of mu add up
    >>> round(four_times.epsilon(1e-6), 3)
    2.254
    """

    mu: float
    delta0: float = 0.0
    pure: float = math.inf
    profile: Callable[[float], float] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not (self.mu >= 0 and 0 <= self.delta0 <= 1 and self.pure >= 0):
            raise ValueError("mu and pure must be >= 0, and delta0 in [0, 1]")

    @classmethod
    def of_pure(cls, epsilon: float) -> Guarantee:
        """Pure epsilon-DP, which is mu-GDP with mu = -2 Phi^-1(1 / (1 + e^epsilon))."""
        return cls(pure_gdp(epsilon), pure=epsilon)

    @classmethod
    def of_profile(cls, profile: Callable[[float], float], failure: float) -> Guarantee:
        """The least mu with delta(eps) <= delta_mu(eps) + delta0 for every eps >= 0.

        Parameters
        ----------
        profile
            The exact delta at an epsilon, in both directions, rounded up.
        failure
            delta0 to aim at; it becomes larger where the profile never falls that low.

        Notes
        -----
        On a grid, since delta falls with epsilon: delta(eps) <= delta(eps_i) for
        eps_i <= eps < eps_(i+1), and delta_mu(eps_(i+1)) is the least of delta_mu there.
        """
        end = 1.0
        while profile(end) > failure and end < 2.0**10:
            end *= 2
        while profile(end / 2) <= failure and end > 2.0**-20:
            end /= 2
        delta0 = max(failure, profile(end) * (1 + 1e-9))
        grid = [end * (i / _GRID) ** 1.5 for i in range(_GRID + 1)]  # finer where it is steep
        excess = [max(0.0, profile(e) - delta0) for e in grid]
        if excess[0] >= 1:  # rounded up to certainty, which no mu has
            delta0, excess = delta0 + _ROUNDED, [min(each, 1 - _ROUNDED) for each in excess]
        mu = _LEAST_MU
        steps = list(zip(grid[1:], excess, strict=False))
        for after, needed in [*steps[::40], *steps]:  # a coarse look first: few improve on it
            if _quick_delta(mu, after) > needed * (1 + 1e-6):
                continue
            if _delta(mu, after) < needed:
                mu = math.nextafter(gdp_mu(after, needed), math.inf)
            while _delta(mu, after) < needed:
                mu = math.nextafter(mu, math.inf)
        return cls(mu, min(1.0, delta0), profile=profile)

    def delta(self, epsilon: float) -> float:
        """The smallest delta known to hold at `epsilon`, rounded up."""
        if epsilon >= self.pure:
            return 0.0
        known = min(1.0, _up(_mp.mpf(gdp_delta(self.mu, epsilon)) + self.delta0))
        return known if self.profile is None else min(known, self.profile(epsilon))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon known to hold at `delta`, rounded up."""
        known = min(self.pure, gdp_epsilon(self.mu, less(delta, self.delta0)))
        if self.profile is None or self.profile(0.0) <= delta:
            return known if self.profile is None else 0.0
        low, high = 0.0, min(known, 1024.0)
        if self.profile(high) > delta:
            return known
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.profile(middle) > delta else (low, middle)
        return high

    def rho(self) -> tuple[float, float]:
        """Rho and failure probability of zero-concentrated DP: D_alpha <= rho alpha for all alpha.

        mu-GDP is post-processing of N(0, 1) against N(mu, 1), whose Rényi divergence is
        alpha mu^2 / 2. Where that may fail there is no rho, but beside a pure epsilon: there
        delta0 is that of an event the data have no part in (`mechanisms.k_norm`). A pure epsilon
        has rho <= epsilon^2 / 2 itself (Bun and Steinke 2016).
        """
        named = self.delta0 == 0 or math.isfinite(self.pure)
        by_gdp = _up(_mp.mpf(self.mu) ** 2 / 2) if named else math.inf
        by_pure = _up(_mp.mpf(self.pure) ** 2 / 2)
        return (by_pure, 0.0) if by_pure <= by_gdp else (by_gdp, self.delta0)

    def power(self, alarms: float) -> float:
        """How often the best attacker finds a row, whose false alarms have this probability.

        Phi(Phi^-1(alarms) + mu) + delta0, or by the pure epsilon, whichever is less.
        """
        level = _mp.mpf(alarms)
        bounds = [_mp.ncdf(_mp.sqrt(2) * _mp.erfinv(2 * level - 1) + self.mu) + self.delta0]
        if self.pure < _MOST_PURE:
            grows = _mp.exp(self.pure)
            bounds += [grows * level, 1 - (1 - level) / grows]
        return min(1.0, _up(min(bounds)))


def gdp_within(mu: float, epsilon: float, delta: float) -> bool:
    """Whether mu-GDP is (epsilon, delta)-private. NaN never is."""
    return bool(delta > 0 and mu < math.inf and _delta(mu, epsilon) <= delta)


def less(delta: float, aside: float) -> float:
    """What is left of a delta once some of it is set aside, rounded down."""
    return _down(_mp.mpf(delta) - aside)


def noise_scale(squared_sensitivity: float, mu: float) -> float:
    """The smallest Gaussian scale s whose guarantee Delta/s, rounded up, is at most `mu`."""
    scale = _up(_mp.sqrt(squared_sensitivity) / mu)
    while gaussian_mu(squared_sensitivity, scale) > mu:
        scale = math.nextafter(scale, math.inf)
    return scale


def gaussian_mu(squared_sensitivity: float, scale: float) -> float:
    """Mu = Delta / s of Gaussian noise with standard deviation `scale`, rounded up."""
    return _up(_mp.sqrt(squared_sensitivity) / _mp.mpf(scale))
