"""Gaussian differential privacy and its conversions.

Everything is evaluated with 60 digits and rounded towards less privacy: epsilon, delta, mu upwards,
calibrated mu downwards. Sources: Dong, Roth, Su (2022), Corollary 1 for delta(epsilon); Balle and
Wang (2018) for the calibration.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from mpmath import MPContext
from scipy.special import log_ndtr, ndtr

from gramercy.mechanisms.accounting.directed_rounding import down, mp, up

_KEPT = 4096  # results: a release asks for each of its own several times, and digits take long


def exact_delta(mu: Any, epsilon: Any) -> Any:
    """delta(epsilon) = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2), in 60 digits."""
    if mu == 0:
        return mp.mpf(0)
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    middle = -epsilon / mu
    return mp.ncdf(middle + mu / 2) - mp.exp(epsilon) * mp.ncdf(middle - mu / 2)


def quick_delta(mu: float, epsilon: float) -> float:
    """The same in double precision: good to nine digits, and not rounded up."""
    middle = -epsilon / mu
    return float(ndtr(middle + mu / 2) - math.exp(epsilon + log_ndtr(middle - mu / 2)))


@lru_cache(_KEPT)
def gdp_delta(mu: float, epsilon: float) -> float:
    """The exact delta at `epsilon` of a mu-GDP mechanism, rounded up."""
    return up(exact_delta(mu, epsilon)) if mu < math.inf else 1.0


@lru_cache(_KEPT)
def gdp_epsilon(mu: float, delta: float) -> float:
    """The exact epsilon at `delta` of a mu-GDP mechanism, rounded up.

    Infinite when `delta` is not positive and `mu` is, since a Gaussian has no pure epsilon.
    """
    if mu == 0 and delta >= 0:
        return 0.0
    if not (delta > 0 and mu < math.inf):
        return math.inf
    if exact_delta(mu, 0) <= delta:
        return 0.0
    low, high = mp.mpf(0), mp.mpf(1)
    while exact_delta(mu, high) > delta:
        low, high = high, 2 * high
    for _ in range(40):
        half = (low + high) / 2
        low, high = (half, high) if exact_delta(mu, half) > delta else (low, half)
    for _ in range(4):  # Newton on log delta, from 40 bits: 60 digits after three steps
        at = exact_delta(mu, high)
        slope = -mp.exp(high) * mp.ncdf(-high / mu - mp.mpf(mu) / 2) / at
        high -= mp.log(at / mp.mpf(delta)) / slope
    found = up(high)
    while exact_delta(mu, found) > delta:
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
    low, high = mp.mpf(0), mp.mpf(1)
    while exact_delta(high, epsilon) < delta:
        low, high = high, 2 * high
    while low == 0:  # bracket from below as well, so that tiny mu get their relative digits
        half = high / 2
        low, high = (half, high) if exact_delta(half, epsilon) <= delta else (low, half)
    for _ in range(40):
        half = (low + high) / 2
        low, high = (half, high) if exact_delta(half, epsilon) <= delta else (low, half)
    for _ in range(4):
        at = exact_delta(low, epsilon)
        slope = mp.npdf(-epsilon / low + low / 2) / at
        low -= mp.log(at / mp.mpf(delta)) / slope
    found = down(low)
    while exact_delta(found, epsilon) > delta:
        found = math.nextafter(found, 0)
    return found


@lru_cache(_KEPT)
def pure_gdp(epsilon: float) -> float:
    """The mu of a pure epsilon, -2 Phi^-1(1 / (1 + e^epsilon)), rounded up."""
    ctx = MPContext()
    ctx.dps = 60 + int(epsilon)
    return up(mp.mpf(2 * ctx.sqrt(2) * ctx.erfinv(ctx.tanh(ctx.mpf(epsilon) / 2))))


def gdp_pure(mu: float) -> float:
    """The largest pure epsilon whose `pure_gdp` is at most `mu`, rounded down."""
    half = mp.mpf(mu) / 2
    epsilon = down(mp.log(mp.ncdf(half) / mp.ncdf(-half)))
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
    mu = 2 * mp.sqrt(epsilon)  # not too small: Phi(-mu/2) <= exp(-mu^2/8) / 2
    for _ in range(8 if epsilon else 0):  # Newton on a convex function, from the right: 60 digits
        mu -= (_rate(mu) - epsilon) * mp.ncdf(-mu / 2) / mp.npdf(mu / 2)
    found = up(mu)
    while _rate(found) < epsilon:
        found = math.nextafter(found, math.inf)
    return found


def _rate(mu: Any) -> Any:
    """The epsilon of `shift_mu`, in 60 digits: -2 log(2 Phi(-mu/2))."""
    return -2 * mp.log(2 * mp.ncdf(-mp.mpf(mu) / 2))


def shift_epsilon(mu: float) -> float:
    """The largest rate whose `shift_mu` is at most `mu`, rounded down."""
    epsilon = down(_rate(mu))
    while shift_mu(epsilon) > mu:
        epsilon = math.nextafter(epsilon, 0)
    return epsilon


def gdp_within(mu: float, epsilon: float, delta: float) -> bool:
    """Whether mu-GDP is (epsilon, delta)-private. NaN never is."""
    return bool(delta > 0 and mu < math.inf and exact_delta(mu, epsilon) <= delta)


def noise_scale(squared_sensitivity: float, mu: float) -> float:
    """The smallest Gaussian scale s whose guarantee Delta/s, rounded up, is at most `mu`."""
    scale = up(mp.sqrt(squared_sensitivity) / mu)
    while gaussian_mu(squared_sensitivity, scale) > mu:
        scale = math.nextafter(scale, math.inf)
    return scale


def gaussian_mu(squared_sensitivity: float, scale: float) -> float:
    """Mu = Delta / s of Gaussian noise with standard deviation `scale`, rounded up."""
    return up(mp.sqrt(squared_sensitivity) / mp.mpf(scale))
