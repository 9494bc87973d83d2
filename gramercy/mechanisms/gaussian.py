"""The isotropic Gaussian mechanism: white noise in svec coordinates of the Gram matrix.

It publishes G + E with E symmetric, E_ii ~ N(0, s^2) and E_ij ~ N(0, s^2/2), independent for
i <= j. In coordinates svec(A) = (A_ii ..., sqrt2 A_ij ...) the noise is N(0, s^2 I), and
||svec(A)||_2 = ||A||_F. So the mechanism is exactly mu-GDP with mu = Delta_F / s.

Independent noise of equal scale on the upper triangle, as published, has the same guarantee and
sqrt2 times the noise on every off-diagonal entry: see `mechanisms.gaussian`. The proof is in
docs/mechanisms/gaussian.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from gramercy.mechanisms.accounting.gdp import gaussian_mu, gaussian_scale, gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import (
    COUNT_WEIGHT,
    Additive,
    PublicParameters,
    off_diagonal_scale,
    squared_sensitivity,
    symmetric_matrix,
)
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas import families
from gramercy.schemas.noise import Family, NoiseLaw
from gramercy.schemas.request_parts import MechanismSpec


class GaussianSpec(MechanismSpec):
    """``gaussian``: the default; the least noise for more than a few columns."""

    name: Literal["gaussian"] = "gaussian"


@dataclass(frozen=True)
class Gaussian(Additive):
    """Isotropic Gaussian noise on the Gram matrix.

    `scale`: s, the standard deviation of the noise on a diagonal entry, for rows of the unit ball.
    """

    name: ClassVar[str] = "gaussian"
    spec: ClassVar[type[MechanismSpec]] = GaussianSpec
    family: ClassVar[Family] = "gaussian-isotropic"
    takes_pilot: ClassVar[bool] = True
    closed_under_sums: ClassVar[bool] = True
    takes_series: ClassVar[bool] = True

    @classmethod
    def _exact(cls, spec: MechanismSpec, parameters: PublicParameters) -> Self:
        """The analytic Gaussian mechanism: Balle and Wang (2018), Theorem 8; rounded up."""
        return cls(parameters, gaussian_scale(squared_sensitivity(parameters), target_mu(spec)))

    @classmethod
    def _published(cls, spec: MechanismSpec, parameters: PublicParameters) -> Self:
        """The classical scale: Dwork and Roth (2014), Theorem A.1; proven for epsilon < 1 only."""
        return cls(parameters, classical_scale(spec, math.sqrt(squared_sensitivity(parameters))))

    @property
    def sd_diagonal(self) -> float:
        return self.scale

    @property
    def guarantee(self) -> Guarantee:
        """Mu = Delta_F / s."""
        return self.guarantee_of_draws(())

    def guarantee_of_draws(self, draws: Sequence[int]) -> Guarantee:
        """The exact guarantee of all steps of a series, drawn so often; empty for once each."""
        return Guarantee(gaussian_mu(squared_sensitivity(self.parameters, draws), self.scale))

    @property
    def law(self) -> NoiseLaw:
        diagonal, off_diagonal = self._scales()
        divisor = self.lattice.divisor * self.parameters.weight_unit / self.parameters.spread
        return NoiseLaw(
            family=self.family,
            sd_diagonal=diagonal / divisor,
            sd_off_diagonal=off_diagonal / divisor,
        )

    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        p = self.parameters.p
        diagonal, off_diagonal = self._scales()
        upper = sampler.rounded_gaussian(off_diagonal, p * (p - 1) // 2)
        noise = symmetric_matrix(upper, sampler.rounded_gaussian(diagonal, p))
        if not self.parameters.publishes_noisy_count:
            return noise, None
        scale = self.scale * self.parameters.weight_unit / COUNT_WEIGHT
        return noise, int(sampler.rounded_gaussian(scale, 1)[0])

    def _scales(self) -> tuple[float, float]:
        """Diagonal and off-diagonal scale in the units of the published sum."""
        diagonal = self._scale
        return diagonal, off_diagonal_scale(diagonal)

    @property
    def _scale(self) -> float:
        return self.scale * self.lattice.squared_radius * self.parameters.weight_unit


def target_mu(spec: MechanismSpec) -> float:
    """The mu that a request asks for, rounded down."""
    if spec.mu is not None:
        return spec.mu
    return gdp_mu(spec.epsilon or 0.0, spec.delta)


def classical_scale(spec: MechanismSpec, sensitivity: float) -> float:
    """Delta sqrt(2 ln(1.25 / delta)) / epsilon: Dwork and Roth (2014), Theorem A.1."""
    return sensitivity * math.sqrt(2 * math.log(1.25 / spec.delta)) / (spec.epsilon or math.nan)


class GaussianIidSpec(MechanismSpec):
    """``gaussian-iid``: the Gaussian mechanism as published, for comparison.

    Parameters
    ----------
    paper
        Paper whose scale ``calibration: published`` uses; the default is SGZ. SGZ and LW use the
        sensitivity sqrt2; WX (and WHX) use 1, which is too small by sqrt2 under replace-one.
    """

    name: Literal["gaussian-iid"] = "gaussian-iid"
    paper: Literal["SGZ", "WX", "LW"] | None = None

    @model_validator(mode="after")
    def _paper_needs_published(self) -> Self:
        if self.paper is not None and self.calibration != "published":
            raise families.REQUEST_KEYS(
                "'paper' needs 'calibration: published'.",
            )
        return self


@dataclass(frozen=True)
class GaussianIid(Gaussian):
    """Independent Gaussian noise of equal scale; see `Gaussian`."""

    name: ClassVar[str] = "gaussian-iid"
    spec: ClassVar[type[MechanismSpec]] = GaussianIidSpec
    family: ClassVar[Family] = "gaussian-iid"
    takes_pilot: ClassVar[bool] = False

    @classmethod
    def _published(cls, spec: GaussianIidSpec, parameters: PublicParameters) -> Self:  # type: ignore[override]
        """Delta sqrt(2 ln(1.25 / delta)) / epsilon, with Delta = 1 for WX, else sqrt2."""
        return cls(parameters, classical_scale(spec, 1.0 if spec.paper == "WX" else math.sqrt(2)))

    def _scales(self) -> tuple[float, float]:
        return self._scale, self._scale
