"""The Frobenius K-norm mechanism: pure epsilon, with noise in a uniform direction.

The noise on svec(G) has a density proportional to exp(-epsilon ||v||_2 / Delta_F): a uniform
direction, and a length Gamma(D, Delta_F / epsilon), D = p (p + 1) / 2 (Hardt and Talwar 2010; Awan
and Slavkovic 2021). A change of G by at most Delta_F changes the density by a factor of at most
e^epsilon, attained along the change.

The same noise is N(0, W I) with W ~ Gamma((D + 1) / 2, 2 Delta_F^2 / epsilon^2), drawn
independently of the data. Given W it is (Delta_F / sqrt(W))-GDP. So for a w0 fixed in advance the
mechanism is (Delta_F / sqrt(w0))-GDP, except with probability P[W < w0]. For many columns this mu
is far smaller than the one that follows from the pure epsilon, and composition charges it. The
proof is in docs/mechanisms/k-norm.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from gramercy.mechanisms.accounting.gdp import UP, mu_from_pure_epsilon, pure_epsilon_from_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import (
    COUNT_WEIGHT,
    Additive,
    Arithmetic,
    PublicParameters,
    squared_sensitivity,
    symmetric_matrix,
)
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request_parts import PureSpec

_DEFAULT_DELTA0 = 1e-12  # P[W < w0], for parameters without a failure share
_MARGIN = 1 + 2.0**-30  # far more than the relative error of scipy's inverse


class KNormSpec(PureSpec):
    """``k-norm``: pure epsilon with a small mu, so that many releases fit a budget."""

    name: Literal["k-norm"] = "k-norm"


@dataclass(frozen=True)
class KNorm(Additive):
    """Frobenius K-norm noise on the Gram matrix.

    `scale`: Delta_F / epsilon.
    """

    name: ClassVar[str] = "k-norm"
    spec: ClassVar[type[PureSpec]] = KNormSpec
    arithmetic: ClassVar[Arithmetic] = "floating-point"

    @classmethod
    def _exact(cls, spec: PureSpec, parameters: PublicParameters) -> Self:
        """Delta_F / epsilon; for a given mu, the larger of the two epsilons that have it."""
        epsilon = spec.epsilon
        if epsilon is None:
            mu = spec.mu or math.nan
            by_variance = mu / (_mu_at_epsilon_one(parameters) * _MARGIN * UP**4)
            epsilon = max(pure_epsilon_from_mu(mu), by_variance)
        return cls(parameters, UP**2 * math.sqrt(squared_sensitivity(parameters)) / epsilon)

    @classmethod
    def _published(cls, spec: PureSpec, parameters: PublicParameters) -> Self:
        """The exact scale, which is the published one."""
        return cls._exact(spec, parameters)

    @property
    def dimension(self) -> int:
        """D, the number of coordinates, including a noisy count."""
        return _dimension(self.parameters)

    @property
    def sd_diagonal(self) -> float:
        """E ||v||^2 = D (D + 1) scale^2 over D equal coordinates."""
        return self.scale * math.sqrt(self.dimension + 1)

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon = Delta_F / scale; mu from the epsilon, or from the variance if smaller."""
        pure = UP * math.sqrt(squared_sensitivity(self.parameters)) / self.scale
        by_epsilon = mu_from_pure_epsilon(pure)
        by_variance = pure * _mu_at_epsilon_one(self.parameters) * _MARGIN
        if by_epsilon <= by_variance:
            return Guarantee(by_epsilon, pure=pure)
        return Guarantee(by_variance, _delta0(self.parameters), pure)

    @property
    def law(self) -> NoiseLaw:
        sd = self.sd_diagonal * self.lattice.squared_radius / self.lattice.divisor
        return NoiseLaw(family="k-norm", sd_diagonal=sd, sd_off_diagonal=sd / math.sqrt(2))

    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        p = self.parameters.p
        direction = sampler.gaussian(self.dimension)
        length = float(sampler.gamma(float(self.dimension), 1)[0]) * self.scale
        svec = direction * (length / np.linalg.norm(direction))
        entries = svec[p : p * (p + 1) // 2] / math.sqrt(2)
        # The Gram matrix has integer entries, so rounding the noise equals rounding the sum.
        matrix = np.rint(symmetric_matrix(entries, svec[:p]) * self.lattice.squared_radius)
        count = round(svec[-1] / COUNT_WEIGHT) if self.parameters.publishes_noisy_count else None
        return matrix.astype(np.int64), count


def _dimension(parameters: PublicParameters) -> int:
    return parameters.p * (parameters.p + 1) // 2 + int(parameters.publishes_noisy_count)


def _mu_at_epsilon_one(parameters: PublicParameters) -> float:
    """Delta_F / sqrt(w0) for epsilon = 1, within a factor `_MARGIN`."""
    shape = (_dimension(parameters) + 1) / 2
    return 1 / math.sqrt(2 * float(gammaincinv(shape, _delta0(parameters))))


def _delta0(parameters: PublicParameters) -> float:
    return parameters.target_delta0 or _DEFAULT_DELTA0
