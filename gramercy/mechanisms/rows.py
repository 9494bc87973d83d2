"""Gaussian noise on rows ("open data"): Y = X + Z, with independent noise on every row.

Two rows of the unit ball differ by at most its diameter, so mu = 2 / sigma per row exactly,
attained by antipodal rows. Under ``box``, rows are not normalised one by one: a row changes by at
most the diagonal of the box of bounds, and a cell by its own range, so mu = range / sigma per cell.
Y itself is published, so a proof about the covariance of Y is not enough. The proof is in
docs/mechanisms/rows.md.

Rows of integers are not normalised; their l2 sensitivity Delta follows from the declared ranges.
With the rounded Gaussian (the default) the release is post-processing of integers plus
N(0, sigma^2), so exactly mu = Delta / sigma. The published alternative, the discrete Gaussian of
Canonne, Kamath and Steinke (2020), is exactly (Delta^2 / (2 sigma^2))-zCDP, from which the charge
follows. The published claim that it is (Delta / sigma)-GDP is false: for sigma = 1 and a shift by 1
the total variation is 0.3989, and 0.3829 for Gaussians. See docs/mechanisms/integer-rows.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice, UnscaledLattice, row_lattice
from gramercy.mechanisms.accounting.gdp import gaussian_mu, gaussian_scale, gdp_epsilon, zcdp_delta
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import target_mu
from gramercy.mechanisms.mechanism import (
    PublicParameters,
    RowWise,
    nominal_deviations,
    sensitivity_bounds,
)
from gramercy.mechanisms.sampling import sampler
from gramercy.mechanisms.sampling.rounding import rounded_variance
from gramercy.schemas import families, wordings
from gramercy.schemas.model import Decibels
from gramercy.schemas.neighbours import ProtectedUnit
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.publications import ROWS, Publication
from gramercy.schemas.request_parts import MechanismSpec


class NoisyRowsSpec(MechanismSpec):
    """Keys of a request for noise on rows.

    Parameters
    ----------
    snr
        Signal-to-noise ratio in decibels, instead of epsilon: ten times the decimal logarithm of
        the public mean square of a cell (1/p where rows are divided by their length) over the
        variance of the noise.
    """

    snr: Decibels | None = None

    level_keys: ClassVar[tuple[str, ...]] = ("epsilon", "mu", "snr")


class RowsSpec(NoisyRowsSpec):
    """``rows``: every row with Gaussian noise."""

    name: Literal["rows"] = "rows"


@dataclass(frozen=True)
class Rows(RowWise):
    """Gaussian noise on every cell of the normalised rows; `scale` is sigma."""

    name: ClassVar[str] = "rows"
    spec: ClassVar[type[MechanismSpec]] = RowsSpec
    publishes: ClassVar[Publication] = ROWS
    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row", "cell")

    @classmethod
    def _exact(cls, spec: NoisyRowsSpec, parameters: PublicParameters) -> Self:
        """Diameter or range over mu; or the scale of the signal-to-noise ratio."""
        return cls._with_sensitivity(spec, parameters, cls._squared_sensitivity(parameters))

    @classmethod
    def _published(cls, spec: NoisyRowsSpec, parameters: PublicParameters) -> Self:
        """The range of one cell over mu: GPP (2025), tables that differ in exactly one element."""
        bounds = sensitivity_bounds(parameters, cls._lattice(parameters))
        return cls._with_sensitivity(spec, parameters, bounds.squared_cell)

    @classmethod
    def _with_sensitivity(
        cls, spec: NoisyRowsSpec, parameters: PublicParameters, squared_sensitivity: int
    ) -> Self:
        if parameters.privacy_unit == "cell" and parameters.sensitivity_bounds is None:
            raise families.UNSUPPORTED(
                "{mechanism}: normalised rows have no guarantee per cell, since one cell changes "
                "its whole row.",
                "Use 'normalisation: box'.",
                mechanism=cls.name,
            )
        units = math.ldexp(1.0, cls._lattice(parameters).bits)  # per unit of a row
        if spec.snr is None:
            scale = gaussian_scale(squared_sensitivity, target_mu(spec)) / units
        else:
            scale = math.sqrt(parameters.mean_squared_norm / parameters.p) * 10 ** (-spec.snr / 20)
        if not 2.0**-4 < scale * units < 2.0**45:
            too_small = scale * units < 1
            problem = wordings.noise_too_small if too_small else wordings.noise_too_large
            raise problem(cls.name, scale)
        return cls(parameters, scale, spec.delta)

    @classmethod
    def _squared_sensitivity(cls, parameters: PublicParameters) -> int:
        bounds = sensitivity_bounds(parameters, cls._lattice(parameters))
        return bounds.squared_cell if parameters.privacy_unit == "cell" else bounds.squared_row

    @classmethod
    def _lattice(cls, parameters: PublicParameters) -> Lattice:
        return row_lattice(parameters.p)

    @property
    def lattice(self) -> Lattice:
        return self._lattice(self.parameters)

    @property
    def step(self) -> float:
        return self.lattice.step

    @property
    def guarantee(self) -> Guarantee:
        """The largest change of the protected unit over sigma."""
        return Guarantee(self._mu(self._squared_sensitivity(self.parameters)))

    @property
    def law(self) -> NoiseLaw:
        variance = self._variance()
        diagonal, off_diagonal = nominal_deviations(self.parameters, variance)
        return NoiseLaw(
            family="noisy-rows",
            sd_diagonal=diagonal,
            sd_off_diagonal=off_diagonal,
            cell_variance=variance,
        )

    def constants(self) -> dict[str, float]:
        """See `Mechanism.constants`; also mu, and epsilon at delta, per row and per cell."""
        bounds = sensitivity_bounds(self.parameters, self.lattice)
        mu_row, mu_cell = self._mu(bounds.squared_row), self._mu(bounds.squared_cell)
        squared = self._squared_sensitivity(self.parameters)
        mean_square = self.parameters.mean_squared_norm / self.parameters.p
        return {
            "scale": self.scale,
            "sensitivity": math.sqrt(squared) / self._lattice_units(),
            "snr_db": 10 * math.log10(mean_square / self.scale**2),
            "mu_row": mu_row,
            "epsilon_row": gdp_epsilon(mu_row, self.delta),
            "mu_cell": mu_cell,
            "epsilon_cell": gdp_epsilon(mu_cell, self.delta),
        }

    def randomize(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        noise = sampler.rounded_gaussian(self._scale_in_units(), rows.size)
        return rows + noise.reshape(rows.shape)

    def gram(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Y^T Y minus the expected contribution of the noise."""
        gram: NDArray[np.float64] = noisy @ noisy.T
        gram[np.diag_indices_from(gram)] -= noisy.shape[1] * self._variance()
        return gram

    def _lattice_units(self) -> float:
        """Lattice units per unit of a row: a power of two, so that scales stay exact."""
        return math.ldexp(1.0, self.lattice.bits)

    def _scale_in_units(self) -> float:
        """Sigma in lattice units."""
        return self.scale * self._lattice_units()

    def _mu(self, squared_sensitivity: int) -> float:
        return gaussian_mu(squared_sensitivity, self._scale_in_units())

    def _variance(self) -> float:
        """Variance of the noise on a published cell."""
        return rounded_variance(self._scale_in_units()) * self.lattice.step**2


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
    """

    discrete: bool = False  # whether the noise is the discrete Gaussian

    name: ClassVar[str] = "integer-rows"
    spec: ClassVar[type[MechanismSpec]] = IntegerRowsSpec
    needs_whole_rows: ClassVar[bool] = True

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

    @property
    def trace_bound(self) -> float:
        """The largest squared norm of a row."""
        return float(sensitivity_bounds(self.parameters, self.lattice).squared_norm)

    def randomize(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
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
