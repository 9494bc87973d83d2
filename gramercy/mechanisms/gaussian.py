"""The isotropic Gaussian mechanism: white noise in svec coordinates of the Gram matrix.

G + E with E symmetric, E_ii ~ N(0, s^2) and E_ij ~ N(0, s^2/2), all independent for i <= j. With
svec(A) = (A_ii ..., sqrt2 A_ij ...) the noise is N(0, s^2 I) and ||svec(A)||_2 = ||A||_F, so the
mechanism is exactly mu-GDP with mu = Delta_F / s. Independent noise of one scale on the upper
triangle, as published, has the same guarantee and sqrt2 times the noise on every off-diagonal
entry: see `mechanisms.gaussian_iid`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.mechanisms.accounting.gdp import gaussian_mu, gdp_mu, noise_scale
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.additive import (
    COUNT_WEIGHT,
    Additive,
    half,
    squared_sensitivity,
    symmetric,
)
from gramercy.mechanisms.mechanism import Setting
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.noise import Family, NoiseLaw
from gramercy.schemas.specs import MechanismSpec


class GaussianSpec(MechanismSpec):
    """``gaussian``: the default; the least noise for more than a few columns."""

    name: Literal["gaussian"] = "gaussian"


@dataclass(frozen=True)
class Gaussian(Additive):
    """Isotropic Gaussian noise on the Gram matrix.

    Parameters
    ----------
    setting
        Public facts of the table.
    scale
        s, the standard deviation on a diagonal entry of the Gram matrix of unit-ball rows.
    """

    name: ClassVar[str] = "gaussian"
    spec: ClassVar[type[MechanismSpec]] = GaussianSpec
    family: ClassVar[Family] = "gaussian-isotropic"

    @classmethod
    def _exact(cls, spec: MechanismSpec, setting: Setting) -> Self:
        """Balle and Wang (2018) inverted exactly, rounded up."""
        return cls(setting, noise_scale(squared_sensitivity(setting), target_mu(spec)))

    @classmethod
    def _published(cls, spec: MechanismSpec, setting: Setting) -> Self:
        """The classical scale of Dwork and Roth (2014), Theorem A.1; proven for epsilon < 1."""
        return cls(setting, classical(spec, math.sqrt(squared_sensitivity(setting))))

    @property
    def sd_diagonal(self) -> float:
        """See `Additive.sd_diagonal`."""
        return self.scale

    @property
    def guarantee(self) -> Guarantee:
        """Mu = Delta_F / s."""
        return Guarantee(gaussian_mu(squared_sensitivity(self.setting), self.scale))

    @property
    def law(self) -> NoiseLaw:
        """See `Mechanism.law`."""
        diagonal, off_diagonal = self._scales()
        divisor = self.lattice.divisor
        return NoiseLaw(
            family=self.family,
            sd_diagonal=diagonal / divisor,
            sd_off_diagonal=off_diagonal / divisor,
        )

    @property
    def sensitivity(self) -> float:
        """See `Additive.sensitivity`."""
        return math.sqrt(squared_sensitivity(self.setting))

    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        p = self.setting.p
        diagonal, off_diagonal = self._scales()
        upper = sampler.rounded_gaussian(off_diagonal, p * (p - 1) // 2)
        noise = symmetric(upper, sampler.rounded_gaussian(diagonal, p))
        if not self.setting.counted:
            return noise, None
        return noise, int(sampler.rounded_gaussian(self.scale / COUNT_WEIGHT, 1)[0])

    def _scales(self) -> tuple[float, float]:
        """Diagonal and off-diagonal scale in lattice units."""
        diagonal = self.scale * self.lattice.ball
        return diagonal, half(diagonal)


def target_mu(spec: MechanismSpec) -> float:
    """The mu that a request asks for, rounded down."""
    if spec.mu is not None:
        return spec.mu
    return gdp_mu(spec.epsilon or 0.0, spec.delta)


def classical(spec: MechanismSpec, sensitivity: float) -> float:
    """Delta sqrt(2 ln(1.25 / delta)) / epsilon, of Dwork and Roth (2014)."""
    return sensitivity * math.sqrt(2 * math.log(1.25 / spec.delta)) / (spec.epsilon or math.nan)
