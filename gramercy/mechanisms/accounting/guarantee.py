"""What a release guarantees: as mu, as epsilon and delta, and as the power of an attacker."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from gramercy.mechanisms.accounting.directed_rounding import less, mp, up
from gramercy.mechanisms.accounting.gdp import (
    exact_delta,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    pure_gdp,
    quick_delta,
)

_GRID = 1000  # steps of epsilon, for the mu that holds a whole profile
_ROUNDED = 2.0**-52
_LEAST_MU = 1e-9  # no release is free
_MOST_PURE = 700.0  # beyond it a pure epsilon says nothing that a double could show


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
            if quick_delta(mu, after) > needed * (1 + 1e-6):
                continue
            if exact_delta(mu, after) < needed:
                mu = math.nextafter(gdp_mu(after, needed), math.inf)
            while exact_delta(mu, after) < needed:
                mu = math.nextafter(mu, math.inf)
        return cls(mu, min(1.0, delta0), profile=profile)

    def delta(self, epsilon: float) -> float:
        """The smallest delta known to hold at `epsilon`, rounded up."""
        if epsilon >= self.pure:
            return 0.0
        known = min(1.0, up(mp.mpf(gdp_delta(self.mu, epsilon)) + self.delta0))
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
        by_gdp = up(mp.mpf(self.mu) ** 2 / 2) if named else math.inf
        by_pure = up(mp.mpf(self.pure) ** 2 / 2)
        return (by_pure, 0.0) if by_pure <= by_gdp else (by_gdp, self.delta0)

    def power(self, alarms: float) -> float:
        """How often the best attacker finds a row, whose false alarms have this probability.

        Phi(Phi^-1(alarms) + mu) + delta0, or by the pure epsilon, whichever is less.
        """
        level = mp.mpf(alarms)
        bounds = [mp.ncdf(mp.sqrt(2) * mp.erfinv(2 * level - 1) + self.mu) + self.delta0]
        if self.pure < _MOST_PURE:
            grows = mp.exp(self.pure)
            bounds += [grows * level, 1 - (1 - level) / grows]
        return min(1.0, up(min(bounds)))
