"""Local reports: every row sends x x^T with noise, and the server sees only the reports.

A report is svec(x x^T) + N(0, s^2 I), with mu = sqrt2 / s for each row, even if the server is not
trusted. The average of n reports has noise of scale s / sqrt(n).

Wang and Xu (2019), Algorithm 2, and Li and Wang (2023), Algorithm 2, publish independent noise on
the upper triangle with the sensitivity 1, which is too small by sqrt2. The proof is in
docs/mechanisms/local.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.mechanisms.accounting.gdp import gaussian_mu, gaussian_scale
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import classical_scale, target_mu
from gramercy.mechanisms.mechanism import (
    PublicParameters,
    RowWise,
    off_diagonal_scale,
    squared_sensitivity,
)
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas import families
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.publications import REPORTS, Publication
from gramercy.schemas.request_parts import MechanismSpec

MAX_ENTRIES = 5000
_BITS = 12


class LocalSpec(MechanismSpec):
    """``local``: one noisy report per row, made where the rows are and averaged by a server."""

    name: Literal["local"] = "local"


@dataclass(frozen=True)
class Local(RowWise):
    """Gaussian noise on x x^T of every row.

    Parameters
    ----------
    scale
        s, the standard deviation of the noise on a diagonal entry.
    """

    # whether all entries of the upper triangle have noise of this scale, as published
    iid: bool = False

    name: ClassVar[str] = "local"
    spec: ClassVar[type[MechanismSpec]] = LocalSpec
    publishes: ClassVar[Publication] = REPORTS

    @classmethod
    def _exact(cls, spec: MechanismSpec, parameters: PublicParameters) -> Self:
        """The scale s = sqrt2 / mu."""
        scale = gaussian_scale(squared_sensitivity(parameters), target_mu(spec))
        return cls(_check_report_length(parameters), scale, spec.delta)

    @classmethod
    def _published(cls, spec: MechanismSpec, parameters: PublicParameters) -> Self:
        """The scale sqrt(2 ln(1.25 / delta)) / epsilon on every entry."""
        return cls(
            _check_report_length(parameters), classical_scale(spec, 1.0), spec.delta, iid=True
        )

    @property
    def lattice(self) -> Lattice:
        """The same at every source, so that reports can be added.

        It is coarse, because the noise on a single report is large; so the sampler stays fast.
        """
        return Lattice(self.parameters.p, _BITS)

    @property
    def step(self) -> float:
        return 1 / self.lattice.divisor

    @property
    def guarantee(self) -> Guarantee:
        """Mu = sqrt2 / s, for each row separately."""
        return Guarantee(gaussian_mu(squared_sensitivity(self.parameters), self.scale))

    @property
    def law(self) -> NoiseLaw:
        """The noise on the sum of all reports."""
        diagonal, off_diagonal = self._scales()
        root = math.sqrt(self.parameters.n) * self.step
        return NoiseLaw(
            family="gaussian-iid" if self.iid else "gaussian-isotropic",
            sd_diagonal=diagonal * root,
            sd_off_diagonal=off_diagonal * root,
        )

    def constants(self) -> dict[str, float]:
        return {"scale": self.scale, "sensitivity": math.sqrt(squared_sensitivity(self.parameters))}

    def randomize(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        i, j = np.triu_indices(self.parameters.p)
        reports = rows[i] * rows[j]
        diagonal, off_diagonal = self._scales()
        on_diagonal = i == j
        for entries, scale in ((on_diagonal, diagonal), (~on_diagonal, off_diagonal)):
            shape = (int(entries.sum()), rows.shape[1])
            noise = sampler.rounded_gaussian(scale, shape[0] * shape[1])
            reports[entries] += noise.reshape(shape)
        return reports

    def gram(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of the reports."""
        p = self.parameters.p
        upper = np.zeros((p, p))
        upper[np.triu_indices(p)] = noisy.sum(axis=1)
        return upper + np.triu(upper, 1).T

    def _scales(self) -> tuple[float, float]:
        """Diagonal and off-diagonal scale in lattice units."""
        diagonal = self.scale * self.lattice.squared_radius
        return diagonal, diagonal if self.iid else off_diagonal_scale(diagonal)


def _check_report_length(parameters: PublicParameters) -> PublicParameters:
    entries = parameters.p * (parameters.p + 1) // 2
    if entries > MAX_ENTRIES:
        raise families.NOISE_RANGE(
            "local: a report of {columns} columns has {entries} entries; the limit is {limit}.",
            "Publish fewer columns.",
            columns=parameters.p,
            entries=entries,
            limit=MAX_ENTRIES,
        )
    return parameters
