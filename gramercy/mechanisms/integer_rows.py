"""Rows of integers with integer noise.

Rows are not normalised; their l2 sensitivity Delta follows from the declared ranges. With the
rounded Gaussian (the default) the release is post-processing of integers plus N(0, sigma^2), so
exactly mu = Delta / sigma.

The published alternative, the discrete Gaussian of Canonne, Kamath and Steinke (2020), is exactly
(Delta^2 / (2 sigma^2))-zCDP, from which the charge follows. The published claim that it is
(Delta / sigma)-GDP is false: for sigma = 1 and a shift by 1 the total variation is 0.3989, and
0.3829 for Gaussians. See docs/mechanisms/integer-rows.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice, UnscaledLattice
from gramercy.mechanisms.accounting.concentrated import zcdp_delta
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian_rows import NoisyRowsSpec, Rows
from gramercy.mechanisms.mechanism import PublicParameters
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas import families
from gramercy.schemas.request_parts import MechanismSpec

_DELTA0_SHARE = 0.1  # of the request's delta, for parameters without a failure share


class IntegerRowsSpec(NoisyRowsSpec):
    """``integer-rows``: rows of whole numbers with integer noise.

    Requires ``normalisation: whole``. ``calibration: published`` draws the discrete Gaussian
    instead of the rounded one.
    """

    name: Literal["integer-rows"] = "integer-rows"


@dataclass(frozen=True)
class IntegerRows(Rows):
    """Integer noise on every cell; `scale` is sigma.

    `PublicParameters` without sensitivity bounds stand for rows of zeros and ones.

    Parameters
    ----------
    discrete
        Whether the noise is the discrete Gaussian.
    """

    discrete: bool = False

    name: ClassVar[str] = "integer-rows"
    spec: ClassVar[type[MechanismSpec]] = IntegerRowsSpec

    @classmethod
    def _published(cls, spec: NoisyRowsSpec, parameters: PublicParameters) -> Self:
        """The range of one cell over mu, and discrete Gaussian noise."""
        rounded = super()._published(spec, parameters)
        if rounded.scale > sampler.MAX_DISCRETE_SIGMA:
            raise families.NOISE_RANGE(
                "integer-rows: the discrete Gaussian is limited to sigma <= {limit:g}; "
                "{sigma:.6g} is needed.",
                "Use 'calibration: exact': the rounded Gaussian has the same accuracy.",
                sigma=rounded.scale,
                limit=sampler.MAX_DISCRETE_SIGMA,
            )
        return cls(rounded.parameters, rounded.scale, rounded.delta, discrete=True)

    @classmethod
    def _lattice(cls, parameters: PublicParameters) -> Lattice:
        return UnscaledLattice(parameters.p)

    @property
    def guarantee(self) -> Guarantee:
        """Mu = Delta / sigma; for the discrete Gaussian, what follows from its zCDP."""
        if not self.discrete:
            return super().guarantee
        delta0 = self.parameters.target_delta0 or _DELTA0_SHARE * self.delta
        rho = self._squared_sensitivity(self.parameters) / (2 * self.scale**2)
        return _zcdp_guarantee(rho, delta0)

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
def _zcdp_guarantee(rho: float, delta0: float) -> Guarantee:
    return Guarantee.from_profile(partial(zcdp_delta, rho), delta0)
