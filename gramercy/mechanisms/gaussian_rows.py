"""Gaussian rows ("open data"): Y = X + Z, every row noisy by itself.

A row of the unit ball may move by its diameter, so mu = 2 / sigma per row exactly, attained at
antipodal rows. Under ``box``, where rows are not normalised, a row moves by the diagonal of the box
of bounds and a cell by its own range: mu = range / sigma per cell. What is published is Y itself; a
proof about the covariance of Y says nothing about that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice, row_lattice
from gramercy.mechanisms.accounting.gdp import gaussian_mu, gdp_epsilon, noise_scale
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import target_mu
from gramercy.mechanisms.mechanism import Setting
from gramercy.mechanisms.rowwise import RowWise, nominal_deviations, reach, rounded_variance
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.contract import ProtectedUnit
from gramercy.schemas.errors import RequestError
from gramercy.schemas.manifest import ReleaseKind
from gramercy.schemas.model import Decibels
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.specs import MechanismSpec


class NoisyRowsSpec(MechanismSpec):
    """What a request says of noise on rows.

    Parameters
    ----------
    snr
        In decibels, instead of epsilon: ten times the logarithm of the public power of a cell
        (1/p where rows are divided by their length) over the variance of the noise.
    """

    snr: Decibels | None = None

    ways: ClassVar[tuple[str, ...]] = ("epsilon", "mu", "snr")


class RowsSpec(NoisyRowsSpec):
    """``rows``: every row with Gaussian noise."""

    name: Literal["rows"] = "rows"


@dataclass(frozen=True)
class Rows(RowWise):
    """Gaussian noise on every cell of the normalised rows; `scale` is sigma."""

    name: ClassVar[str] = "rows"
    spec: ClassVar[type[MechanismSpec]] = RowsSpec
    publishes: ClassVar[ReleaseKind] = "rows"
    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row", "cell")

    @classmethod
    def _exact(cls, spec: NoisyRowsSpec, setting: Setting) -> Self:
        """Diameter or range over mu; or the scale that a signal-to-noise ratio names."""
        lattice = cls._lattice(setting)
        most = reach(setting, lattice)
        return cls._at(spec, setting, most.cell if setting.unit == "cell" else most.row)

    @classmethod
    def _published(cls, spec: NoisyRowsSpec, setting: Setting) -> Self:
        """The range of one cell over mu: tables that differ "in exactly one element"."""
        return cls._at(spec, setting, reach(setting, cls._lattice(setting)).cell)

    @classmethod
    def _at(cls, spec: NoisyRowsSpec, setting: Setting, squared: int) -> Self:
        if setting.unit == "cell" and setting.reach is None:
            raise RequestError(
                f"{cls.name}: normalised rows have no guarantee per cell, since one cell moves "
                "its whole row.",
                "Use 'normalisation: box'.",
            )
        root = math.ldexp(1.0, cls._lattice(setting).bits)
        if spec.snr is None:
            scale = noise_scale(squared, target_mu(spec)) / root
        else:
            scale = math.sqrt(setting.power / setting.p) * 10 ** (-spec.snr / 20)
        if not 2.0**-4 < scale * root < 2.0**45:
            raise RequestError(
                f"{cls.name}: noise of standard deviation {scale:.3g} cannot be drawn exactly.",
                f"Ask for {'more' if scale * root < 1 else 'less'} noise.",
            )
        return cls(setting, scale, spec.delta)

    @classmethod
    def _lattice(cls, setting: Setting) -> Lattice:
        return row_lattice(setting.p)

    @property
    def lattice(self) -> Lattice:
        """See `Mechanism.lattice`."""
        return self._lattice(self.setting)

    @property
    def step(self) -> float:
        """See `RowWise.step`."""
        return self.lattice.step

    @property
    def guarantee(self) -> Guarantee:
        """The reach of the protected unit over sigma: see the module."""
        return Guarantee(self._mu(self._protected()))

    @property
    def law(self) -> NoiseLaw:
        """See `Mechanism.law`."""
        variance = self._variance()
        diagonal, off_diagonal = nominal_deviations(self.setting, variance)
        return NoiseLaw(
            family="noisy-rows",
            sd_diagonal=diagonal,
            sd_off_diagonal=off_diagonal,
            cell_variance=variance,
        )

    def plan(self) -> dict[str, float]:
        """See `Mechanism.plan`: with mu, and epsilon at delta, per row and per cell."""
        most = reach(self.setting, self.lattice)
        of_row, of_cell = self._mu(most.row), self._mu(most.cell)
        return {
            "scale": self.scale,
            "sensitivity": math.sqrt(self._protected()) / self._root(),
            "snr_db": 10 * math.log10(self.setting.power / self.setting.p / self.scale**2),
            "mu_row": of_row,
            "epsilon_row": gdp_epsilon(of_row, self.delta),
            "mu_cell": of_cell,
            "epsilon_cell": gdp_epsilon(of_cell, self.delta),
        }

    def randomize(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `RowWise.randomize`."""
        return rows + sampler.rounded_gaussian(self._units(), rows.size).reshape(rows.shape)

    def gram(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `RowWise.gram`: Y^T Y less what the noise adds to it on average."""
        found: NDArray[np.float64] = noisy @ noisy.T
        found[np.diag_indices_from(found)] -= noisy.shape[1] * self._variance()
        return found

    def _root(self) -> float:
        """Integers per unit: a power of two, so that scales stay exact."""
        return math.ldexp(1.0, self.lattice.bits)

    def _units(self) -> float:
        """Sigma in lattice units."""
        return self.scale * self._root()

    def _protected(self) -> int:
        most = reach(self.setting, self.lattice)
        return most.cell if self.setting.unit == "cell" else most.row

    def _mu(self, squared: int) -> float:
        return gaussian_mu(squared, self._units())

    def _variance(self) -> float:
        """Of the noise on a published cell."""
        return rounded_variance(self._units()) * self.lattice.step**2
