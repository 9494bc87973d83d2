"""The isotropic Gaussian mechanism: white noise in svec coordinates of the Gram matrix.

G + E with E symmetric, E_ii ~ N(0, s^2) and E_ij ~ N(0, s^2/2), all independent for i <= j. With
svec(A) = (A_ii ..., sqrt2 A_ij ...) the noise is N(0, s^2 I) and ||svec(A)||_2 = ||A||_F, so the
mechanism is exactly mu-GDP with mu = Delta_F / s. Independent noise of one scale on the upper
triangle, as published by Su, Guo and Zhang (2020), Wang and Xu (2019) and Li and Wang (2023), has
the same guarantee and sqrt2 times the noise on every off-diagonal entry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from mechanisms import sampler
from mechanisms.guarantee import Guarantee, gaussian_mu, gdp_mu, noise_scale
from mechanisms.mechanism import Mechanism, Noisy
from schemas.contract import Neighbours
from schemas.lattice import Lattice
from schemas.noise import NoiseLaw
from schemas.request import MechanismSpec

# A noisy count is one more coordinate, weighted by 1/4: it costs 3 % more noise on the matrix.
COUNT_WEIGHT = 0.25


class GaussianSpec(MechanismSpec):
    """``gaussian``: the default; the least noise at a given (epsilon, delta)."""

    name: Literal["gaussian"] = "gaussian"


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Isotropic Gaussian noise on the Gram matrix.

    Parameters
    ----------
    p
        Number of columns.
    neighbours
        What one record may change.
    scale
        s, the standard deviation on a diagonal entry of the Gram matrix of unit-ball rows.
    counted
        Whether the number of rows is published as well, with noise of standard deviation 4 s.
    """

    name: ClassVar[str] = "gaussian"
    spec: ClassVar[type[MechanismSpec]] = GaussianSpec
    arithmetic: ClassVar[Literal["exact", "floating-point"]] = "exact"

    p: int
    neighbours: Neighbours
    scale: float
    counted: bool = False

    @classmethod
    def calibrated(
        cls,
        *,
        p: int,
        n: int,
        neighbours: Neighbours,
        epsilon: float,
        delta: float,
        counted: bool = False,
    ) -> Self:
        """See `Mechanism.calibrated`; Balle and Wang (2018) inverted exactly, rounded up."""
        squared = squared_sensitivity(p, neighbours, counted)
        return cls(p, neighbours, noise_scale(squared, gdp_mu(epsilon, delta)), counted)

    @property
    def sd_rows(self) -> float | None:
        """See `Mechanism.sd_rows`."""
        return self.scale / COUNT_WEIGHT if self.counted else None

    @property
    def guarantee(self) -> Guarantee:
        """Mu = Delta_F / s."""
        squared = squared_sensitivity(self.p, self.neighbours, self.counted)
        return Guarantee(gaussian_mu(squared, self.scale))

    def law(self, lattice: Lattice) -> NoiseLaw:
        """See `Mechanism.law`."""
        diagonal, off_diagonal = self._scales(lattice)
        return NoiseLaw(
            family="gaussian-isotropic",
            sd_diagonal=diagonal / lattice.divisor,
            sd_off_diagonal=off_diagonal / lattice.divisor,
        )

    def facts(self) -> dict[str, float]:
        """See `Mechanism.facts`."""
        squared = squared_sensitivity(self.p, self.neighbours, self.counted)
        facts = {"scale": self.scale, "sensitivity": math.sqrt(squared)}
        return facts if self.sd_rows is None else facts | {"sd_rows": self.sd_rows}

    def perturb(self, gram: NDArray[Any], rows: int, lattice: Lattice) -> Noisy:
        """See `Mechanism.perturb`."""
        if gram.shape != (self.p, self.p) or lattice.p != self.p:
            raise ValueError("the Gram matrix does not have the mechanism's shape")
        diagonal, off_diagonal = self._scales(lattice)
        upper = np.triu_indices(self.p, 1)
        noise = np.zeros((self.p, self.p), dtype=np.int64)
        noise[upper] = sampler.rounded_gaussian(off_diagonal, upper[0].size)
        noise += noise.T
        np.fill_diagonal(noise, sampler.rounded_gaussian(diagonal, self.p))
        if not self.counted:
            return Noisy(gram + noise, None)
        extra = sampler.rounded_gaussian(self.scale / COUNT_WEIGHT, 1)
        return Noisy(gram + noise, rows + int(extra[0]))

    def _scales(self, lattice: Lattice) -> tuple[float, float]:
        """Diagonal and off-diagonal scale in lattice units; the second rounded up."""
        diagonal = self.scale * lattice.ball
        return diagonal, math.nextafter(diagonal / math.sqrt(2), math.inf)


def squared_sensitivity(p: int, neighbours: Neighbours, counted: bool = False) -> float:
    """Delta_F^2 of the Gram matrix of rows in the unit ball, exactly.

    ||x x^T - y y^T||_F^2 = |x|^4 + |y|^4 - 2 (x.y)^2: at most 2, at orthogonal unit rows, which one
    column does not have; and 1 for a row present or absent. A row present or absent moves a
    weighted count by its weight; a row replaced does not.
    """
    if neighbours == "replace-one":
        return 2.0 if p > 1 else 1.0
    return 1.0 + (COUNT_WEIGHT**2 if counted else 0.0)
