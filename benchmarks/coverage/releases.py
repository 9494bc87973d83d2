"""One release of every law of noise, at a stated strength; seeded noise (benchmarks only)."""

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
WEAK = 0.015  # below, denoising changes little and takes most of the time: projected


def kinds() -> Iterator[tuple[Family, float]]:
    """Every law and strength."""
    yield "none", 0.0
    yield from product(FAMILIES[1:], STRENGTHS)


def law_of(family: Family, p: int, n: int, power: float, strength: float) -> NoiseLaw:
    """Noise with a deviation off the diagonal of `strength` times the average diagonal entry.

    Parameters
    ----------
    family
        Of the noise. Wishart matrices have the fewest degrees of freedom a mechanism gives, p + 1.
    p, n
        Columns, rows.
    power
        The average diagonal entry.
    strength
        Of noisy rows, for columns without correlation: 2 v power + v^2 = n sd^2.
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
    """The second moment of n rows as it is published, and its repair."""
    raw = moment
    if law.cell_variance is not None:
        raw = moment + draw_row_noise(source, equivalent_rows(moment, n), law.cell_variance, n)
    elif law.family != "none":
        raw = moment + draw(source, len(moment), law)
    weak = law.sd_off_diagonal <= WEAK * np.trace(moment) / len(moment)
    repaired = project(raw) if weak else denoise(raw, law, 1.0, float(n))
    return Evidence(raw, repaired, law, float(n), unit=unit)
