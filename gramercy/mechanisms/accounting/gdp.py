"""Gaussian differential privacy (mu-GDP) and its conversions.

Everything is evaluated with 60 digits and rounded towards less privacy: epsilon, delta and mu
upwards, calibrated mu downwards. Sources: Dong, Roth and Su (2022), Corollary 1, for
delta(epsilon); Balle and Wang (2018), Theorem 8, for the calibration.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from mpmath import MPContext
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from gramercy.schemas import wordings

Array = NDArray[np.float64]

_CONVERGED = 1e-27  # of a step of Newton's method: the next one would be below 1e-50
_HALVINGS = 45
_STEEP = 1e3  # a mu whose delta is nearly 1 at most epsilons: larger ones are bisected
_MARGIN, _SMALLEST = 5e-8, 1e-12  # cover the rounding errors in double precision
_CACHED = 4096  # results; a release needs each several times, and 60 digits take long


def exact_delta(mu: Any, epsilon: Any) -> Any:
    """delta(epsilon) = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2), in 60 digits.

    Dong, Roth and Su (2022), Corollary 1.
    """
    if mu == 0:
        return mp.mpf(0)
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    middle = -epsilon / mu
    return mp.ncdf(middle + mu / 2) - mp.exp(epsilon) * mp.ncdf(middle - mu / 2)


def approximate_delta(mu: float, epsilon: float) -> float:
    """`exact_delta` in double precision, to nine digits, not rounded up."""
    middle = -epsilon / mu
    return float(ndtr(middle + mu / 2) - math.exp(epsilon + log_ndtr(middle - mu / 2)))


@lru_cache(_CACHED)
def gdp_delta(mu: float, epsilon: float) -> float:
    """The exact delta at `epsilon` of a mu-GDP mechanism, rounded up."""
    return up(exact_delta(mu, epsilon)) if mu < math.inf else 1.0


@lru_cache(_CACHED)
def gdp_epsilon(mu: float, delta: float) -> float:
    """The exact epsilon at `delta` of a mu-GDP mechanism, rounded up.

    It is infinite if `mu` is positive and `delta` is not, since a Gaussian has no pure epsilon.
    """
    if mu == 0 and delta >= 0:
        return 0.0
    if not (delta > 0 and mu < math.inf):
        return math.inf
    if exact_delta(mu, 0) <= delta:
        return 0.0
    start = float(approximate_epsilons(np.array([mu]), np.array([delta]))[0])
    solution = _newton(mu, delta, mp.mpf(start)) if 0 < start < math.inf else None
    if solution is None:  # no good start in double precision
        low, high = mp.mpf(0), mp.mpf(1)
        while exact_delta(mu, high) > delta:
            low, high = high, 2 * high
        for _ in range(40):
            half = (low + high) / 2
            low, high = (half, high) if exact_delta(mu, half) > delta else (low, half)
        solution = _newton(mu, delta, high) or high
    epsilon = up(solution)
    while exact_delta(mu, epsilon) > delta:
        epsilon = math.nextafter(epsilon, math.inf)
    return epsilon


def _newton(mu: float, delta: float, epsilon: Any) -> Any:
    """Solve delta(epsilon) = delta from a start; None if four steps do not give 50 digits.

    Newton's method on log delta doubles the number of digits with every step.
    """
    for _ in range(4):
        at = exact_delta(mu, epsilon)
        slope = -mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mp.mpf(mu) / 2) / at
        step = mp.log(at / mp.mpf(delta)) / slope
        epsilon -= step
        if not epsilon > 0:
            return None
        if abs(step) < epsilon * _CONVERGED:
            return epsilon
    return None


def approximate_epsilons(mu: Array, delta: Array) -> Array:
    """Epsilon at `delta` of mu-GDP mechanisms, in double precision, for tables and charts.

    `mu`: shape (n,), not negative. `delta`: shape (n,).

    Returns shape (n,): at most 1e-7 larger than `gdp_epsilon`, relatively or absolutely, and not
    smaller; infinite where that is.
    """
    finite = (delta > 0) & (mu < math.inf)
    m, log_delta = np.where(finite & (mu > 0), mu, 1.0), np.log(np.where(finite, delta, 0.5))
    low = np.zeros(len(m))
    high = m * m / 2 + m * np.sqrt(np.maximum(-2 * log_delta, 0.0))  # a bound on Gaussian tails
    for _ in range(_HALVINGS):
        half = (low + high) / 2
        first, second = log_ndtr(-half / m + m / 2), half + log_ndtr(-half / m - m / 2)
        above = first + np.log1p(-np.exp(np.minimum(second - first, -1e-300))) > log_delta
        low, high = np.where(above, half, low), np.where(above, high, half)
    epsilon = np.where(low > 0, high * (1 + _MARGIN) + _SMALLEST, 0.0)
    nothing = (mu == 0) & (delta >= 0)
    return np.where(nothing, 0.0, np.where(finite, epsilon, math.inf))


@lru_cache(_CACHED)
def gdp_mu(epsilon: float, delta: float) -> float:
    """The largest mu that is (epsilon, delta)-differentially private, rounded down."""
    if not 0 <= epsilon < math.inf:
        raise wordings.argument_out_of_range("epsilon", "at least 0 and finite")
    if not 0 < delta < 1:
        raise wordings.argument_out_of_range("delta", "greater than 0 and less than 1")
    start = _approximate_mu(epsilon, delta)
    solution = _newton_mu(epsilon, delta, mp.mpf(start)) if 0 < start < math.inf else None
    mu = down(_bisected_mu(epsilon, delta) if solution is None else solution)
    while exact_delta(mu, epsilon) > delta:
        mu = math.nextafter(mu, 0)
    return mu


def _approximate_mu(epsilon: float, delta: float) -> float:
    """A start for `_newton_mu`, in double precision: zero, infinite or wrong for extreme values."""
    low, high = 0.0, 1.0
    while high < _STEEP and approximate_delta(high, epsilon) < delta:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        half = (low + high) / 2
        low, high = (half, high) if approximate_delta(half, epsilon) <= delta else (low, half)
    return low


def _newton_mu(epsilon: float, delta: float, mu: Any) -> Any:
    """Solve delta(epsilon) = delta for mu, like `_newton` for epsilon."""
    for _ in range(5):
        at = exact_delta(mu, epsilon)
        if not at > 0:
            return None
        step = mp.log(at / mp.mpf(delta)) * at / mp.npdf(-epsilon / mu + mu / 2)
        mu -= step
        if not mu > 0:
            return None
        if abs(step) < mu * _CONVERGED:
            return mu
    return None


def _bisected_mu(epsilon: float, delta: float) -> Any:
    """Solve delta(epsilon) = delta for mu, from any start."""
    low, high = mp.mpf(0), mp.mpf(1)
    while exact_delta(high, epsilon) < delta:
        low, high = high, 2 * high
    while low == 0:  # bracket from below as well, for relative precision of tiny mu
        half = high / 2
        low, high = (half, high) if exact_delta(half, epsilon) <= delta else (low, half)
    for _ in range(40):
        half = (low + high) / 2
        low, high = (half, high) if exact_delta(half, epsilon) <= delta else (low, half)
    for _ in range(4):
        at = exact_delta(low, epsilon)
        slope = mp.npdf(-epsilon / low + low / 2) / at
        low -= mp.log(at / mp.mpf(delta)) / slope
    return low


@lru_cache(_CACHED)
def mu_from_pure_epsilon(epsilon: float) -> float:
    """The smallest mu that this pure epsilon implies for every mechanism, rounded up.

    It is -2 Phi^-1(1 / (1 + e^epsilon)). The proof is in docs/mechanisms/README.md, D.
    """
    ctx = MPContext()
    ctx.dps = 60 + int(epsilon)
    return up(mp.mpf(2 * ctx.sqrt(2) * ctx.erfinv(ctx.tanh(ctx.mpf(epsilon) / 2))))


def pure_epsilon_from_mu(mu: float) -> float:
    """The largest pure epsilon whose `mu_from_pure_epsilon` is at most `mu`, rounded down."""
    half = mp.mpf(mu) / 2
    epsilon = down(mp.log(mp.ncdf(half) / mp.ncdf(-half)))
    while mu_from_pure_epsilon(epsilon) > mu:
        epsilon = math.nextafter(epsilon, 0)
    return epsilon


@lru_cache(_CACHED)
def log_lipschitz_mu(epsilon: float) -> float:
    """The mu of noise with an epsilon-Lipschitz log density along the shift, rounded up.

    Noise Z is added to a statistic that a neighbour shifts by D, and the log density of Z + t D,
    0 <= t <= 1, has a derivative in t within +-epsilon. This holds for Laplace noise, for densities
    proportional to exp(-norm), for `mechanisms.matrix_laplace`, and for post-processing of these,
    such as rounding. It does not hold for every pure epsilon: the density of staircase noise jumps,
    and discrete noise does not have one. There `mu_from_pure_epsilon` is exact.

    Laplace noise attains Phi(-mu/2) = exp(-epsilon/2) / 2. The proof is in
    docs/mechanisms/matrix-laplace.md, "The mu that composition charges", step 2.
    """
    exact = 2 * mp.sqrt(epsilon)  # not too small: Phi(-mu/2) <= exp(-mu^2/8) / 2
    for _ in range(8 if epsilon else 0):  # Newton on a convex function, from the right: 60 digits
        exact -= (_lipschitz_constant(exact) - epsilon) * mp.ncdf(-exact / 2) / mp.npdf(exact / 2)
    mu = up(exact)
    while _lipschitz_constant(mu) < epsilon:
        mu = math.nextafter(mu, math.inf)
    return mu


def _lipschitz_constant(mu: Any) -> Any:
    """The inverse of `log_lipschitz_mu`, in 60 digits: -2 log(2 Phi(-mu/2))."""
    return -2 * mp.log(2 * mp.ncdf(-mp.mpf(mu) / 2))


def log_lipschitz_epsilon(mu: float) -> float:
    """The largest Lipschitz constant whose `log_lipschitz_mu` is at most `mu`, rounded down."""
    epsilon = down(_lipschitz_constant(mu))
    while log_lipschitz_mu(epsilon) > mu:
        epsilon = math.nextafter(epsilon, 0)
    return epsilon


def satisfies_dp(mu: float, epsilon: float, delta: float) -> bool:
    """Whether mu-GDP implies (epsilon, delta)-differential privacy; False for NaN."""
    return bool(delta > 0 and mu < math.inf and exact_delta(mu, epsilon) <= delta)


def gaussian_scale(squared_sensitivity: float, mu: float) -> float:
    """The smallest Gaussian scale s for which Delta / s, rounded up, is at most `mu`."""
    scale = up(mp.sqrt(squared_sensitivity) / mu)
    while gaussian_mu(squared_sensitivity, scale) > mu:
        scale = math.nextafter(scale, math.inf)
    return scale


def gaussian_mu(squared_sensitivity: float, scale: float) -> float:
    """Mu = Delta / s of Gaussian noise with standard deviation s = `scale`, rounded up."""
    return up(mp.sqrt(squared_sensitivity) / mp.mpf(scale))


_UP = 1 + 1e-11  # more than the rounding error of the exponential
_MIN_DELTA = 5e-324  # smallest positive double: delta is never zero


def zcdp_delta(rho: float, epsilon: float) -> float:
    """A delta that holds at `epsilon` for every rho-zCDP mechanism, rounded up.

    Canonne, Kamath and Steinke (2020), Corollary 13: for every order alpha > 1,
    delta = exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) (1 - 1/alpha)^alpha. Any alpha is
    valid; the search looks for the smallest delta.
    """

    def log_delta(log_excess: float) -> float:
        excess = math.exp(log_excess)  # alpha - 1
        exponent = excess * ((1 + excess) * rho - epsilon)
        return exponent - math.log1p(excess) - excess * math.log1p(1 / excess)

    best = scipy.optimize.minimize_scalar(
        log_delta, bounds=(-30, 30), method="bounded", options={"xatol": 1e-9}
    )
    return min(1.0, max(math.exp(min(0.0, float(best.fun))) * _UP, _MIN_DELTA))


mp = MPContext()
mp.dps = 60

UP = 1 + 2.0**-50  # factor that exceeds the rounding error of a few double-precision operations


def up(value: Any) -> float:
    """The smallest double at or above `value`."""
    nearest = float(value)
    return nearest if mp.mpf(nearest) >= value else math.nextafter(nearest, math.inf)


def down(value: Any) -> float:
    """The largest double at or below `value`."""
    nearest = float(value)
    return nearest if mp.mpf(nearest) <= value else math.nextafter(nearest, -math.inf)


def subtract_down(delta: float, share: float) -> float:
    """Delta - share, rounded down."""
    return down(mp.mpf(delta) - share)
