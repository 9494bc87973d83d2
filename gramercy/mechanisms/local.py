"""Local reports: every row sends x x^T with noise, and the server only ever sees the reports.

svec(x x^T) + N(0, s^2 I): mu = sqrt2 / s for whoever a row belongs to, whatever the server does.
Averaged over n reports the noise is s / sqrt(n). Wang and Xu (2019), Algorithm 2, and Li and Wang
(2023), Algorithm 2, publish independent noise on the upper triangle with the sensitivity 1, which
is too little by sqrt2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.mechanisms.accounting.gdp import gaussian_mu, noise_scale
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.additive import half, squared_sensitivity
from gramercy.mechanisms.gaussian import classical, target_mu
from gramercy.mechanisms.mechanism import Setting
from gramercy.mechanisms.rowwise import RowWise
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.errors import RequestError
from gramercy.schemas.manifest import ReleaseKind
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.specs import MechanismSpec

MOST_ENTRIES = 5000
_BITS = 12


class LocalSpec(MechanismSpec):
    """``local``: one noisy report a row, made where the rows are, averaged elsewhere."""

    name: Literal["local"] = "local"


@dataclass(frozen=True)
class Local(RowWise):
    """Gaussian noise on every row's own x x^T.

    Parameters
    ----------
    scale
        s, the standard deviation on a diagonal entry.
    iid
        Whether all entries of the upper triangle have this scale, as published.
    """

    iid: bool = False

    name: ClassVar[str] = "local"
    spec: ClassVar[type[MechanismSpec]] = LocalSpec
    publishes: ClassVar[ReleaseKind] = "reports"

    @classmethod
    def _exact(cls, spec: MechanismSpec, setting: Setting) -> Self:
        """Sqrt2 / mu."""
        scale = noise_scale(squared_sensitivity(setting), target_mu(spec))
        return cls(_narrow(setting), scale, spec.delta)

    @classmethod
    def _published(cls, spec: MechanismSpec, setting: Setting) -> Self:
        """sqrt(2 ln(1.25 / delta)) / epsilon on every entry."""
        return cls(_narrow(setting), classical(spec, 1.0), spec.delta, iid=True)

    @property
    def lattice(self) -> Lattice:
        """See `Mechanism.lattice`: the same at every source, so that reports add up.

        A coarse one, since the noise on a single report is large: the sampler stays quick.
        """
        return Lattice(self.setting.p, _BITS)

    @property
    def step(self) -> float:
        """See `RowWise.step`."""
        return 1 / self.lattice.divisor

    @property
    def guarantee(self) -> Guarantee:
        """Mu = sqrt2 / s, for every row by itself."""
        return Guarantee(gaussian_mu(squared_sensitivity(self.setting), self.scale))

    @property
    def law(self) -> NoiseLaw:
        """See `Mechanism.law`: of the sum of all reports."""
        diagonal, off_diagonal = self._scales()
        root = math.sqrt(self.setting.n) * self.step
        return NoiseLaw(
            family="gaussian-iid" if self.iid else "gaussian-isotropic",
            sd_diagonal=diagonal * root,
            sd_off_diagonal=off_diagonal * root,
        )

    def plan(self) -> dict[str, float]:
        """See `Mechanism.plan`."""
        return {"scale": self.scale, "sensitivity": math.sqrt(squared_sensitivity(self.setting))}

    def randomize(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `RowWise.randomize`."""
        i, j = np.triu_indices(self.setting.p)
        reports = rows[i] * rows[j]
        diagonal, off_diagonal = self._scales()
        on = i == j
        for which, scale in ((on, diagonal), (~on, off_diagonal)):
            shape = (int(which.sum()), rows.shape[1])
            noise = sampler.rounded_gaussian(scale, shape[0] * shape[1])
            reports[which] += noise.reshape(shape)
        return reports

    def gram(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `RowWise.gram`: the sum of the reports."""
        p = self.setting.p
        found = np.zeros((p, p))
        found[np.triu_indices(p)] = noisy.sum(axis=1)
        return found + np.triu(found, 1).T

    def _scales(self) -> tuple[float, float]:
        """Diagonal and off-diagonal scale in lattice units."""
        diagonal = self.scale * self.lattice.ball
        return diagonal, diagonal if self.iid else half(diagonal)


def _narrow(setting: Setting) -> Setting:
    entries = setting.p * (setting.p + 1) // 2
    if entries > MOST_ENTRIES:
        raise RequestError(
            f"local: a report of {setting.p} columns has {entries} entries, more than "
            f"{MOST_ENTRIES}.",
            "Publish fewer columns.",
        )
    return setting
