"""The exact guarantee of s^2 chi2_k + |x|^2 against s^2 chi2_k: that of Wishart noise.

Release G + W, W ~ W_p(m, s^2 I), m >= p + 1, and let one row x, |x| <= 1, be added or removed. The
privacy loss is that of one scalar, V ~ s^2 chi2_k without x and |x|^2 + s^2 chi2_k with it,
k = m - p + 1; |x| = 1 is the worst case. docs/mechanisms/wishart.md has the proofs, and the formula
of each function:

* "A row present or absent": `add_remove_profile`, a series with positive terms (DLMF 8.7.1), so
  that nothing cancels. Adding a row has the larger delta.
* "A row replaced": `replace_one_bound`, the best way to add one row and then remove the other.

Notation: in units of 2 s^2 the two laws are Gamma(h) and Gamma(h) + L, with h = k/2,
L = 1/(2 s^2) and a = h - 1. P(h, .) is the distribution function of Gamma(h), and Q = 1 - P.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from scipy import special

from gramercy.mechanisms.accounting.gdp import mp, up
from gramercy.schemas import wordings
from gramercy.schemas.neighbours import Neighbours

_MAX_SHAPE, _MIN_VARIANCE = 1e9, 1e-6  # the series has about L + 10 sqrt(k) terms
_MAX_VARIANCE = 1e250  # avoids subnormal numbers in the series


def add_remove_profile(k: float, variance: float, epsilon: float) -> float:
    """The exact delta(epsilon) when a row is added or removed, rounded up by less than 1e-9.

    `k`, `variance`: m - p + 1 >= 2, real, and s^2, 1e-6 to 1e250, of Wishart noise W_p(m, s^2 I) on
    rows of the unit ball.

    Returns ``sum_n pi_n (1 - q^(n+1))``; at k = 2, ``1 - exp(-1 / (2 s^2))`` for every epsilon.
    """
    _check(k, variance, epsilon)
    return min(1.0, up(_delta(k, variance, epsilon)))


def replace_one_bound(k: float, variance: float, epsilon: float) -> float:
    """An upper bound on delta(epsilon) when a row is replaced.

    It is the minimum over a of ``delta_add(a) + e^a delta_remove(epsilon - a)``. The derivative in
    a is e^a times P(V > t) - P(V < w), where V is Gamma(h) + L, and t and w are the thresholds of
    the two tests. Both decrease in a, so the difference increases, and the minimum is where it is
    0. Every a gives a bound, and an error in a has an effect of second order: so a is found in
    double precision, and the two terms are evaluated exactly.

    Returns the bound, at most 1, rounded up by less than 1e-9; at k = 2 the exact
    `add_remove_profile`.
    """
    _check(k, variance, epsilon)
    half, rate = k / 2, 1 / (2 * mp.mpf(variance))
    y = _outer_quantile(half, 0.5 / variance, epsilon)
    if y == math.inf:  # epsilon - a = L, at and beyond which delta_remove is 0
        return min(1.0, up(_delta(k, variance, epsilon - rate)))
    log_ratio = mp.log1p(rate / y)
    a = epsilon - rate + (mp.mpf(half) - 1) * log_ratio
    return min(1.0, up(_delta(k, variance, a) + mp.exp(a) * _removal(half, y, log_ratio)))


def profile_of(neighbours: Neighbours) -> Callable[[float, float, float], float]:
    """`replace_one_bound` or `add_remove_profile`: by the number of rows that change."""
    return replace_one_bound if Neighbours(neighbours).changed_units == 2 else add_remove_profile


def _check(k: float, variance: float, epsilon: float) -> None:
    if not 2 <= k <= _MAX_SHAPE:
        raise wordings.argument_out_of_range("k", f"between 2 and {_MAX_SHAPE:g}")
    if not _MIN_VARIANCE <= variance <= _MAX_VARIANCE:
        raise wordings.argument_out_of_range(
            "variance", f"between {_MIN_VARIANCE:g} and {_MAX_VARIANCE:g}"
        )
    if not 0 <= epsilon < math.inf:
        raise wordings.argument_out_of_range("epsilon", "at least 0 and finite")


def _delta(k: float, variance: float, epsilon: Any) -> Any:
    """delta_add for epsilon > -L: sum_n pi_n (1 - q^(n+1)), pi_n = e^-x x^(h+n) / Gamma(h+n+1).

    x = L / (1 - q), q = exp(-(epsilon + L) / a). The largest pi_n is computed in 60 digits, the
    others relative to it in double precision: each ratio, product and sum loses at most a few units
    of 2^-53, so n terms at most 8 n. The remainder is below a geometric series, because the ratio
    of consecutive terms, x/(h + n + 1) (1 - q^(n+2))/(1 - q^(n+1)), decreases, and is below
    x/(h + n + 1) (n + 2)/(n + 1).
    """
    half, rate = k / 2, 1 / (2 * mp.mpf(variance))
    a = mp.mpf(half) - 1
    decay = (epsilon + rate) / a if a else mp.inf  # -log q
    threshold = rate / -mp.expm1(-decay)
    x, slope, peak = float(threshold), float(decay), max(0, math.floor(threshold - half))
    log_largest = (a + 1 + peak) * mp.log(threshold) - threshold - _log_gamma(half, peak)
    steps = 64 + int(10 * math.sqrt(half + peak))
    while True:
        last = peak + steps
        above = np.cumprod(x / (half + np.arange(peak + 1, last + 1)))
        ratio = x / (half + last + 1) * ((last + 2) / (last + 1))
        if ratio < 1 and above[-1] * ratio / (1 - ratio) < 2.0**-60:
            break
        steps *= 2
    below = np.cumprod((half + np.arange(peak, 0, -1)) / x)[::-1]
    weights = np.concatenate([below, [1.0], above])
    terms = weights * -np.expm1(-slope * np.arange(1, last + 2))
    total = float(terms.sum()) + float(terms[-1]) * ratio / (1 - ratio)
    return mp.exp(log_largest) * mp.mpf(total) * (1 + mp.mpf(last + 16) * 2**-50)


def _removal(half: float, y: float, log_ratio: Any) -> Any:
    """delta_remove at the epsilon whose threshold is y + L, y >= h - 1; log_ratio is log(1 + L/y).

    It is Q(h, y) - e^eps Q(h, y + L). The density at y equals e^eps times the density at y + L; let
    f be this value. With r = y / (y + L), in [0, 1], and
    D_j(u) = (1 + u/y)^(a-j) - r^j (1 + u/(y+L))^(a-j), integration by parts gives

        f integral_0^inf e^-u D_0 = f sum_{j < n} T_j (1 - r^j) + f T_n integral_0^inf e^-u D_n,

    T_j = a (a-1) .. (a-j+1) / y^j. If n is the integer part of a, D_n has negative even
    derivatives, so its Gauss-Laguerre sum is an upper bound, by less than 1e-10. For smaller n, the
    last integral is at most (1 - r^a) y / (y - a + n), because 1 + u/y <= e^(u/y) and the other
    term is >= r^a.
    """
    a, slope = half - 1, float(log_ratio)
    integer_part = math.floor(a)
    last = min(integer_part, 16 + int(10 * math.sqrt(a)))
    weights = np.cumprod(np.concatenate([[1.0], (a - np.arange(last)) / y]))
    steps = np.arange(1, last)
    if last < integer_part:
        tail = -math.expm1(-slope * a) * y / (y - a + last)
    else:
        u, mass = _laguerre()
        rest = a - integer_part
        power = rest * np.log1p(u * math.expm1(-slope) / (y + u))
        tail = float(mass @ ((1 + u / y) ** rest * -np.expm1(power - slope * integer_part)))
    total = float(weights[1:last] @ -np.expm1(-slope * steps)) + float(weights[last]) * tail
    log_density = mp.mpf(a) * mp.log(y) - y - _log_gamma(half, -1)
    return mp.exp(log_density) * mp.mpf(total) * (1 + mp.mpf(last + 1024) * 2**-50)


def _outer_quantile(half: float, rate: float, epsilon: float) -> float:
    """The y = t - L at which both tests have equal error masses; inf above about 1e12.

    It solves P(h, x) = Q(h, y), x = w - L = L / (e^d - 1), d = log(1 + L/y) + epsilon / (h - 1).
    """
    shift = epsilon / (half - 1) if half > 1 else math.inf
    if shift > 1e12:
        return math.inf

    def excess(log_y: float) -> float:
        decay = math.log1p(rate * math.exp(-log_y)) + shift
        log_x = math.log(rate) - decay - math.log(-math.expm1(-decay))
        return _log_tail(half, log_x, special.gammainc) - _log_tail(half, log_y, special.gammaincc)

    low = math.log(special.gammaincinv(half, 0.5))
    if excess(low) >= 0:
        return math.exp(low)
    step = 1 / math.sqrt(half)
    while excess(low + step) < 0:
        step *= 2
    return math.exp(scipy.optimize.brentq(excess, low, low + step, rtol=1e-14))


def _log_tail(half: float, log_x: float, mass: Callable[[float, float], float]) -> float:
    """Logarithm of a tail mass.

    Where the mass underflows: the density over the slope of its logarithm, to 0.2 %.
    """
    x = math.exp(log_x)
    tail = mass(half, x)
    if tail > 1e-290:
        return math.log(tail)
    return half * log_x - x - math.lgamma(half) - math.log(abs(x - half))


@lru_cache(maxsize=1)
def _laguerre() -> tuple[Any, Any]:
    return np.polynomial.laguerre.laggauss(64)


@lru_cache(maxsize=1024)
def _log_gamma(half: float, peak: int) -> Any:
    return mp.loggamma(mp.mpf(half) + peak + 1)


MAX_SHAPE = 1e6  # at this k the noise is within 1 % of its Gaussian limit


def smallest_variance(k: float, epsilon: float, delta: float, neighbours: Neighbours) -> float:
    """The smallest s^2 with delta(epsilon) <= delta, rounded up.

    delta decreases in s^2. Its root is rounded up until the rounded-up delta is small enough; for
    delta up to 1/2 the result is within 1e-10 of the exact root.

    `neighbours`: ``add-remove`` for `add_remove_profile`, ``replace-one`` for `replace_one_bound`.
    """
    if not 1e-200 <= delta < 1:
        raise wordings.argument_out_of_range("delta", "at least 1e-200 and less than 1")
    profile = profile_of(neighbours)
    high = 1.0
    while profile(k, high, epsilon) > delta:
        high *= 4
    low = high / 4
    while profile(k, low, epsilon) <= delta:
        low, high = low / 4, low

    def excess(log_variance: float) -> float:
        return math.log(profile(k, math.exp(log_variance), epsilon) / delta)

    # A slightly wider bracket: the signs must not depend on the rounding of exp and log.
    variance = math.exp(
        scipy.optimize.brentq(excess, math.log(low) - 1e-9, math.log(high) + 1e-9, xtol=1e-15)
    )
    step = 2.0**-50
    while profile(k, variance, epsilon) > delta:
        variance, step = variance * (1 + step), 2 * step
    return variance


@lru_cache(maxsize=64)  # planning, publishing and verifying ask for the same
def best_shape(
    p: int, epsilon: float, delta: float, neighbours: Neighbours, keeps_mean: bool = False
) -> tuple[float, float]:
    """The k in [2, 1e6] with the least noise at a guarantee, and its variance.

    The error is the root mean square of the noise in Frobenius norm, with m = k + p - 1. If the
    mean m s^2 I is removed, it is proportional to ``sqrt(m) s^2``, as is the standard deviation of
    an off-diagonal entry; if the noise keeps its mean, to ``sqrt(m (m + p + 1)) s^2``. The search
    is Brent's on log k, and includes both ends.

    With the mean removed, the best k is in the thousands or above, where the law is close to a
    Gaussian. Under add-remove the error decreased in k for every guarantee tried, so the result is
    1e6; under replace-one the minimum may come earlier. With the mean kept, k is of the order of
    p + 100.
    """

    def candidate(k: float) -> tuple[float, float, float]:
        """For this k: the error, k itself, and the variance."""
        variance = smallest_variance(k, epsilon, delta, neighbours)
        m = k + p - 1
        return variance * math.sqrt(m * (m + p + 1) if keeps_mean else m), k, variance

    def candidate_at(log_k: float) -> tuple[float, float, float]:
        # k has few bits, so that m - p + 1 returns it exactly.
        return candidate(max(2.0, round(64 * math.exp(log_k)) / 64))

    bounds = math.log(2), math.log(MAX_SHAPE)
    minimum = scipy.optimize.minimize_scalar(
        lambda log_k: candidate_at(log_k)[0],
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-3},
    )
    return min(candidate_at(float(minimum.x)), candidate(2.0), candidate(MAX_SHAPE))[1:]
