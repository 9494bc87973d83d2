"""What the pilot matrix of a release shows, for this release and for later ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
from gramercy.common.metric import Metric
from gramercy.estimators.noise.denoise import denoise
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.scaling.chain import replayed
from gramercy.scaling.whitening import Pilot
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]


def denoised_pilot(spec: ReleaseSpec, total: Array, noise: float) -> Array:
    """The noisy sum over rows of the unit ball without its noise; shape (q, q).

    `noise`: its standard deviation off the diagonal.
    """
    diagonal = math.sqrt(2) * noise
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=diagonal, sd_off_diagonal=noise)
    return denoise(total, law, float(spec.dataset.count), unit=False)


@dataclass(frozen=True, eq=False)
class ReleasedMetric:
    """The metric of another release, in which later ones can draw their matrices."""

    metric: Metric
    pilot: Pilot  # what its pilot matrix shows
    radius: float | None  # of its rows in the metric; None if they were not clipped in it

    @classmethod
    def of(cls, source: ReleaseBundle) -> ReleasedMetric | None:
        """That of a release; None if it has no pilot matrix."""
        facts, whitening = source.manifest, source.whitening
        calibration = calibrate(facts)
        if calibration.pilot is None or whitening is None or whitening.pilot is None:
            return None
        chain, histograms = replayed(facts, source.histograms, calibration.noise_of_sum(facts))
        of_pilot = calibration.pilot.noise_of_sum(1)
        shown = denoised_pilot(facts, whitening.pilot, of_pilot)
        turning = chain.turning(histograms[-1], facts, shown, of_pilot)
        radius = facts.scaling.metric_radius if facts.scaling else None
        return cls(Metric(whitening.metric), turning.pilot, radius)
