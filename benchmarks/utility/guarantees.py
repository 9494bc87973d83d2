"""One privacy guarantee in the parameters of the compared methods: mu, rho, epsilon.

Neighbouring tables differ by the replacement of one row in the unit ball; n is public.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from scipy.optimize import minimize_scalar

from gramercy.mechanisms.accounting.gdp import gdp_mu

DELTA = 1e-6
Kind = Literal["approx", "zcdp", "pure"]
GRID: dict[Kind, tuple[float, ...]] = {
    "approx": (0.1, 0.2, 0.5, 1.0, 2.0, 4.0),
    "zcdp": (0.01, 0.1, 1.0),
    "pure": (0.1, 0.2, 0.5, 1.0, 2.0, 4.0),
}
TITLES: dict[Kind, str] = {
    "approx": f"(epsilon, delta = {DELTA:g})",
    "zcdp": "rho-zCDP",
    "pure": "pure epsilon",
}


@dataclass(frozen=True)
class Privacy:
    """The privacy guarantee that every method has to satisfy.

    Parameters
    ----------
    kind
        ``approx``: (epsilon, 1e-6); ``zcdp``: rho; ``pure``: epsilon.
    value
        Epsilon or rho.
    """

    kind: Kind
    value: float

    @property
    def epsilon(self) -> float:
        """Epsilon, where the guarantee has one."""
        if self.kind == "zcdp":
            raise ValueError("zCDP has no epsilon")
        return self.value

    @cached_property
    def mu(self) -> float:
        """The largest mu of Gaussian noise with this guarantee: exact, for both kinds."""
        if self.kind == "pure":
            raise ValueError("Gaussian noise does not have a pure epsilon guarantee")
        return gdp_mu(self.value, DELTA) if self.kind == "approx" else math.sqrt(2 * self.value)

    @cached_property
    def rho(self) -> float:
        """The largest rho for which rho-zCDP implies this guarantee, by the optimal conversion."""
        if self.kind == "zcdp":
            return self.value
        return largest(lambda rho: zcdp_delta(rho, self.epsilon) <= DELTA)

    def rho_by_gdp(self, mu: Callable[[float], float]) -> float:
        """The largest rho at which a mu(rho)-GDP and rho-zCDP mechanism has this guarantee.

        The mechanism may be accounted for in either way; the better one is used.
        """
        if self.kind == "zcdp":
            return self.value
        return max(self.rho, largest(lambda rho: mu(rho) <= self.mu))


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The smallest known delta of rho-zCDP at `epsilon`.

    Infimum over a > 1 of exp((a - 1)(a rho - epsilon)) / (a - 1) (1 - 1/a)^a: Canonne, Kamath
    and Steinke (2020), Corollary 13.
    """

    def log_delta(log_order: float) -> float:
        less = math.exp(log_order)
        a = 1 + less
        return less * (a * rho - epsilon) - log_order + a * math.log1p(-1 / a)

    result = minimize_scalar(log_delta, bounds=(-5, 12), method="bounded", options={"xatol": 1e-9})
    return math.exp(min(0.0, float(result.fun)))


def largest(fits: Callable[[float], bool]) -> float:
    """The largest positive number for which `fits`, a decreasing condition, is true; bisection."""
    low, high = 0.0, 1.0
    while fits(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
