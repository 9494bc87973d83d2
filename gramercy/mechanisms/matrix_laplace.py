"""The matrix Laplace mechanism: pure epsilon, and little noise however many columns there are.

Z = W - W', W and W' independent, each with density proportional to exp(-tr W / (2 s)) on the cone
of positive semidefinite matrices: W_p(p + 1, s I). For one column this is Laplace noise of scale
2 s. The pure epsilon is 1 / s for a row replaced, and 1 / (2 s) for a row present or absent,
whatever the number of columns; mu falls like epsilon / sqrt p. An entry off the diagonal has the
deviation s sqrt(2 (p + 1)). Rotations leave the law as it is.

The proofs are in docs/mechanisms/matrix-laplace.md, the part by computation in
tests/proofs/matrix_laplace.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.mechanisms.accounting.directed_rounding import UP
from gramercy.mechanisms.accounting.gdp import gdp_pure, shift_epsilon, shift_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.mechanism import Arithmetic, Setting
from gramercy.mechanisms.sampling import sampler
from gramercy.mechanisms.wishart import wishart_noise
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.specs import PureSpec

_COUNT_WEIGHT = 0.1  # a noisy count costs a tenth of what the matrix does
_ONE_COLUMN = math.sqrt(math.pi / 2)  # the score of Laplace noise is +-epsilon
_WIDE = 1 + 2.0**-30  # far more than what lgamma may be off


class MatrixLaplaceSpec(PureSpec):
    """``matrix-laplace``: pure epsilon, with the least noise here from four columns on."""

    name: Literal["matrix-laplace"] = "matrix-laplace"


@dataclass(frozen=True)
class MatrixLaplace(Additive):
    """The difference of two Wishart matrices, added to the Gram matrix.

    Parameters
    ----------
    setting
        Public facts of the table.
    scale
        s, for rows of the unit ball.
    """

    name: ClassVar[str] = "matrix-laplace"
    spec: ClassVar[type[PureSpec]] = MatrixLaplaceSpec
    arithmetic: ClassVar[Arithmetic] = "floating-point"

    @classmethod
    def _exact(cls, spec: PureSpec, setting: Setting) -> Self:
        """The sum of squared lengths that may change, over twice epsilon."""
        epsilon = spec.epsilon or _epsilon(spec.mu or math.nan, setting)
        return cls(setting, UP**2 * _changed(setting) / (2 * epsilon))

    @classmethod
    def _published(cls, spec: PureSpec, setting: Setting) -> Self:
        """The same: no paper has another scale for it."""
        return cls._exact(spec, setting)

    @property
    def sd_diagonal(self) -> float:
        """See `Additive.sd_diagonal`: W_ii has variance 2 (p + 1) s^2."""
        return 2 * math.sqrt(self.setting.p + 1) * self.scale

    @property
    def sd_rows(self) -> float | None:
        """See `Additive.sd_rows`: Laplace noise of its own."""
        return math.sqrt(2) * self._count_scale if self.setting.counted else None

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon, and the smaller of the two mu that follow from bounds on the score."""
        pure = UP * _changed(self.setting) / (2 * self.scale)
        if _before_scores(self.setting):
            return Guarantee.of_pure(pure)
        by_scores = UP * _mu_per_epsilon(self.setting) * pure
        return Guarantee(min(by_scores, shift_mu(pure)), pure=pure)

    @property
    def law(self) -> NoiseLaw:
        """See `Mechanism.law`."""
        sd = self.sd_diagonal * self.lattice.ball / self.lattice.divisor
        return NoiseLaw(
            family="matrix-laplace",
            sd_diagonal=sd,
            sd_off_diagonal=sd / math.sqrt(2),
            dof=self.setting.p + 1.0,
        )

    @property
    def sensitivity(self) -> float:
        """See `Additive.sensitivity`."""
        return _changed(self.setting)

    @property
    def _count_scale(self) -> float:
        return 2 * self.scale / _COUNT_WEIGHT

    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        p = self.setting.p
        noise = wishart_noise(p, p + 1.0) - wishart_noise(p, p + 1.0)
        # The Gram matrix is whole, so that rounding the noise is rounding the sum.
        whole = np.rint(noise * (self.scale * self.lattice.ball)).astype(np.int64)
        if not self.setting.counted:
            return whole, None
        return whole, int(sampler.rounded_laplace(self._count_scale, 1)[0])


def one_row(p: int) -> float:
    """c, rounded up: the score for one row is at most c epsilon N(0, 1) in convex order.

    Of a row present or absent, whose epsilon is 1 / (2 s).
    """
    if p == 1:
        return UP * _ONE_COLUMN
    return UP**4 * max(math.sqrt(1.7 / (p - 0.5)), 1 / 22)


def two_rows(p: int) -> float:
    """The same of a row replaced, whose epsilon is 1 / s, or 1 / (2 s) for one column.

    1 / E chi_(p-1) for two orthogonal rows. Two rows may also differ by one of them only, at half
    the epsilon; that counts from p = 1938 on, where `one_row` no longer falls.
    """
    if p == 1:
        return one_row(1)
    orthogonal = math.exp(math.lgamma((p - 1) / 2) - math.lgamma(p / 2)) / math.sqrt(2)
    return max(_WIDE * orthogonal, one_row(p) / 2)


def _changed(setting: Setting) -> float:
    """|x|^2 + |y|^2 of the rows that differ, and what a noisy count adds.

    One column changes by |x^2 - y^2|, at most 1 even where a row is replaced.
    """
    if setting.neighbours == "replace-one":
        return 2.0 if setting.p > 1 else 1.0
    return 1.0 + (_COUNT_WEIGHT if setting.counted else 0.0)


def _mu_per_epsilon(setting: Setting) -> float:
    """Mu over the pure epsilon, by convex order, rounded up.

    The score of a noisy count is independent, so that the squares add up.
    """
    if setting.neighbours == "replace-one":
        return two_rows(setting.p)
    if not setting.counted:
        return one_row(setting.p)
    return UP**4 * math.hypot(one_row(setting.p), _COUNT_WEIGHT * _ONE_COLUMN) / _changed(setting)


def _epsilon(mu: float, setting: Setting) -> float:
    """The largest pure epsilon whose mu is at most `mu`, rounded down."""
    if _before_scores(setting):
        return gdp_pure(mu)
    return max(mu / (UP**2 * _mu_per_epsilon(setting)), shift_epsilon(mu))


def _before_scores(setting: Setting) -> bool:
    """Whether only the mu that any pure epsilon has was known: before format 6."""
    return setting.format < 6
