"""What Wang and Xu estimate, at a sound guarantee: the covariance, central and from local reports.

Ours is the denoised matrix, what every release holds already: rows of length one have a covariance
close to I / p here, and entries off the diagonal so small that no method tells them from noise.
`ThresholdedCovariance` is beside it with many rows.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.graphs.releases import scale
from benchmarks.graphs.truths import of_unit_rows
from benchmarks.papers import data
from benchmarks.papers.lw.tasks import denoised, even, ours, thresholded
from benchmarks.papers.sound import Sample, Task
from benchmarks.papers.wx.models import covariance
from benchmarks.utility.matrices import triangle
from estimators.noise.denoise import project
from schemas.evidence import Evidence
from schemas.noise import NoiseLaw

Array = NDArray[np.float64]
Rng = np.random.Generator
COLUMNS = 100
SR = 0.2
MANY = 40_000


def rows(rng: Rng, n: int) -> Sample:
    of = covariance(COLUMNS, SR, rng)
    drawn = rng.standard_normal((n, COLUMNS)) @ np.linalg.cholesky(of).T
    return Sample(data.unit(drawn), of_unit_rows(of))


def reports(rows: Array, epsilon: float, rng: Rng) -> Evidence:
    """The average of noisy reports, each with the noise that a whole sum has centrally."""
    n, p = rows.shape
    sd = scale("gaussian-iid", p, epsilon) / math.sqrt(n)
    raw = rows.T @ rows / n + triangle(lambda shape: rng.standard_normal(shape) * sd, p)
    law = NoiseLaw(family="gaussian-iid", sd_diagonal=sd, sd_off_diagonal=sd)
    return Evidence(raw, project(raw), law, float(n))


_OF = f"p = {COLUMNS}, sr = {SR:g}"
TASKS = {
    "covariance-2000": Task(
        title=f"covariance, {_OF}, n = 2,000 (ours: the denoised matrix)",
        score="relative Frobenius error",
        sample=partial(rows, n=2000),
        paper=partial(thresholded, paper="wx"),
        default=denoised,
        nothing=even,
    ),
    "covariance-40000": Task(
        title=f"covariance, {_OF}, n = 40,000 (ours: the denoised matrix)",
        score="relative Frobenius error",
        sample=partial(rows, n=MANY),
        paper=partial(thresholded, paper="wx"),
        default=denoised,
        nothing=even,
    ),
    "thresholded-40000": Task(
        title=f"covariance, {_OF}, n = 40,000 (ours: thresholded)",
        score="relative Frobenius error",
        sample=partial(rows, n=MANY),
        paper=partial(thresholded, paper="wx"),
        default=ours,
        nothing=even,
    ),
    "local": Task(
        title=f"covariance, {_OF}, n = 40,000, from local reports (ours: central, denoised)",
        score="relative Frobenius error",
        sample=partial(rows, n=MANY),
        paper=partial(thresholded, paper="wx-local"),
        default=denoised,
        nothing=even,
        release=reports,
        covariance=False,
    ),
}
