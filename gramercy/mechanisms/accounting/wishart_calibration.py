"""Calibration of Wishart noise: the variance and degrees of freedom with the least error."""

from __future__ import annotations

import math
from functools import lru_cache

import scipy

from gramercy.mechanisms.accounting.wishart_profile import (
    add_remove_profile,
    replace_one_bound,
)
from gramercy.schemas import wordings
from gramercy.schemas.contract import Neighbours

MAX_SHAPE = 1e6  # at this k the noise is within 1 % of its Gaussian limit


def smallest_variance(k: float, epsilon: float, delta: float, neighbours: Neighbours) -> float:
    """The smallest s^2 with delta(epsilon) <= delta, rounded up.

    delta decreases in s^2. Its root is rounded up until the rounded-up delta is small enough; for
    delta up to 1/2 the result is within 1e-10 of the exact root.

    Parameters
    ----------
    k, epsilon
        As in `add_remove_profile`.
    delta
        From 1e-200 to 1, exclusive.
    neighbours
        ``add-remove`` for `add_remove_profile`, ``replace-one`` for `replace_one_bound`.

    Raises
    ------
    InvalidValue
        Outside these ranges, or if the result would be below 1e-6.
    """
    if not 1e-200 <= delta < 1:
        raise wordings.argument_out_of_range("delta", "at least 1e-200 and less than 1")
    profile = replace_one_bound if neighbours == "replace-one" else add_remove_profile
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

    Parameters
    ----------
    p, keeps_mean
        Number of columns, and whether the noise keeps its mean.
    epsilon, delta, neighbours
        As in `smallest_variance`.

    Returns
    -------
    tuple[float, float]
        k and s^2.
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
