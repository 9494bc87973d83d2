"""The Laplace mechanism on the upper triangle of the Gram matrix: pure epsilon, exact arithmetic.

Independent Laplace noise of scale b on every entry of the upper triangle is epsilon-differentially
private with epsilon = Delta_1 / b. Entrywise, over the upper triangle:

* add-remove: (|x|_1^2 + |x|_2^2) / 2 <= (p + 1) / 2, attained at x = 1/sqrt p;
* replace-one: it is the largest <B, x x^T - y y^T> over symmetric B with B_ii = +-1, B_ij = +-1/2.
  x x^T - y y^T has one eigenvalue in [0, 1], one in [-1, 0], and zeros, so that this is at most the
  largest eigenvalue of B less its smallest, or either alone: at most sqrt2 ||B||_F (Mirsky 1956) =
  sqrt(2 p + p (p - 1) / 2) = sqrt((p^2 + 3 p) / 2), for p >= 2.

Wang, Huai and Xu (2018) take 2p, up to 2.8 times more. For composition the same noise is also at
most sqrt(pi/2) Delta_2 / b Gaussian-DP, Delta_2 = sqrt2 or 1, which is less for many columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.mechanisms.accounting.directed_rounding import UP
from gramercy.mechanisms.accounting.gdp import gdp_pure, pure_gdp
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.additive import COUNT_WEIGHT, Additive, squared_sensitivity, symmetric
from gramercy.mechanisms.mechanism import Setting
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.specs import PureSpec


class LaplaceSpec(PureSpec):
    """``laplace``: pure epsilon, in exact arithmetic."""

    name: Literal["laplace"] = "laplace"


@dataclass(frozen=True)
class Laplace(Additive):
    """Laplace noise on the Gram matrix.

    Parameters
    ----------
    setting
        Public facts of the table.
    scale
        b, the mean absolute value of the noise on an entry of the Gram matrix of unit-ball rows.
    """

    name: ClassVar[str] = "laplace"
    spec: ClassVar[type[PureSpec]] = LaplaceSpec

    @classmethod
    def _exact(cls, spec: PureSpec, setting: Setting) -> Self:
        """Delta_1 / epsilon; from mu, the smaller of the two scales that have it."""
        if spec.epsilon is not None:
            return cls(setting, UP**2 * l1_sensitivity(setting) / spec.epsilon)
        mu = spec.mu or math.nan
        by_pure = l1_sensitivity(setting) / gdp_pure(mu)
        return cls(setting, UP**2 * min(by_pure, _gdp_at_unit_scale(setting) / mu))

    @classmethod
    def _published(cls, spec: PureSpec, setting: Setting) -> Self:
        """2p / epsilon: Wang, Huai and Xu (2018)."""
        return cls(setting, 2 * setting.p / (spec.epsilon or math.nan))

    @property
    def sd_diagonal(self) -> float:
        """See `Additive.sd_diagonal`."""
        return math.sqrt(2) * self.scale

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon = Delta_1 / b; mu from that or sqrt(pi/2) Delta_2 / b, the smaller."""
        pure = UP * l1_sensitivity(self.setting) / self.scale
        by_gdp = UP * _gdp_at_unit_scale(self.setting) / self.scale
        return Guarantee(min(pure_gdp(pure), by_gdp), pure=pure)

    @property
    def law(self) -> NoiseLaw:
        """See `Mechanism.law`."""
        sd = self.sd_diagonal * self.lattice.ball / self.lattice.divisor
        return NoiseLaw(family="laplace", sd_diagonal=sd, sd_off_diagonal=sd)

    @property
    def sensitivity(self) -> float:
        """See `Additive.sensitivity`."""
        return l1_sensitivity(self.setting)

    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        p, scale = self.setting.p, self.scale * self.lattice.ball
        upper = sampler.rounded_laplace(scale, p * (p - 1) // 2)
        noise = symmetric(upper, sampler.rounded_laplace(scale, p))
        if not self.setting.counted:
            return noise, None
        return noise, int(sampler.rounded_laplace(self.scale / COUNT_WEIGHT, 1)[0])


def l1_sensitivity(setting: Setting) -> float:
    """Delta_1 of the upper triangle of the Gram matrix of rows in the unit ball."""
    p = setting.p
    if setting.neighbours == "replace-one":
        return math.sqrt((p * p + 3 * p) / 2) if p > 1 else 1.0
    return (p + 1) / 2 + (COUNT_WEIGHT if setting.counted else 0.0)


def _gdp_at_unit_scale(setting: Setting) -> float:
    return math.sqrt(math.pi / 2 * squared_sensitivity(setting))
