"""One release of every noise law at a given strength; seeded noise (benchmarks only)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.denoise import denoise, project
from gramercy.estimators.noise.draws import Stream, draw, draw_row_noise, equivalent_rows
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import Family, NoiseLaw

Array = NDArray[np.float64]
FAMILIES: tuple[Family, ...] = ("none", *(each for each in get_args(Family) if each != "none"))
STRENGTHS = (0.001, 0.01, 0.02, 0.05, 0.2)
WEAK = 0.015  # below it use the projection: denoising is slow and changes little


def kinds() -> Iterator[tuple[Family, float]]:
    """Yield every noise law with every strength."""
    yield "none", 0.0
    yield from product(FAMILIES[1:], STRENGTHS)


def law_of(family: Family, p: int, n: int, power: float, strength: float) -> NoiseLaw:
    """Noise law whose off-diagonal deviation is `strength` times the average diagonal entry.

    Parameters
    ----------
    family
        Family of the law. Wishart matrices have p + 1 degrees of freedom, the fewest that a
        mechanism uses.
    p, n
        Numbers of columns and rows.
    power
        The average diagonal entry.
    strength
        Relative deviation. For noisy rows, the variance v of a cell solves
        2 v power + v^2 = n sd^2, which holds for uncorrelated columns.
    """
    if family == "none":
        return NoiseLaw.none()
    sd = strength * power
    wide = 1.0 if family in {"gaussian-iid", "laplace"} else math.sqrt(2)
    dof = p + 1.0 if family in {"wishart", "matrix-laplace"} else None
    cell = None
    if family == "noisy-rows":
        cell = power * (math.sqrt(1 + n * strength**2) - 1)
    return NoiseLaw(
        family=family, sd_diagonal=wide * sd, sd_off_diagonal=sd, dof=dof, cell_variance=cell
    )


def release(moment: Array, n: int, law: NoiseLaw, source: Stream, *, unit: bool) -> Evidence:
    """Release the second moment of n rows with noise, and add the repaired matrix."""
    raw = moment
    if law.cell_variance is not None:
        raw = moment + draw_row_noise(source, equivalent_rows(moment, n), law.cell_variance, n)
    elif law.family != "none":
        raw = moment + draw(source, len(moment), law)
    weak = law.sd_off_diagonal <= WEAK * np.trace(moment) / len(moment)
    repaired = project(raw) if weak else denoise(raw, law, 1.0, float(n), unit=unit)
    return Evidence(raw, repaired, law, float(n), unit=unit)
