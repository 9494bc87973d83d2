"""The Frobenius K-norm mechanism: pure epsilon, with noise that knows no direction.

Noise on svec(G) with density proportional to exp(-epsilon ||v||_2 / Delta_F): a uniform direction,
and a length Gamma(D, Delta_F / epsilon), D = p (p + 1) / 2 (Hardt and Talwar 2010; Awan and
Slavkovic 2021). A change of G by at most Delta_F changes the density by a factor of at most
e^epsilon, which is attained along the change.

The same noise is N(0, W I) with W ~ Gamma((D + 1) / 2, 2 Delta_F^2 / epsilon^2), drawn
independently of the data. Given W it is Delta_F / sqrt(W) Gaussian-DP, so that with w0 fixed in
advance the mechanism is (Delta_F / sqrt(w0))-GDP but for the event W < w0: for many columns far
less than what the pure epsilon tells, and what composition charges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from gramercy.mechanisms.accounting.directed_rounding import UP
from gramercy.mechanisms.accounting.gdp import gdp_pure, pure_gdp
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.additive import COUNT_WEIGHT, Additive, squared_sensitivity, symmetric
from gramercy.mechanisms.mechanism import Arithmetic, Setting
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.specs import PureSpec

_FAILURE = 1e-12  # P[W < w0] where no budget sets a delta0 aside
_WIDE = 1 + 2.0**-30  # far more than what scipy's inverse may be off


class KNormSpec(PureSpec):
    """``k-norm``: pure epsilon, and little mu, so that many releases fit a budget."""

    name: Literal["k-norm"] = "k-norm"


@dataclass(frozen=True)
class KNorm(Additive):
    """Frobenius K-norm noise on the Gram matrix.

    Parameters
    ----------
    setting
        Public facts of the table.
    scale
        Delta_F / epsilon.
    """

    name: ClassVar[str] = "k-norm"
    spec: ClassVar[type[PureSpec]] = KNormSpec
    arithmetic: ClassVar[Arithmetic] = "floating-point"

    @classmethod
    def _exact(cls, spec: PureSpec, setting: Setting) -> Self:
        """Delta_F / epsilon; from mu, the larger epsilon that has it."""
        epsilon = spec.epsilon
        if epsilon is None:
            mu = spec.mu or math.nan
            epsilon = max(gdp_pure(mu), mu / (_gdp_at_epsilon_one(setting) * _WIDE * UP**4))
        return cls(setting, UP**2 * math.sqrt(squared_sensitivity(setting)) / epsilon)

    @classmethod
    def _published(cls, spec: PureSpec, setting: Setting) -> Self:
        """The same: this mechanism was published with its exact scale."""
        return cls._exact(spec, setting)

    @property
    def dimension(self) -> int:
        """D, the number of coordinates; a noisy count is one more."""
        p = self.setting.p
        return p * (p + 1) // 2 + int(self.setting.counted)

    @property
    def sd_diagonal(self) -> float:
        """See `Additive.sd_diagonal`: E ||v||^2 = D (D + 1) scale^2, shared alike by D."""
        return self.scale * math.sqrt(self.dimension + 1)

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon = Delta_F / scale, and what W tells, where that is less."""
        pure = UP * math.sqrt(squared_sensitivity(self.setting)) / self.scale
        by_pure, by_width = pure_gdp(pure), pure * _gdp_at_epsilon_one(self.setting) * _WIDE
        if by_pure <= by_width:
            return Guarantee(by_pure, pure=pure)
        return Guarantee(by_width, _failure(self.setting), pure)

    @property
    def law(self) -> NoiseLaw:
        """See `Mechanism.law`."""
        sd = self.sd_diagonal * self.lattice.ball / self.lattice.divisor
        return NoiseLaw(family="k-norm", sd_diagonal=sd, sd_off_diagonal=sd / math.sqrt(2))

    @property
    def sensitivity(self) -> float:
        """See `Additive.sensitivity`."""
        return math.sqrt(squared_sensitivity(self.setting))

    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        p = self.setting.p
        direction = sampler.gaussian(self.dimension)
        length = float(sampler.gamma(float(self.dimension), 1)[0]) * self.scale
        svec = direction * (length / np.linalg.norm(direction))
        entries = svec[p : p * (p + 1) // 2] / math.sqrt(2)
        # The Gram matrix is whole, so that rounding the noise is rounding the sum.
        noise = np.rint(symmetric(entries, svec[:p]) * self.lattice.ball).astype(np.int64)
        return noise, round(svec[-1] / COUNT_WEIGHT) if self.setting.counted else None


def _gdp_at_epsilon_one(setting: Setting) -> float:
    """Delta_F / sqrt(w0) for epsilon = 1, off by a factor of at most `_WIDE`."""
    dimension = setting.p * (setting.p + 1) // 2 + int(setting.counted)
    return 1 / math.sqrt(2 * float(gammaincinv((dimension + 1) / 2, _failure(setting))))


def _failure(setting: Setting) -> float:
    return setting.failure or _FAILURE
