"""What clipping does to a regression, apart from noise and sampling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.analyses.populations import Fitted, Population, coverage
from benchmarks.statistics.methods import clipped_moment
from benchmarks.statistics.rule import Scaled, private_rows

Array = NDArray[np.float64]


def clipped_coefficients(population: Population, scaled: Scaled) -> Array:
    """Least squares of the population's rows, clamped and clipped as in the release; shape (k,)."""
    moment = clipped_moment(private_rows(population.table, scaled.constants), scaled.radius)
    found = np.linalg.solve(moment[:-1, :-1], moment[:-1, -1])[1:]
    scales = np.array([each.scale for each in scaled.constants])
    coefficients: Array = found * scales[-1] / scales[:-1]
    return coefficients


def clipped_coverage(fits: Sequence[Fitted], targets: Sequence[Array]) -> dict[str, float]:
    """``clipped coverage`` and ``clipped worst``: of the `clipped_coefficients` of each release."""
    found = coverage(fits, np.array(targets))
    return {f"clipped {of}": found[of] for of in ("coverage", "worst") if of in found}
