"""Whole numbers stay whole: rows of integers with integer noise.

Rows are not normalised; what a row may change by, in l2 norm Delta, follows from the declared
ranges. With the rounded Gaussian (the default) the release is post-processing of integers plus
N(0, sigma^2), so exactly mu = Delta / sigma. The discrete Gaussian of Canonne, Kamath and Steinke
(2020), as published, is exactly (Delta^2 / (2 sigma^2))-zCDP, from which what is charged follows;
that it is (Delta / sigma)-GDP was claimed, and is false (sigma = 1, a shift by 1: the total
variation is 0.3989, and 0.3829 for Gaussians).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice, WholeNumbers
from gramercy.mechanisms.accounting.concentrated import zcdp_delta
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian_rows import NoisyRowsSpec, Rows
from gramercy.mechanisms.mechanism import Setting
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.errors import RequestError
from gramercy.schemas.specs import MechanismSpec

_SHARE = 0.1  # of delta, for delta0 where no budget sets one aside


class IntegerRowsSpec(NoisyRowsSpec):
    """``integer-rows``: whole numbers with whole noise.

    Needs ``normalisation: whole``. ``calibration: published`` draws the discrete Gaussian instead
    of the rounded one.
    """

    name: Literal["integer-rows"] = "integer-rows"


@dataclass(frozen=True)
class IntegerRows(Rows):
    """Integer noise on every cell; `scale` is sigma.

    Without declared bounds (a `Setting` without a reach) rows of zeros and ones are meant.

    Parameters
    ----------
    discrete
        Whether the noise is the discrete Gaussian.
    """

    discrete: bool = False

    name: ClassVar[str] = "integer-rows"
    spec: ClassVar[type[MechanismSpec]] = IntegerRowsSpec

    @classmethod
    def _published(cls, spec: NoisyRowsSpec, setting: Setting) -> Self:
        """The range of one cell over mu, and discrete Gaussian noise."""
        made = super()._published(spec, setting)
        if made.scale > sampler.WIDEST_DISCRETE:
            raise RequestError(
                "integer-rows: the discrete Gaussian is not drawn this wide.",
                "Use 'calibration: exact': the rounded Gaussian is as good.",
            )
        return cls(made.setting, made.scale, made.delta, discrete=True)

    @classmethod
    def _lattice(cls, setting: Setting) -> Lattice:
        return WholeNumbers(setting.p)

    @property
    def guarantee(self) -> Guarantee:
        """Delta / sigma; of the discrete Gaussian what its zCDP tells."""
        if not self.discrete:
            return super().guarantee
        failure = self.setting.failure or _SHARE * self.delta
        return _of_zcdp(self._protected() / (2 * self.scale**2), failure)

    def randomize(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `RowWise.randomize`."""
        if not self.discrete:
            return super().randomize(rows)
        return rows + sampler.discrete_gaussian(self.scale, rows.size).reshape(rows.shape)

    def _variance(self) -> float:
        if not self.discrete:
            return super()._variance()
        return sampler.discrete_gaussian_variance(self.scale)


@lru_cache(maxsize=64)
def _of_zcdp(rho: float, failure: float) -> Guarantee:
    return Guarantee.of_profile(partial(zcdp_delta, rho), failure)
