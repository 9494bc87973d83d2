"""Output perturbation: noise on the graphical lasso solution itself, instead of on its input.

The solution T(S) of min -log det T + tr(S T) + penalty ||T||_1, diagonal penalised, has eigenvalues
of at most p / penalty for positive semidefinite S, and is (p / penalty)^2-Lipschitz in S in
Frobenius norm. One row of n moves S by sqrt2 / n, so Delta = sqrt2 p^2 / (n penalty^2), plus twice
what the solver may be off, plus what rounding moves: mu = Delta / s for white noise in svec.

Wang, Huai and Xu (2018), Algorithm 1, add Wishart noise of p + 1 degrees of freedom and claim a
pure epsilon. The support of that noise moves with the data: there is no pure epsilon, what can be
shown is of no use (delta about 1/2 at epsilon = 1), and nothing is what it is charged as.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from gramercy.common.lattice import Lattice
from gramercy.mechanisms.accounting.gdp import gaussian_mu, noise_scale
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.additive import half, squared_sensitivity, symmetric
from gramercy.mechanisms.gaussian import target_mu
from gramercy.mechanisms.mechanism import Arithmetic, Mechanism, Setting
from gramercy.mechanisms.sampling import sampler
from gramercy.mechanisms.wishart import wishart_noise
from gramercy.schemas.contract import Neighbours, ProtectedUnit
from gramercy.schemas.errors import RequestError
from gramercy.schemas.manifest import ReleaseKind
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.specs import PureSpec, SaidToBePureSpec

_SOLVER = 2.0**-10  # what the solver may be off, as a share of what a row may move
_GAP = 1e-10  # the least duality gap a column that the solver works for
_UNIT = 2.0**-53
_LEAST_PENALTY = 1e-2  # up to 100 columns; no table has failed, at a tenth of it neither
_STEPS = 2.0**20  # lattice units a standard deviation


class OutputSpec(SaidToBePureSpec):
    """``output``: the graphical lasso solution with noise.

    Parameters
    ----------
    penalty
        Of the graphical lasso, on all entries, the diagonal as well.
    """

    name: Literal["output"] = "output"
    penalty: Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)]


@dataclass(frozen=True)
class Output(Mechanism):
    """Noise on a precision matrix.

    Parameters
    ----------
    setting
        Public facts of the table.
    scale
        s, the standard deviation on a diagonal entry; of the published mechanism the factor of
        the Wishart matrix.
    penalty
        Of the graphical lasso.
    as_published
        Whether the noise is the published Wishart matrix, which counts as no protection.
    """

    setting: Setting
    scale: float
    penalty: float
    as_published: bool = False

    name: ClassVar[str] = "output"
    spec: ClassVar[type[PureSpec]] = OutputSpec
    publishes: ClassVar[ReleaseKind] = "precision"
    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row", "person")
    arithmetic: ClassVar[Arithmetic] = "floating-point"
    neighbours: ClassVar[tuple[Neighbours, ...]] = ("replace-one",)

    @classmethod
    def _exact(cls, spec: OutputSpec, setting: Setting) -> Self:
        """Delta / mu."""
        least = _LEAST_PENALTY * max(1.0, setting.p / 100)
        if spec.penalty < least:
            raise RequestError(
                f"{cls.name}: key 'mechanism.penalty': at {spec.penalty:g}, with {setting.p} "
                "columns, not every table could be solved.",
                f"Use a penalty of {least:.6g} or more.",
            )
        moved = _moved(setting, spec.penalty) + 2 * _tolerance(setting, spec.penalty)
        mu = target_mu(spec)
        # Rounding moves by a step an entry at most: p / _STEPS standard deviations in all.
        rounding = setting.p / (_STEPS * mu)
        if rounding > 0.5:
            raise RequestError(
                f"{cls.name}: so little mu ({mu:.3g}) would take more noise than can be drawn.",
                "Ask for a larger epsilon.",
            )
        scale = noise_scale(moved**2, mu) / (1 - rounding) * (1 + 1e-12)
        return cls(setting, scale, spec.penalty)

    @classmethod
    def _published(cls, spec: OutputSpec, setting: Setting) -> Self:
        """W_p(p + 1, p^(5/2) / (n epsilon penalty^2) I)."""
        epsilon = spec.epsilon or math.nan
        scale = setting.p**2.5 / (setting.n * epsilon * spec.penalty**2)
        return cls(setting, scale, spec.penalty, as_published=True)

    @property
    def tolerance(self) -> float:
        """How far in Frobenius norm the solver may be off."""
        return _tolerance(self.setting, self.penalty)

    @property
    def guarantee(self) -> Guarantee:
        """Delta / s, everything counted; nothing where the noise is the published one."""
        if self.as_published:
            return Guarantee(math.inf, 1.0)
        moved = _moved(self.setting, self.penalty) + 2 * self.tolerance
        moved += self.setting.p * self.step
        return Guarantee(gaussian_mu((moved * (1 + 2.0**-50)) ** 2, self.scale))

    @property
    def step(self) -> float:
        """What one integer of the noisy matrix stands for."""
        return self.scale / _STEPS

    @property
    def lattice(self) -> Lattice:
        """See `Mechanism.lattice`: of the rows; the noise has a finer one of its own."""
        return Lattice(self.setting.p, 20)

    @property
    def law(self) -> NoiseLaw:
        """See `Mechanism.law`: of the precision matrix itself, which is no sum."""
        if self.as_published:
            dof = self.setting.p + 1.0
            sd = math.sqrt(dof) * self.scale
            return NoiseLaw(
                family="wishart",
                sd_diagonal=math.sqrt(2) * sd,
                sd_off_diagonal=sd,
                mean=dof * self.scale,
                dof=dof,
            )
        return NoiseLaw(
            family="gaussian-isotropic",
            sd_diagonal=self.scale,
            sd_off_diagonal=half(_STEPS) * self.step,
        )

    def plan(self) -> dict[str, float]:
        """See `Mechanism.plan`."""
        moved = _moved(self.setting, self.penalty)
        return {
            "scale": self.scale,
            "sensitivity": moved,
            "penalty": self.penalty,
            "solver_tolerance": self.tolerance,
        }

    def perturb(self, precision: NDArray[np.float64]) -> NDArray[np.float64]:
        """Draw the noise, once, and add it to the exact solution, shape (p, p)."""
        p = self.setting.p
        if self.as_published:
            return precision + self.scale * wishart_noise(p, p + 1.0)
        upper = sampler.rounded_gaussian(half(_STEPS), p * (p - 1) // 2)
        noise = symmetric(upper, sampler.rounded_gaussian(_STEPS, p))
        noisy: NDArray[np.float64] = (np.rint(precision / self.step) + noise) * self.step
        return noisy


def _moved(setting: Setting, penalty: float) -> float:
    """How far one row moves the exact solution, in Frobenius norm; rounded up."""
    row = math.sqrt(squared_sensitivity(setting)) / setting.n
    return row * (setting.p / penalty) ** 2 * (1 + 2.0**-50)


def _tolerance(setting: Setting, penalty: float) -> float:
    """How far the solver may be off: a gap g puts it within p / penalty sqrt(2 g), and a little.

    The second terms are of rounding, in the gap and in the second moment.
    """
    p = setting.p
    largest = p / penalty
    gap = p * _GAP + 16 * p**3 * _UNIT
    seen = largest * math.sqrt(2 * gap) * (1 + 2.0**-6)
    rounding = _UNIT * ((4 + p * penalty) * largest**2 + 4 * (p + 1) * largest)
    return max(_SOLVER * _moved(setting, penalty), seen + rounding * (1 + 2.0**-6))
