"""The least Wishart noise with a guarantee: its variance, and its degrees of freedom."""

from __future__ import annotations

import math

from scipy.optimize import brentq, minimize_scalar

from gramercy.mechanisms.accounting.wishart_profile import profile, two_steps
from gramercy.schemas.contract import Neighbours

LARGEST_SHAPE = 1e6  # the noise is then within 1 % of its limit, a Gaussian's


def smallest_variance(k: float, epsilon: float, delta: float, neighbours: Neighbours) -> float:
    """The least s^2 with delta(epsilon) <= delta, rounded up.

    The root of a function that falls in s^2, moved up until the rounded-up delta is small enough:
    for delta up to 1/2, within 1e-10 of the exact root.

    Parameters
    ----------
    k, epsilon
        As in `profile`.
    delta
        Between 0 and 1; at least 1e-200.
    neighbours
        ``add-remove`` for `profile`, ``replace-one`` for `two_steps`.

    Raises
    ------
    ValueError
        Outside these ranges, or if the answer would be below 1e-6.
    """
    if not 1e-200 <= delta < 1:
        raise ValueError("needs 1e-200 <= delta < 1")
    known = two_steps if neighbours == "replace-one" else profile
    high = 1.0
    while known(k, high, epsilon) > delta:
        high *= 4
    low = high / 4
    while known(k, low, epsilon) <= delta:
        low, high = low / 4, low

    def excess(log_variance: float) -> float:
        return math.log(known(k, math.exp(log_variance), epsilon) / delta)

    # A little further apart: the signs must not hang on the rounding of exp and log.
    found = math.exp(brentq(excess, math.log(low) - 1e-9, math.log(high) + 1e-9, xtol=1e-15))
    step = 2.0**-50
    while known(k, found, epsilon) > delta:
        found, step = found * (1 + step), 2 * step
    return found


def best_shape(
    p: int, epsilon: float, delta: float, neighbours: Neighbours, kept: bool = False
) -> tuple[float, float]:
    """The k in [2, 1e6] with the least noise at a guarantee, and its variance.

    The error is the root mean square of what is added, in Frobenius norm: proportional to
    ``sqrt(m) s^2``, as is the standard deviation off the diagonal, when the mean m s^2 I is
    removed; to ``sqrt(m (m + p + 1)) s^2`` when it is `kept`; m = k + p - 1. Brent's search on
    log k, and the two ends. Removed, k is in the thousands or above, where the law is close to a
    Gaussian's: added or removed, the error fell in k for every guarantee tried, and the answer is
    1e6; replaced, it may be least before. Kept, k is of the order of p + 100.

    Parameters
    ----------
    p, kept
        The columns, and whether the noise keeps its mean.
    epsilon, delta, neighbours
        As in `smallest_variance`.

    Returns
    -------
    tuple[float, float]
        k and s^2.
    """

    def tried(k: float) -> tuple[float, float, float]:
        variance = smallest_variance(k, epsilon, delta, neighbours)
        m = k + p - 1
        return variance * math.sqrt(m * (m + p + 1) if kept else m), k, variance

    def at(log_k: float) -> tuple[float, float, float]:  # few bits: m - p + 1 returns k exactly
        return tried(max(2.0, round(64 * math.exp(log_k)) / 64))

    ends = math.log(2), math.log(LARGEST_SHAPE)
    found = minimize_scalar(
        lambda log_k: at(log_k)[0], bounds=ends, method="bounded", options={"xatol": 1e-3}
    )
    return min(at(float(found.x)), tried(2.0), tried(LARGEST_SHAPE))[1:]
