"""The guarantee of a release: as mu, as epsilon and delta, and as the power of an attack."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from gramercy.mechanisms.accounting.gdp import (
    approximate_delta,
    exact_delta,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    mp,
    mu_from_pure_epsilon,
    subtract_down,
    up,
)
from gramercy.schemas import wordings

_GRID = 1000  # steps of epsilon, for the mu that bounds a whole profile
_ROUNDOFF = 2.0**-52
_MIN_MU = 1e-9  # no release is free
_MAX_PURE = 700.0  # for a larger pure epsilon e^epsilon overflows, and bounds nothing


@dataclass(frozen=True)
class Guarantee:
    """The privacy guarantee of a release, against an attacker with any side information.

    Examples
    --------
    >>> once = Guarantee(mu=0.25)
    >>> round(once.epsilon(1e-6), 3), round(once.power(0.05), 3)
    (1.061, 0.082)
    >>> four_times = Guarantee(mu=0.5)  # squares of mu add up
    >>> round(four_times.epsilon(1e-6), 3)
    2.254
    """

    # Gaussian differential privacy: distinguishing two neighbours is at least as hard as
    # distinguishing N(0, 1) from N(mu, 1)
    mu: float
    delta0: float = 0.0  # probability with which the mu-GDP guarantee may fail
    pure: float = math.inf  # pure epsilon; infinite if only a delta > 0 holds
    # The exact delta at an epsilon, rounded up, if it is smaller than what mu and delta0 imply. It
    # is for this release alone: composition uses the numbers above.
    profile: Callable[[float], float] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.mu >= 0:
            raise wordings.argument_out_of_range("mu", "at least 0")
        if not 0 <= self.delta0 <= 1:
            raise wordings.argument_out_of_range("delta0", "between 0 and 1")
        if not self.pure >= 0:
            raise wordings.argument_out_of_range("pure", "at least 0")

    @classmethod
    def from_pure(cls, epsilon: float) -> Guarantee:
        """Pure epsilon-DP, which is mu-GDP with mu = -2 Phi^-1(1 / (1 + e^epsilon))."""
        return cls(mu_from_pure_epsilon(epsilon), pure=epsilon)

    @classmethod
    def from_profile(cls, profile: Callable[[float], float], target_delta0: float) -> Guarantee:
        """The smallest mu with delta(eps) <= delta_mu(eps) + delta0 for every eps >= 0.

        `profile`: the exact delta at an epsilon, for both orders of the neighbours, rounded up.
        `target_delta0`: the delta0 to aim at; the result has a larger one if the profile never
        falls that low.

        A grid is enough, because delta decreases in epsilon: delta(eps) <= delta(eps_i) for
        eps_i <= eps < eps_(i+1), and delta_mu(eps_(i+1)) is the minimum of delta_mu there.
        """
        end = 1.0
        while profile(end) > target_delta0 and end < 2.0**10:
            end *= 2
        while profile(end / 2) <= target_delta0 and end > 2.0**-20:
            end /= 2
        delta0 = max(target_delta0, profile(end) * (1 + 1e-9))
        grid = [
            end * (i / _GRID) ** 1.5 for i in range(_GRID + 1)
        ]  # finer where the profile is steep
        excess = [max(0.0, profile(e) - delta0) for e in grid]
        if excess[0] >= 1:  # rounded up to 1, which no mu reaches
            delta0, excess = delta0 + _ROUNDOFF, [min(each, 1 - _ROUNDOFF) for each in excess]
        mu = _MIN_MU
        steps = list(zip(grid[1:], excess, strict=False))
        for epsilon, needed in [*steps[::40], *steps]:  # a coarse pass first, for speed
            if approximate_delta(mu, epsilon) > needed * (1 + 1e-6):
                continue
            if exact_delta(mu, epsilon) < needed:
                mu = math.nextafter(gdp_mu(epsilon, needed), math.inf)
            while exact_delta(mu, epsilon) < needed:
                mu = math.nextafter(mu, math.inf)
        return cls(mu, min(1.0, delta0), profile=profile)

    def delta(self, epsilon: float) -> float:
        """The smallest delta known to hold at `epsilon`, rounded up."""
        if epsilon >= self.pure:
            return 0.0
        by_mu = min(1.0, up(mp.mpf(gdp_delta(self.mu, epsilon)) + self.delta0))
        return by_mu if self.profile is None else min(by_mu, self.profile(epsilon))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon known to hold at `delta`, rounded up."""
        by_mu = min(self.pure, gdp_epsilon(self.mu, subtract_down(delta, self.delta0)))
        if self.profile is None:
            return by_mu
        if self.profile(0.0) <= delta:
            return 0.0
        low, high = 0.0, min(by_mu, 1024.0)
        if self.profile(high) > delta:
            return by_mu
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.profile(middle) > delta else (low, middle)
        return high

    def rho(self) -> tuple[float, float]:
        """Rho and failure probability of zero-concentrated DP: D_alpha <= rho alpha for all alpha.

        mu-GDP is post-processing of N(0, 1) against N(mu, 1), whose Rényi divergence is
        alpha mu^2 / 2. If mu may fail, no rho follows in general. A rho follows if there is also a
        pure epsilon: then the failure is an event that is independent of the data
        (`mechanisms.k_norm`). A pure epsilon implies rho <= epsilon^2 / 2 (Bun and Steinke 2016,
        Proposition 1.4).
        """
        mu_implies_rho = self.delta0 == 0 or math.isfinite(self.pure)
        by_mu = up(mp.mpf(self.mu) ** 2 / 2) if mu_implies_rho else math.inf
        by_pure = up(mp.mpf(self.pure) ** 2 / 2)
        return (by_pure, 0.0) if by_pure <= by_mu else (by_mu, self.delta0)

    def power(self, false_positive_rate: float) -> float:
        """Largest true positive rate of an attack at this false positive rate, rounded up.

        It is the smaller of Phi(Phi^-1(false_positive_rate) + mu) + delta0 and the bound by the
        pure epsilon.
        """
        level = mp.mpf(false_positive_rate)
        bounds = [mp.ncdf(mp.sqrt(2) * mp.erfinv(2 * level - 1) + self.mu) + self.delta0]
        if self.pure < _MAX_PURE:
            ratio = mp.exp(self.pure)
            bounds += [ratio * level, 1 - (1 - level) / ratio]
        return min(1.0, up(min(bounds)))
