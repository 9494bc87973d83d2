"""The exact guarantee of s^2 chi2_k + |x|^2 against s^2 chi2_k: that of Wishart noise.

Release G + W, W ~ W_p(m, s^2 I), m >= p + 1, and let one row x, |x| <= 1, come or go. Then
V = |x|^2 / (x^T (Y - G_0)^-1 x) is sufficient, G_0 the matrix without x, and V ~ s^2 chi2_k without
x, |x|^2 + s^2 chi2_k with it, k = m - p + 1 (Schur complement). A chi-squared law with k >= 2 is
log-concave, so every delta(eps) grows with |x|^2 / s^2: |x| = 1 is the worst, and delta falls in s.
It falls in k too, since more noise is post-processing.

In units of 2 s^2 the two laws are Gamma(h) and Gamma(h) + L, h = k/2, L = 1/(2 s^2), a = h - 1.
The ratio of their densities is monotone, so the best test is a threshold. For the law without x
against that with it (delta_add in the design) it is x_1 = L / (1 - q), q = exp(-(eps + L)/a), and

    delta(eps) = P(h, x_1) - e^eps P(h, x_1 - L)
               = sum_{n >= 0} pi_n (1 - q^(n+1)),    pi_n = e^-x_1 x_1^(h+n) / Gamma(h + n + 1),

by the series of the incomplete gamma function (DLMF 8.7.1), whose terms at x_1 - L are e^-eps
q^(n+1) pi_n because the densities agree at the threshold. Every term is positive: nothing cancels.

The other direction never has the larger delta. With z the log-ratio of the densities, with x over
without, and m(z) = e^(z/2) times its density without x, delta(eps) less the other direction's is

    the integral over z > eps of (e^z - e^eps) e^(-z/2) D(z),    D(z) = m(-z) - m(z).

At r = (L - z)/a, log m = const - (a + 2) log sinh(r/2) - (L/2) coth(r/2), and the derivative of
log m(-z) - log m(z) has the sign of an increasing function of cosh(z/a), negative at 0: D changes
sign once, from - to +. Beside it stands the mass P(h, L) that the law without x has below L, where
the other has none: an atom at z = -infinity, in favour of the first direction. At eps = 0 both are
the total variation, so that integral and atom add up to 0, and (e^z - e^eps)_+ / (e^z - 1) rises
in z, up to 1: integral and atom together are >= 0 at every eps >= 0. (k = 2 is the limit.)

A row x replaced by y: let P, Q, R be the laws with x, with y and with both. P is without y against
R, and R is with x against Q: as P - e^eps Q = (P - e^a R) + e^a (R - e^b Q) for a + b = eps,

    delta(eps) <= delta_add(a) + e^a delta_remove(b),    a and b of any sign,

and the same for Q against P. What was said of |x|, s and k holds for whole trade-off curves, so for
both terms, and for the least over a; that falls in eps too, as delta_remove does. With R the law
without either row the order is remove, add: valid, but above this in every case tried. The zero row
is a y: no bound is below delta_add(eps), and at k = 2 this one is equal to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special
from scipy.optimize import brentq

from gramercy.mechanisms.accounting.directed_rounding import mp, up

_MOST_SHAPE, _LEAST_VARIANCE = 1e9, 1e-6  # the series has about L + 10 sqrt(k) terms
_MOST_VARIANCE = 1e250  # no subnormal numbers in the series


def profile(k: float, variance: float, epsilon: float) -> float:
    """The exact delta(epsilon) when a row is added or removed, rounded up by less than 1e-9.

    Parameters
    ----------
    k, variance
        m - p + 1 >= 2, real, and s^2, 1e-6 to 1e250, of Wishart noise W_p(m, s^2 I) on rows of the
        unit ball.
    epsilon
        At least 0.

    Returns
    -------
    float
        ``sum_n pi_n (1 - q^(n+1))``, see the module; at k = 2, ``1 - exp(-1 / (2 s^2))`` always.
    """
    _check(k, variance, epsilon)
    return min(1.0, up(_delta(k, variance, epsilon)))


def two_steps(k: float, variance: float, epsilon: float) -> float:
    """A bound on delta(epsilon) when a row is replaced, adding one and then removing the other.

    The least of ``delta_add(a) + e^a delta_remove(epsilon - a)``. The derivative in a is e^a times
    P(V > t) - P(V < w), where V is Gamma(h) + L and t, w are the thresholds of the two tests. Both
    fall in a, so that the difference increases, and the least is where it is 0. Every a gives a
    bound, and one that is a little off costs the square of that: double precision finds a, and the
    two terms there are exact.

    Parameters
    ----------
    k, variance, epsilon
        As in `profile`.

    Returns
    -------
    float
        The bound, rounded up by less than 1e-9, and at most 1; at k = 2, that of `profile`: exact.
    """
    _check(k, variance, epsilon)
    half, rate = k / 2, 1 / (2 * mp.mpf(variance))
    y = _outer_quantile(half, 0.5 / variance, epsilon)
    if y == math.inf:  # b = L, beyond which removal has no delta
        return min(1.0, up(_delta(k, variance, epsilon - rate)))
    log_ratio = mp.log1p(rate / y)
    a = epsilon - rate + (mp.mpf(half) - 1) * log_ratio
    return min(1.0, up(_delta(k, variance, a) + mp.exp(a) * _removal(half, y, log_ratio)))


def _check(k: float, variance: float, epsilon: float) -> None:
    if not (2 <= k <= _MOST_SHAPE and _LEAST_VARIANCE <= variance <= _MOST_VARIANCE):
        raise ValueError("needs 2 <= k <= 1e9 and 1e-6 <= variance <= 1e250")
    if not 0 <= epsilon < math.inf:
        raise ValueError("needs 0 <= epsilon < inf")


def _delta(k: float, variance: float, epsilon: Any) -> Any:
    """The series, epsilon > -L, from its largest term: that in 60 digits, the rest relative to it.

    Each ratio, product and sum of the rest loses at most a few units of 2^-53, so n terms of them
    8 n; what is beyond the last term is below a geometric series, since the ratio of terms,
    x_1/(h + n + 1) (1 - q^(n+2))/(1 - q^(n+1)), falls and is below x_1/(h + n + 1) (n + 2)/(n + 1).
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

    Q(h, y) - e^eps Q(h, y + L). The densities at y and, e^eps times, y + L are the same f, so with
    r = y / (y + L), in 0..1, and D_j(u) = (1 + u/y)^(a-j) - r^j (1 + u/(y+L))^(a-j), it is

        f integral_0^inf e^-u D_0 = f sum_{j < n} T_j (1 - r^j) + f T_n integral_0^inf e^-u D_n,

    T_j = a (a-1) .. (a-j+1) / y^j, by parts. If n is the integer below a, D_n has negative even
    derivatives and its Gauss-Laguerre sum is above it, by less than 1e-10. Below that n, the last
    integral is at most (1 - r^a) y / (y - a + n), as 1 + u/y <= e^(u/y) and the rest is >= r^a.
    """
    a, slope = half - 1, float(log_ratio)
    whole = math.floor(a)
    last = min(whole, 16 + int(10 * math.sqrt(a)))
    weights = np.cumprod(np.concatenate([[1.0], (a - np.arange(last)) / y]))
    steps = np.arange(1, last)
    if last < whole:
        tail = -math.expm1(-slope * a) * y / (y - a + last)
    else:
        u, mass = _laguerre()
        power = (a - whole) * np.log1p(u * math.expm1(-slope) / (y + u))
        tail = float(mass @ ((1 + u / y) ** (a - whole) * -np.expm1(power - slope * whole)))
    total = float(weights[1:last] @ -np.expm1(-slope * steps)) + float(weights[last]) * tail
    log_density = mp.mpf(a) * mp.log(y) - y - _log_gamma(half, -1)
    return mp.exp(log_density) * mp.mpf(total) * (1 + mp.mpf(last + 1024) * 2**-50)


def _outer_quantile(half: float, rate: float, epsilon: float) -> float:
    """Where the tests balance, y = t - L; inf for more than about 1e12.

    P(h, x) = Q(h, y), x = w - L = L / (e^d - 1), d = log(1 + L/y) + epsilon / (h - 1) by a + b.
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
    return math.exp(brentq(excess, low, low + step, rtol=1e-14))


def _log_tail(half: float, log_x: float, mass: Callable[[float, float], float]) -> float:
    """Far out, where it underflows, to 0.2 %: the density over the slope of its logarithm."""
    x = math.exp(log_x)
    known = mass(half, x)
    if known > 1e-290:
        return math.log(known)
    return half * log_x - x - math.lgamma(half) - math.log(abs(x - half))


@lru_cache(maxsize=1)
def _laguerre() -> tuple[Any, Any]:
    return np.polynomial.laguerre.laggauss(64)


@lru_cache(maxsize=1024)
def _log_gamma(half: float, peak: int) -> Any:
    return mp.loggamma(mp.mpf(half) + peak + 1)
