"""The matrix Laplace mechanism: pure epsilon with little noise for any number of columns.

The noise is Z = W - W' with independent W and W', each with a density proportional to
exp(-tr W / (2 s)) on the cone of positive semidefinite matrices: W_p(p + 1, s I). For one column
this is Laplace noise of scale 2 s.

The pure epsilon is 1 / s if a row is replaced, and 1 / (2 s) if a row is added or removed, for any
number of columns; mu decreases like epsilon / sqrt p. The standard deviation of an off-diagonal
entry is s sqrt(2 (p + 1)). The law is invariant under rotations.

The proofs are in docs/mechanisms/matrix-laplace.md; their computed part is in
tests/proofs/matrix_laplace.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.mechanisms.accounting.gdp import (
    UP,
    log_lipschitz_epsilon,
    log_lipschitz_mu,
)
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import Additive, Arithmetic, PublicParameters
from gramercy.mechanisms.sampling import sampler
from gramercy.mechanisms.wishart import wishart_noise
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request_parts import PureSpec

_COUNT_WEIGHT = 0.1  # a noisy count costs a tenth of the epsilon of the matrix
_ONE_COLUMN = math.sqrt(math.pi / 2)  # the score of Laplace noise is +-epsilon
_MARGIN = 1 + 2.0**-30  # far more than the relative error of lgamma


class MatrixLaplaceSpec(PureSpec):
    """``matrix-laplace``: pure epsilon, with the least noise of all from four columns on."""

    name: Literal["matrix-laplace"] = "matrix-laplace"


@dataclass(frozen=True)
class MatrixLaplace(Additive):
    """The difference of two Wishart matrices, added to the Gram matrix.

    `scale`: s, the scale of the Wishart matrices, for rows of the unit ball.
    """

    name: ClassVar[str] = "matrix-laplace"
    spec: ClassVar[type[PureSpec]] = MatrixLaplaceSpec
    arithmetic: ClassVar[Arithmetic] = "floating-point"

    @classmethod
    def _exact(cls, spec: PureSpec, parameters: PublicParameters) -> Self:
        """The trace sensitivity over twice epsilon."""
        epsilon = spec.epsilon
        if epsilon is None:  # the largest pure epsilon whose mu is at most `mu`, rounded down
            mu = spec.mu or math.nan
            by_scores = mu / (UP**2 * _mu_per_epsilon(parameters))
            epsilon = max(by_scores, log_lipschitz_epsilon(mu))
        return cls(parameters, UP**2 * _trace_sensitivity(parameters) / (2 * epsilon))

    @classmethod
    def _published(cls, spec: PureSpec, parameters: PublicParameters) -> Self:
        """The exact scale: no paper has another one."""
        return cls._exact(spec, parameters)

    @property
    def sd_diagonal(self) -> float:
        """W_ii has variance 2 (p + 1) s^2."""
        return 2 * math.sqrt(self.parameters.p + 1) * self.scale

    @property
    def sd_rows(self) -> float | None:
        """The count has Laplace noise."""
        return math.sqrt(2) * self._count_scale if self.parameters.publishes_noisy_count else None

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon, and the smaller of the two mu that follow from bounds on the score."""
        pure = UP * _trace_sensitivity(self.parameters) / (2 * self.scale)
        by_scores = UP * _mu_per_epsilon(self.parameters) * pure
        return Guarantee(min(by_scores, log_lipschitz_mu(pure)), pure=pure)

    @property
    def law(self) -> NoiseLaw:
        sd = self.sd_diagonal * self.lattice.squared_radius / self.lattice.divisor
        return NoiseLaw(
            family="matrix-laplace",
            sd_diagonal=sd,
            sd_off_diagonal=sd / math.sqrt(2),
            dof=self.parameters.p + 1.0,
        )

    @property
    def sensitivity(self) -> float:
        return _trace_sensitivity(self.parameters)

    @property
    def _count_scale(self) -> float:
        return 2 * self.scale / _COUNT_WEIGHT

    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        p = self.parameters.p
        noise = wishart_noise(p, p + 1.0) - wishart_noise(p, p + 1.0)
        # The Gram matrix has integer entries, so rounding the noise equals rounding the sum.
        rounded = np.rint(noise * (self.scale * self.lattice.squared_radius)).astype(np.int64)
        if not self.parameters.publishes_noisy_count:
            return rounded, None
        return rounded, int(sampler.rounded_laplace(self._count_scale, 1)[0])


def one_row_score_bound(p: int) -> float:
    """c, rounded up: the score for one row is at most c epsilon N(0, 1) in convex order.

    It is for a row added or removed, where epsilon is 1 / (2 s).
    """
    if p == 1:
        return UP * _ONE_COLUMN
    return UP**4 * max(math.sqrt(1.7 / (p - 0.5)), 1 / 22)


def two_row_score_bound(p: int) -> float:
    """The same constant for a row replaced, where epsilon is 1 / s, or 1 / (2 s) for one column.

    It is 1 / E chi_(p-1) for two orthogonal rows. If one of the two rows is zero, the bound of one
    row applies at half the epsilon; it is the larger one from p = 1938 on, where
    `one_row_score_bound` is constant.
    """
    if p == 1:
        return one_row_score_bound(1)
    orthogonal = math.exp(math.lgamma((p - 1) / 2) - math.lgamma(p / 2)) / math.sqrt(2)
    return max(_MARGIN * orthogonal, one_row_score_bound(p) / 2)


def _trace_sensitivity(parameters: PublicParameters) -> float:
    """|x|^2 + |y|^2 of the rows that differ, plus the weight of a noisy count.

    One column changes by |x^2 - y^2|, at most 1 even if a row is replaced.
    """
    if parameters.neighbours.changed_units == 2:
        return 2.0 if parameters.p > 1 else 1.0
    return 1.0 + (_COUNT_WEIGHT if parameters.publishes_noisy_count else 0.0)


def _mu_per_epsilon(parameters: PublicParameters) -> float:
    """Mu over the pure epsilon, by convex order, rounded up.

    The score of a noisy count is independent, so the squares add up.
    """
    if parameters.neighbours.changed_units == 2:
        return two_row_score_bound(parameters.p)
    if not parameters.publishes_noisy_count:
        return one_row_score_bound(parameters.p)
    of_matrix, of_count = one_row_score_bound(parameters.p), _COUNT_WEIGHT * _ONE_COLUMN
    return UP**4 * math.hypot(of_matrix, of_count) / _trace_sensitivity(parameters)
