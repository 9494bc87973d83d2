"""Conversion of zero-concentrated differential privacy (zCDP) to (epsilon, delta)."""

from __future__ import annotations

import math

import scipy

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
