"""Gaussian noise on the counts of histograms, in exact arithmetic.

Every protected unit adds one to exactly one bin of each of c histograms. Replacing a unit takes one
from a bin and adds one to a bin of each: the vector of all counts moves by at most sqrt(2 c).
Adding or removing a unit moves it by sqrt(c). Both are attained. Independent N(0, s^2) on every
count is then mu-GDP with mu = Delta / s. Counts are integers, so rounding the noise to integers is
post-processing.

Histograms of all columns and of row lengths give public constants. Their draws are adaptive: the
bins of a stage follow from the histograms published before it, and row lengths are measured with
the constants that follow from the last stage. The mu of each draw is fixed in advance, so all of
them together are mu-GDP with mu the root of the sum of squares. The proof is in
docs/mechanisms/marginals.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice, UnscaledLattice
from gramercy.mechanisms.accounting.composition import composed_mu, split_mu
from gramercy.mechanisms.accounting.gdp import gaussian_mu, gaussian_scale
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import target_mu
from gramercy.mechanisms.mechanism import Mechanism, PublicParameters, rounded_variance
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas import families, wordings
from gramercy.schemas.neighbours import Neighbours, ProtectedUnit
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.publications import MARGINALS, Publication
from gramercy.schemas.request_parts import MechanismSpec

Counts = NDArray[np.int64]

MIN_SCALE, MAX_SCALE = 2.0**-4, 2.0**45


@dataclass(frozen=True)
class HistogramNoise:
    """Gaussian noise on the counts of several histograms of one table.

    Parameters
    ----------
    histograms
        Number of histograms. Each protected unit adds one to one bin of each.
    neighbours
        Neighbour relation.
    scale
        Standard deviation s of the Gaussian noise on every count, before it is rounded.
    """

    histograms: int
    neighbours: Neighbours
    scale: float

    @classmethod
    def with_mu(cls, histograms: int, neighbours: Neighbours, mu: float) -> Self:
        """Return the least noise whose mu, rounded up, is at most a given one."""
        scale = gaussian_scale(_squared_sensitivity(histograms, neighbours), mu)
        if not scale > MIN_SCALE:
            raise wordings.noise_too_small("histograms", scale)
        if not scale < MAX_SCALE:
            raise wordings.noise_too_large("histograms", scale)
        return cls(histograms, neighbours, scale)

    @property
    def squared_sensitivity(self) -> int:
        """Squared l2 sensitivity of the vector of all counts: 2 c under replace-one, else c."""
        return _squared_sensitivity(self.histograms, self.neighbours)

    @property
    def mu(self) -> float:
        """Mu = Delta / s, rounded up."""
        return gaussian_mu(self.squared_sensitivity, self.scale)

    @property
    def sd(self) -> float:
        """Standard deviation of the rounded noise on a count; slightly above `scale`."""
        return math.sqrt(rounded_variance(self.scale))

    def perturb(self, counts: Sequence[Counts]) -> tuple[Counts, ...]:
        """Draw the noise, once, and add it.

        Parameters
        ----------
        counts
            Exact counts of the bins of each histogram, each of shape (bins,). Private.

        Returns
        -------
        tuple of ndarray of int64
            Noisy counts of the same shapes, which may be published. They may be negative.
        """
        if len(counts) != self.histograms:
            raise families.ARGUMENT(
                "The noise is for {histograms} histograms of each stage.",
                histograms=self.histograms,
            )
        noise = sampler.rounded_gaussian(self.scale, sum(each.size for each in counts))
        ends = np.cumsum([each.size for each in counts])[:-1]
        parts = np.split(noise, ends)
        return tuple(exact + drawn for exact, drawn in zip(counts, parts, strict=True))


@dataclass(frozen=True)
class ConstantsNoise:
    """The noise of everything that private constants are computed from.

    Parameters
    ----------
    stages
        Noise of each stage of histograms. Each stage has one histogram for each table column.
    lengths
        Noise of the histogram of row lengths.
    """

    stages: tuple[HistogramNoise, ...]
    lengths: HistogramNoise

    @classmethod
    def with_mu(
        cls, columns: int, neighbours: Neighbours, mus: Sequence[float], mu_lengths: float
    ) -> Self:
        """Return the least noise in which each draw has at most its mu."""
        stages = tuple(HistogramNoise.with_mu(columns, neighbours, each) for each in mus)
        return cls(stages, HistogramNoise.with_mu(1, neighbours, mu_lengths))

    @property
    def draws(self) -> tuple[HistogramNoise, ...]:
        """All draws in their order."""
        return (*self.stages, self.lengths)

    @property
    def mu(self) -> float:
        """Mu of all draws together, rounded up."""
        return composed_mu(each.mu for each in self.draws)

    def constants(self) -> dict[str, float]:
        """The scale of every draw, for the manifest and the plan."""
        stages = {f"scale_stage_{k}": each.scale for k, each in enumerate(self.stages, start=1)}
        return {**stages, "scale_lengths": self.lengths.scale}


def _squared_sensitivity(histograms: int, neighbours: Neighbours) -> int:
    return Neighbours(neighbours).changed_units * histograms


_SHARES = (0.4, 0.2, 0.2, 0.2)  # of three stages and of row lengths, where none are stated


class MarginalsSpec(MechanismSpec):
    """``marginals``: histograms of every column; later releases can take their constants."""

    name: Literal["marginals"] = "marginals"


@dataclass(frozen=True)
class Marginals(Mechanism):
    """Gaussian noise on histograms of all columns, in stages, and on one of row lengths.

    Parameters
    ----------
    parameters
        Public facts of the table.
    noise
        The noise of each draw.
    """

    parameters: PublicParameters
    noise: ConstantsNoise

    name: ClassVar[str] = "marginals"
    spec: ClassVar[type[MechanismSpec]] = MarginalsSpec
    publishes: ClassVar[Publication] = MARGINALS
    estimates_constants: ClassVar[bool] = True
    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row", "person")

    @classmethod
    def _exact(cls, spec: MechanismSpec, parameters: PublicParameters) -> Self:
        """The squared mu is divided between the draws in the proportions of `histogram_shares`."""
        columns = parameters.table_columns or parameters.p
        shares = parameters.histogram_shares or _SHARES
        *stages, lengths = split_mu(target_mu(spec), shares)
        noise = ConstantsNoise.with_mu(columns, parameters.neighbours, stages, lengths)
        return cls(parameters, noise)

    @classmethod
    def _published(cls, spec: MechanismSpec, parameters: PublicParameters) -> Self:
        raise families.UNSUPPORTED(
            "{mechanism} has no published calibration.",
            "Use 'calibration: exact'.",
            mechanism=cls.name,
        )

    @property
    def guarantee(self) -> Guarantee:
        """Mu of all draws together."""
        return Guarantee(self.noise.mu)

    @property
    def lattice(self) -> Lattice:
        """See `Mechanism.lattice`: the integers, since counts are neither scaled nor rounded."""
        return UnscaledLattice(self.parameters.p)

    @property
    def law(self) -> NoiseLaw:
        """See `Mechanism.law`: no matrix is published. `constants` has the noise of the counts."""
        return NoiseLaw.none()

    @property
    def constants_noise(self) -> ConstantsNoise:
        """See `Mechanism.constants_noise`."""
        return self.noise

    def noise_of_sum(self, folds: int) -> float:
        """See `Mechanism.noise_of_sum`: there is no sum; that of a matrix of the same mu."""
        return math.sqrt(self.parameters.neighbours.changed_units / 2) / self.guarantee.mu

    def constants(self) -> dict[str, float]:
        """See `Mechanism.constants`.

        ``scale`` is that of the last stage, whose histograms are the published marginals.
        """
        stages, lengths = self.noise.stages, self.noise.lengths
        return {
            "scale": stages[-1].scale,
            "sensitivity": math.sqrt(stages[-1].squared_sensitivity),
            **self.noise.constants(),
            "sensitivity_lengths": math.sqrt(lengths.squared_sensitivity),
        }
