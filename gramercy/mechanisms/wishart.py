"""The Wishart mechanism: positive semidefinite noise, so that what is released is a covariance.

W_p(m, s^2 I) is added to the Gram matrix, m = p - 1 + k. Its exact guarantee is that of one scalar,
|x|^2 + s^2 chi2_k: see `mechanisms.accounting.wishart_profile`. It is never pure: the support moves
with the data.
Calibrated exactly, k is chosen for the least noise; the mean m s^2 I, which is public, is removed
from the release or kept in it, as part of the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.accounting.wishart_calibration import best_shape
from gramercy.mechanisms.accounting.wishart_profile import profile, two_steps
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.mechanism import Arithmetic, Setting
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.contract import Neighbours, ProtectedUnit
from gramercy.schemas.errors import RequestError
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.specs import PureSpec, SaidToBePureSpec

_MOST_DOF = 1e9
_SHARE = {"removed": 0.01, "kept": 0.3}  # of delta, for delta0 where no budget sets one aside


class WishartSpec(SaidToBePureSpec):
    """``wishart``: noise that is positive semidefinite.

    Parameters
    ----------
    delta
        Zero with ``calibration: published`` is the variant that was published as pure.
    mean
        Whether the noise's public mean is ``removed`` from the matrix or ``kept`` in it: kept, the
        matrix as released is positive semidefinite.
    """

    name: Literal["wishart"] = "wishart"
    mean: Literal["removed", "kept"] = "removed"

    ways: ClassVar[tuple[str, ...]] = ("epsilon",)


@dataclass(frozen=True)
class Wishart(Additive):
    """Wishart noise on the Gram matrix.

    Parameters
    ----------
    setting
        Public facts of the table.
    scale
        s^2: the noise is W_p(dof, s^2 I), for rows of the unit ball.
    dof
        m, degrees of freedom; at least p + 1, and real.
    kept
        Whether the mean stays in the release.
    failure
        The delta0 that composition aims at.
    """

    dof: float
    kept: bool
    failure: float

    name: ClassVar[str] = "wishart"
    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row",)  # derived for changes of rank one
    spec: ClassVar[type[PureSpec]] = WishartSpec
    arithmetic: ClassVar[Arithmetic] = "floating-point"

    @classmethod
    def _exact(cls, spec: WishartSpec, setting: Setting) -> Self:
        """With the mean removed k is so large that the law is almost Gaussian; kept, the least."""
        epsilon, kept = spec.epsilon or 0.0, spec.mean == "kept"
        k, variance = best_shape(setting.p, epsilon, spec.delta, setting.neighbours, kept=kept)
        return cls(
            _uncounted(setting),
            variance,
            setting.p - 1 + k,
            kept,
            setting.failure or _SHARE[spec.mean] * spec.delta,
        )

    @classmethod
    def _published(cls, spec: WishartSpec, setting: Setting) -> Self:
        """W_p(p + 1, 3 / (2 epsilon) I), or W_p(p + (14 / epsilon^2) ln(4 / delta), I).

        Wang, Huai and Xu (2018): the first is said to be pure, and is not.
        """
        epsilon, delta, p = spec.epsilon or math.nan, spec.delta, setting.p
        if delta == 0:
            scale, dof = 1.5 / epsilon, p + 1.0
        else:
            scale, dof = 1.0, p + 14 / epsilon**2 * math.log(4 / delta)
        if dof - p >= _MOST_DOF:
            raise RequestError(
                f"wishart: {dof:.3g} degrees of freedom are more than can be accounted for.",
                "Ask for a larger epsilon, or 'calibration: exact'.",
            )
        failure = setting.failure or _SHARE[spec.mean] * delta or 1e-12
        return cls(_uncounted(setting), scale, max(dof, p + 1.0), spec.mean == "kept", failure)

    @property
    def sd_diagonal(self) -> float:
        """See `Additive.sd_diagonal`."""
        return math.sqrt(2 * self.dof) * self.scale

    @property
    def guarantee(self) -> Guarantee:
        """See `wishart_profile`; a row replaced is one removed and one added."""
        k = self.dof - self.setting.p + 1
        return _guarantee(k, self.scale, self.setting.neighbours, self.failure)

    @property
    def law(self) -> NoiseLaw:
        """See `Mechanism.law`."""
        unit = self.lattice.ball / self.lattice.divisor
        return NoiseLaw(
            family="wishart",
            sd_diagonal=self.sd_diagonal * unit,
            sd_off_diagonal=self.sd_diagonal / math.sqrt(2) * unit,
            mean=self.dof * self.scale * unit if self.kept else 0.0,
            dof=self.dof,
        )

    @property
    def sensitivity(self) -> float:
        """See `Additive.sensitivity`: the trace of what one row adds."""
        return 1.0

    def plan(self) -> dict[str, float]:
        """See `Mechanism.plan`."""
        return super().plan() | {"degrees_of_freedom": self.dof}

    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        noise = wishart_noise(self.setting.p, self.dof)
        if not self.kept:
            noise -= self.dof * np.eye(self.setting.p)
        return np.rint(noise * (self.scale * self.lattice.ball)).astype(np.int64), None


def wishart_noise(p: int, dof: float) -> NDArray[np.float64]:
    """W_p(dof, I). Bartlett (1933): A A^T, A lower triangular, A_ii^2 ~ chi2_(dof - i)."""
    factor = np.zeros((p, p))
    factor[np.tril_indices(p, -1)] = sampler.gaussian(p * (p - 1) // 2)
    squares = [2 * float(sampler.gamma((dof - i) / 2, 1)[0]) for i in range(p)]
    np.fill_diagonal(factor, np.sqrt(squares))
    drawn: NDArray[np.float64] = factor @ factor.T
    return (drawn + drawn.T) / 2


@lru_cache(maxsize=64)
def _guarantee(k: float, variance: float, neighbours: Neighbours, failure: float) -> Guarantee:
    known = two_steps if neighbours == "replace-one" else profile
    return Guarantee.of_profile(partial(known, k, variance), failure)


def _uncounted(setting: Setting) -> Setting:
    if setting.counted:
        raise RequestError(
            "wishart: cannot publish the number of rows as well.",
            "Use unit rows, which count themselves in the trace, or another mechanism.",
        )
    return setting
