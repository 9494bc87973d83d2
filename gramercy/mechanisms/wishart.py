"""The Wishart mechanism: positive semidefinite noise, so the release can be a covariance matrix.

W_p(m, s^2 I) is added to the Gram matrix, m = p - 1 + k. Its exact guarantee is that of one scalar,
|x|^2 + s^2 chi2_k: see `mechanisms.accounting.wishart_profile`. It has no pure epsilon, because the
support depends on the data. Exact calibration chooses the k with the least noise. The public mean
m s^2 I is removed from the release, or kept in it as part of the noise. The proofs are in
docs/mechanisms/wishart.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.accounting.wishart_profile import (
    best_shape,
    profile_of,
)
from gramercy.mechanisms.mechanism import Additive, Arithmetic, PublicParameters
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas import families
from gramercy.schemas.neighbours import Neighbours, ProtectedUnit
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request_parts import ClaimedPureSpec, PureSpec

_MAX_DOF = 1e9
# Of the request's delta, for parameters without a failure share.
_DELTA0_SHARE = {"removed": 0.01, "kept": 0.3}


class WishartSpec(ClaimedPureSpec):
    """``wishart``: positive semidefinite noise.

    Parameters
    ----------
    delta
        Delta at which epsilon is requested. With ``calibration: published``, 0 selects the variant
        that the paper claims to be pure.
    mean
        Whether the public mean of the noise is ``removed`` from the matrix or ``kept`` in it. With
        ``kept`` the released matrix is positive semidefinite.
    """

    name: Literal["wishart"] = "wishart"
    mean: Literal["removed", "kept"] = "removed"

    level_keys: ClassVar[tuple[str, ...]] = ("epsilon",)


@dataclass(frozen=True)
class Wishart(Additive):
    """Wishart noise on the Gram matrix.

    `scale`: s^2: the noise is W_p(dof, s^2 I), for rows of the unit ball.
    """

    dof: float  # m, degrees of freedom: a real number, at least p + 1
    keeps_mean: bool  # whether the mean of the noise stays in the release
    target_delta0: float  # the delta0 at which composition charges mu

    name: ClassVar[str] = "wishart"
    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row",)  # proven for changes of rank one
    spec: ClassVar[type[PureSpec]] = WishartSpec
    arithmetic: ClassVar[Arithmetic] = "floating-point"

    @classmethod
    def _exact(cls, spec: WishartSpec, parameters: PublicParameters) -> Self:
        """The k with the least noise; with the mean removed, the law is then almost Gaussian."""
        epsilon, keeps_mean = spec.epsilon or 0.0, spec.mean == "kept"
        k, variance = best_shape(
            parameters.p, epsilon, spec.delta, parameters.neighbours, keeps_mean=keeps_mean
        )
        return cls(
            _check_no_count(parameters),
            variance,
            parameters.p - 1 + k,
            keeps_mean,
            parameters.target_delta0 or _DELTA0_SHARE[spec.mean] * spec.delta,
        )

    @classmethod
    def _published(cls, spec: WishartSpec, parameters: PublicParameters) -> Self:
        """W_p(p + 1, 3 / (2 epsilon) I), or W_p(p + (14 / epsilon^2) ln(4 / delta), I).

        Wang, Huai and Xu (2018). They claim that the first one is pure, which is false.
        """
        epsilon, delta, p = spec.epsilon or math.nan, spec.delta, parameters.p
        if delta == 0:
            scale, dof = 1.5 / epsilon, p + 1.0
        else:
            scale, dof = 1.0, p + 14 / epsilon**2 * math.log(4 / delta)
        if dof - p >= _MAX_DOF:
            raise families.NOISE_RANGE(
                "wishart: {degrees:.3g} degrees of freedom exceed the limit of the accounting, "
                "{limit:g}.",
                "Ask for a larger epsilon, or use 'calibration: exact'.",
                degrees=dof,
                limit=_MAX_DOF,
            )
        delta0 = parameters.target_delta0 or _DELTA0_SHARE[spec.mean] * delta or 1e-12
        keeps_mean = spec.mean == "kept"
        return cls(_check_no_count(parameters), scale, max(dof, p + 1.0), keeps_mean, delta0)

    @property
    def sd_diagonal(self) -> float:
        return math.sqrt(2 * self.dof) * self.scale

    @property
    def guarantee(self) -> Guarantee:
        """See `wishart_profile`; replacing a row means adding one row and removing another."""
        k = self.dof - self.parameters.p + 1
        return _guarantee(k, self.scale, self.parameters.neighbours, self.target_delta0)

    @property
    def law(self) -> NoiseLaw:
        unit = self.lattice.squared_radius / self.lattice.divisor
        return NoiseLaw(
            family="wishart",
            sd_diagonal=self.sd_diagonal * unit,
            sd_off_diagonal=self.sd_diagonal / math.sqrt(2) * unit,
            mean=self.dof * self.scale * unit if self.keeps_mean else 0.0,
            dof=self.dof,
        )

    @property
    def sensitivity(self) -> float:
        """The trace of x x^T."""
        return 1.0

    def constants(self) -> dict[str, float]:
        return super().constants() | {"degrees_of_freedom": self.dof}

    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        noise = wishart_noise(self.parameters.p, self.dof)
        if not self.keeps_mean:
            noise -= self.dof * np.eye(self.parameters.p)
        return np.rint(noise * (self.scale * self.lattice.squared_radius)).astype(np.int64), None


def wishart_noise(p: int, dof: float) -> NDArray[np.float64]:
    """A draw of W_p(dof, I) by Bartlett's decomposition (1933).

    It is A A^T with A lower triangular, A_ii^2 ~ chi2_(dof - i) and A_ij ~ N(0, 1).
    """
    factor = np.zeros((p, p))
    factor[np.tril_indices(p, -1)] = sampler.gaussian(p * (p - 1) // 2)
    squares = [2 * float(sampler.gamma((dof - i) / 2, 1)[0]) for i in range(p)]
    np.fill_diagonal(factor, np.sqrt(squares))
    product: NDArray[np.float64] = factor @ factor.T
    return (product + product.T) / 2


@lru_cache(maxsize=64)
def _guarantee(k: float, variance: float, neighbours: Neighbours, delta0: float) -> Guarantee:
    return Guarantee.from_profile(partial(profile_of(neighbours), k, variance), delta0)


def _check_no_count(parameters: PublicParameters) -> PublicParameters:
    if parameters.publishes_noisy_count:
        raise families.UNSUPPORTED(
            "wishart cannot publish a noisy number of rows.",
            "Use 'normalisation: unit', where the trace is the number of rows, or another "
            "mechanism.",
        )
    return parameters
