"""Output perturbation: noise on the graphical lasso solution itself, instead of on its input.

The solution T(S) of min -log det T + tr(S T) + penalty ||T||_1 (diagonal included) has eigenvalues
of at most p / penalty for positive semidefinite S, and is (p / penalty)^2-Lipschitz in S in
Frobenius norm. One row of n changes S by at most sqrt2 / n. So the sensitivity Delta is
sqrt2 p^2 / (n penalty^2), plus twice the error of the solver, plus the effect of rounding; and
mu = Delta / s for white noise in svec coordinates.

Wang, Huai and Xu (2018), Algorithm 1, add Wishart noise of p + 1 degrees of freedom and claim a
pure epsilon. The support of that noise depends on the data, so no pure epsilon holds. The provable
delta is useless (about 1/2 at epsilon = 1), so this noise is charged as no protection. The proofs
are in docs/mechanisms/output.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from gramercy.common.lattice import Lattice
from gramercy.mechanisms.accounting.gdp import gaussian_mu, gaussian_scale
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import target_mu
from gramercy.mechanisms.mechanism import (
    Arithmetic,
    Mechanism,
    PublicParameters,
    off_diagonal_scale,
    squared_sensitivity,
    symmetric_matrix,
)
from gramercy.mechanisms.sampling import sampler
from gramercy.mechanisms.wishart import wishart_noise
from gramercy.schemas import families
from gramercy.schemas.neighbours import Neighbours, ProtectedUnit
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.publications import PRECISION, Publication
from gramercy.schemas.request_parts import ClaimedPureSpec, PureSpec

_SOLVER_SHARE = 2.0**-10  # error of the solver, as a share of the sensitivity
_GAP = 1e-10  # smallest duality gap per column that the solver is asked for
_UNIT_ROUNDOFF = 2.0**-53
_MIN_PENALTY = 1e-2  # up to 100 columns; no tested table failed, even at a tenth of it
_STEPS_PER_SD = 2.0**20  # lattice units per standard deviation of the noise


class OutputSpec(ClaimedPureSpec):
    """``output``: the graphical lasso solution with noise.

    Parameters
    ----------
    penalty
        Penalty of the graphical lasso on all entries, including the diagonal.
    """

    name: Literal["output"] = "output"
    penalty: Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)]


@dataclass(frozen=True)
class Output(Mechanism):
    """Noise on a precision matrix."""

    parameters: PublicParameters  # public facts of the table
    # s, the standard deviation of the noise on a diagonal entry; for the published mechanism the
    # factor of the Wishart matrix
    scale: float
    penalty: float  # penalty of the graphical lasso
    # whether the noise is the published Wishart matrix, which is charged as no protection
    as_published: bool = False

    name: ClassVar[str] = "output"
    spec: ClassVar[type[PureSpec]] = OutputSpec
    publishes: ClassVar[Publication] = PRECISION
    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row", "person")
    arithmetic: ClassVar[Arithmetic] = "floating-point"
    neighbours: ClassVar[tuple[Neighbours, ...]] = (Neighbours.REPLACE_ONE,)

    @classmethod
    def _exact(cls, spec: OutputSpec, parameters: PublicParameters) -> Self:
        """Delta / mu."""
        least = _MIN_PENALTY * max(1.0, parameters.p / 100)
        if spec.penalty < least:
            raise families.NOISE_RANGE(
                "mechanism.penalty must be at least {least:.6g} for {columns} columns; it is "
                "{penalty:g}.",
                "Use a larger penalty.",
                penalty=spec.penalty,
                columns=parameters.p,
                least=least,
            )
        sensitivity = _sensitivity(parameters, spec.penalty)
        sensitivity += 2 * solver_tolerance(parameters, spec.penalty)
        mu = target_mu(spec)
        # Rounding changes an entry by at most a step: p / _STEPS_PER_SD standard deviations in all.
        rounding = parameters.p / (_STEPS_PER_SD * mu)
        if rounding > 0.5:
            raise families.NOISE_RANGE(
                "output: mu={mu:.3g} would need more noise than can be drawn.",
                "Ask for a larger epsilon.",
                mu=mu,
            )
        scale = gaussian_scale(sensitivity**2, mu) / (1 - rounding) * (1 + 1e-12)
        return cls(parameters, scale, spec.penalty)

    @classmethod
    def _published(cls, spec: OutputSpec, parameters: PublicParameters) -> Self:
        """W_p(p + 1, p^(5/2) / (n epsilon penalty^2) I): Wang, Huai and Xu (2018), Algorithm 1."""
        epsilon = spec.epsilon or math.nan
        scale = parameters.p**2.5 / (parameters.n * epsilon * spec.penalty**2)
        return cls(parameters, scale, spec.penalty, as_published=True)

    @property
    def tolerance(self) -> float:
        """Upper bound on the error of the solver, in Frobenius norm."""
        return solver_tolerance(self.parameters, self.penalty)

    @property
    def guarantee(self) -> Guarantee:
        """Mu = Delta / s, including solver error and rounding; infinite for the published noise."""
        if self.as_published:
            return Guarantee(math.inf, 1.0)
        sensitivity = _sensitivity(self.parameters, self.penalty) + 2 * self.tolerance
        sensitivity += self.parameters.p * self.step
        return Guarantee(gaussian_mu((sensitivity * (1 + 2.0**-50)) ** 2, self.scale))

    @property
    def step(self) -> float:
        """The value of one lattice unit of the noisy matrix."""
        return self.scale / _STEPS_PER_SD

    @property
    def lattice(self) -> Lattice:
        """The lattice of the rows; the noise has a finer one."""
        return Lattice(self.parameters.p, 20)

    @property
    def law(self) -> NoiseLaw:
        """The noise on the precision matrix itself, not on a sum."""
        if self.as_published:
            dof = self.parameters.p + 1.0
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
            sd_off_diagonal=off_diagonal_scale(_STEPS_PER_SD) * self.step,
        )

    def matrix_law(self, rows: float, parts: int = 1) -> NoiseLaw:
        """The noise is on the precision matrix itself."""
        return self.law

    @property
    def trace_bound(self) -> float:
        """See `Mechanism.trace_bound`.

        A graphical lasso solution T for S satisfies tr(S T) + penalty ||T||_1 = p, so its trace is
        at most p / penalty.
        """
        return self.parameters.p / self.penalty

    def constants(self) -> dict[str, float]:
        return {
            "scale": self.scale,
            "sensitivity": _sensitivity(self.parameters, self.penalty),
            "penalty": self.penalty,
            "solver_tolerance": self.tolerance,
        }

    def perturb(self, precision: NDArray[np.float64]) -> NDArray[np.float64]:
        """Draw the noise, once, and add it to the exact solution, shape (p, p)."""
        p = self.parameters.p
        if self.as_published:
            return precision + self.scale * wishart_noise(p, p + 1.0)
        upper = sampler.rounded_gaussian(off_diagonal_scale(_STEPS_PER_SD), p * (p - 1) // 2)
        noise = symmetric_matrix(upper, sampler.rounded_gaussian(_STEPS_PER_SD, p))
        noisy: NDArray[np.float64] = (np.rint(precision / self.step) + noise) * self.step
        return noisy


def _sensitivity(parameters: PublicParameters, penalty: float) -> float:
    """Largest change of the exact solution by one row, in Frobenius norm; rounded up."""
    of_input = math.sqrt(squared_sensitivity(parameters)) / parameters.n
    return of_input * (parameters.p / penalty) ** 2 * (1 + 2.0**-50)


def solver_tolerance(parameters: PublicParameters, penalty: float) -> float:
    """Upper bound on the error of the solver, in Frobenius norm.

    At a duality gap g the error is little more than p / penalty sqrt(2 g). The other terms bound
    rounding errors in the gap and in the second moment.
    """
    p = parameters.p
    largest = p / penalty  # eigenvalue of the solution
    gap = p * _GAP + 16 * p**3 * _UNIT_ROUNDOFF
    by_gap = largest * math.sqrt(2 * gap) * (1 + 2.0**-6)
    rounding = _UNIT_ROUNDOFF * ((4 + p * penalty) * largest**2 + 4 * (p + 1) * largest)
    solver = _SOLVER_SHARE * _sensitivity(parameters, penalty)
    return max(solver, by_gap + rounding * (1 + 2.0**-6))
