"""The matrix Laplace mechanism: pure epsilon, and little noise however many columns there are.

Z = W - W', W and W' independent, each with density proportional to exp(-tr W / (2 s)) on the cone
of positive semidefinite matrices: W_p(p + 1, s I). For one column this is Laplace noise of scale
2 s. For D = x x^T - y y^T and W = W' + Z,

    f(Z) = c int exp(-(2 tr W - tr Z) / (2 s)) dW  over  W >= 0, W >= Z,

and W -> W + x x^T maps that domain into the one that belongs to Z + D, since W + x x^T - (Z + D) =
(W - Z) + y y^T, while the integrand changes by exp(-(|x|^2 + |y|^2) / (2 s)). Hence
f(Z) <= exp((|x|^2 + |y|^2) / (2 s)) f(Z + D): pure epsilon = 1 / s for a row replaced, and
1 / (2 s) for a row present or absent, whatever the number of columns.

An entry off the diagonal has the deviation s sqrt(2 (p + 1)): sqrt(p) / 2 times less than Frobenius
K-norm noise of the same epsilon, about sqrt(p / 2) times less than Laplace noise on the entries.
Rotations leave the law as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from mechanisms import sampler
from mechanisms.additive import Additive
from mechanisms.guarantee import UP, Guarantee, gdp_pure
from mechanisms.mechanism import Arithmetic, Setting
from mechanisms.wishart import wishart_noise
from schemas.noise import NoiseLaw
from schemas.request import PureSpec

_COUNT_WEIGHT = 0.1  # a noisy count costs a tenth of what the matrix does


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
        epsilon = gdp_pure(spec.mu or math.nan) if spec.epsilon is None else spec.epsilon
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
        """Pure epsilon: see the module."""
        return Guarantee.of_pure(UP * _changed(self.setting) / (2 * self.scale))

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


def _changed(setting: Setting) -> float:
    """|x|^2 + |y|^2 of the rows that differ, and what a noisy count adds.

    One column changes by |x^2 - y^2|, at most 1 even where a row is replaced.
    """
    if setting.neighbours == "replace-one":
        return 2.0 if setting.p > 1 else 1.0
    return 1.0 + (_COUNT_WEIGHT if setting.counted else 0.0)
