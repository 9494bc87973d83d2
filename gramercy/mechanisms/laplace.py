"""The Laplace mechanism on the upper triangle of the Gram matrix: pure epsilon, exact arithmetic.

Independent Laplace noise of scale b on every entry of the upper triangle is epsilon-differentially
private with epsilon = Delta_1 / b. The l1 sensitivity Delta_1 of the upper triangle is

* (p + 1) / 2 under add-remove, attained at x = 1/sqrt p;
* at most sqrt((p^2 + 3 p) / 2) under replace-one, p >= 2, by a bound on the spread of eigenvalues
  (Mirsky 1956).

Wang, Huai and Xu (2018) use 2p, up to 2.8 times more. For composition the same noise is also
(sqrt(pi/2) Delta_2 / b)-GDP, Delta_2 = sqrt2 or 1, which is smaller for many columns. The proofs
are in docs/mechanisms/laplace.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.mechanisms.accounting.gdp import UP, mu_from_pure_epsilon, pure_epsilon_from_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import (
    COUNT_WEIGHT,
    Additive,
    PublicParameters,
    squared_sensitivity,
    symmetric_matrix,
)
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request_parts import PureSpec


class LaplaceSpec(PureSpec):
    """``laplace``: pure epsilon, in exact arithmetic."""

    name: Literal["laplace"] = "laplace"


@dataclass(frozen=True)
class Laplace(Additive):
    """Laplace noise on the Gram matrix.

    `scale`: b, the mean absolute value of the noise on an entry, for rows of the unit ball.
    """

    name: ClassVar[str] = "laplace"
    spec: ClassVar[type[PureSpec]] = LaplaceSpec

    @classmethod
    def _exact(cls, spec: PureSpec, parameters: PublicParameters) -> Self:
        """Delta_1 / epsilon; for a given mu, the smaller of the two scales that have it."""
        if spec.epsilon is not None:
            return cls(parameters, UP**2 * l1_sensitivity(parameters) / spec.epsilon)
        mu = spec.mu or math.nan
        by_epsilon = l1_sensitivity(parameters) / pure_epsilon_from_mu(mu)
        return cls(parameters, UP**2 * min(by_epsilon, _mu_at_unit_scale(parameters) / mu))

    @classmethod
    def _published(cls, spec: PureSpec, parameters: PublicParameters) -> Self:
        """2p / epsilon: Wang, Huai and Xu (2018)."""
        return cls(parameters, 2 * parameters.p / (spec.epsilon or math.nan))

    @property
    def sd_diagonal(self) -> float:
        return math.sqrt(2) * self.scale

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon = Delta_1 / b; mu from it, or sqrt(pi/2) Delta_2 / b if smaller."""
        pure = UP * l1_sensitivity(self.parameters) / self.scale
        by_score = UP * _mu_at_unit_scale(self.parameters) / self.scale
        return Guarantee(min(mu_from_pure_epsilon(pure), by_score), pure=pure)

    @property
    def law(self) -> NoiseLaw:
        sd = self.sd_diagonal * self.lattice.squared_radius / self.lattice.divisor
        return NoiseLaw(family="laplace", sd_diagonal=sd, sd_off_diagonal=sd)

    @property
    def sensitivity(self) -> float:
        return l1_sensitivity(self.parameters)

    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        p, scale = self.parameters.p, self.scale * self.lattice.squared_radius
        upper = sampler.rounded_laplace(scale, p * (p - 1) // 2)
        noise = symmetric_matrix(upper, sampler.rounded_laplace(scale, p))
        if not self.parameters.publishes_noisy_count:
            return noise, None
        return noise, int(sampler.rounded_laplace(self.scale / COUNT_WEIGHT, 1)[0])


def l1_sensitivity(parameters: PublicParameters) -> float:
    """Delta_1 of the upper triangle of the Gram matrix of rows in the unit ball."""
    p = parameters.p
    if parameters.neighbours.changed_units == 2:
        return math.sqrt((p * p + 3 * p) / 2) if p > 1 else 1.0
    return (p + 1) / 2 + (COUNT_WEIGHT if parameters.publishes_noisy_count else 0.0)


def _mu_at_unit_scale(parameters: PublicParameters) -> float:
    return math.sqrt(math.pi / 2 * squared_sensitivity(parameters))
