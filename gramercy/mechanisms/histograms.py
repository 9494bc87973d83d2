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
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gramercy.mechanisms.accounting.composition import composed_mu
from gramercy.mechanisms.accounting.gdp import gaussian_mu, gaussian_scale
from gramercy.mechanisms.sampling import sampler
from gramercy.mechanisms.sampling.rounding import rounded_variance
from gramercy.schemas import families, wordings
from gramercy.schemas.neighbours import Neighbours

Counts = NDArray[np.int64]

MIN_SCALE, MAX_SCALE = 2.0**-4, 2.0**45


@dataclass(frozen=True)
class HistogramNoise:
    """Gaussian noise on the counts of several histograms of one table."""

    histograms: int  # Number of histograms. Each protected unit adds one to one bin of each.
    neighbours: Neighbours  # neighbour relation
    scale: float  # standard deviation s of the Gaussian noise on every count, before it is rounded

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

        `counts`: exact counts of the bins of each histogram, each of shape (bins,). Private.

        Returns noisy counts of the same shapes, which may be published. They may be negative.
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
    """The noise of everything that private constants are computed from."""

    # Noise of each stage of histograms. Each stage has one histogram for each table column.
    stages: tuple[HistogramNoise, ...]
    # noise of the histogram of row lengths, and of that in the metric of a pilot matrix, if any
    lengths: HistogramNoise
    turned: HistogramNoise | None = None

    @classmethod
    def with_mu(
        cls,
        columns: int,
        neighbours: Neighbours,
        mus: Sequence[float],
        mu_lengths: float,
        mu_turned: float = 0.0,
    ) -> Self:
        """Return the least noise in which each draw has at most its mu."""
        stages = tuple(HistogramNoise.with_mu(columns, neighbours, each) for each in mus)
        turned = HistogramNoise.with_mu(1, neighbours, mu_turned) if mu_turned else None
        return cls(stages, HistogramNoise.with_mu(1, neighbours, mu_lengths), turned)

    @property
    def draws(self) -> tuple[HistogramNoise, ...]:
        """All draws in their order."""
        turned = () if self.turned is None else (self.turned,)
        return (*self.stages, self.lengths, *turned)

    @property
    def of_columns(self) -> HistogramNoise:
        """The noise of the last stage; where columns have no histograms, that of row lengths."""
        return self.stages[-1] if self.stages else self.lengths

    @property
    def mu(self) -> float:
        """Mu of all draws together, rounded up."""
        return composed_mu(each.mu for each in self.draws)

    def constants(self) -> dict[str, float]:
        """The scale of every draw, for the manifest and the plan."""
        stages = {f"scale_stage_{k}": each.scale for k, each in enumerate(self.stages, start=1)}
        turned = {} if self.turned is None else {"scale_turned_lengths": self.turned.scale}
        return {**stages, "scale_lengths": self.lengths.scale, **turned}


def _squared_sensitivity(histograms: int, neighbours: Neighbours) -> int:
    return Neighbours(neighbours).changed_units * histograms
