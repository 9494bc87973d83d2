"""The tasks of Wang and Xu at an exact guarantee: central covariances and local reports."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.graphs.releases import scale
from benchmarks.graphs.truths import of_unit_rows
from benchmarks.papers import data
from benchmarks.papers.lw.tasks import estimating
from benchmarks.papers.task import Sample
from benchmarks.papers.wx.models import covariance
from benchmarks.utility.matrices import goe, triangle
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
Rng = np.random.Generator
MANY = 40_000


def rows(rng: Rng, p: int, sr: float, n: int) -> Sample:
    of = covariance(p, sr, rng)
    drawn = rng.standard_normal((n, p)) @ np.linalg.cholesky(of).T
    return Sample(data.unit(drawn), of_unit_rows(of))


def reports(rows: Array, epsilon: float, rng: Rng) -> Evidence:
    """Average noisy reports, each with the noise that the central sum would have."""
    n, p = rows.shape
    sd = scale("gaussian-iid", p, epsilon) / math.sqrt(n)
    raw = rows.T @ rows / n + triangle(lambda shape: rng.standard_normal(shape) * sd, p)
    law = NoiseLaw(family="gaussian-iid", sd_diagonal=sd, sd_off_diagonal=sd)
    return Evidence(raw, project(raw), law, float(n))


def our_reports(rows: Array, epsilon: float, rng: Rng) -> Evidence:
    """Average reports of Gramercy's mechanism: less noise off the diagonal, and denoised."""
    n, p = rows.shape
    sd = scale("gaussian", p, epsilon) / math.sqrt(n)
    raw = rows.T @ rows / n + goe(rng, p, sd)
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=sd, sd_off_diagonal=sd / math.sqrt(2))
    return Evidence(raw, denoise(raw, law, 1.0, float(n)), law, float(n))


def _title(p: int, sr: float, n: int) -> str:
    return f"p = {p}, sr = {sr:g}, n = {n:,}"


SHAPES = ((100, 0.2, 2000), (100, 0.2, MANY), (100, 0.5, MANY), (50, 0.2, MANY), (200, 0.2, MANY))
TASKS = {
    **{
        f"covariance-{p}-{sr:g}-{n}": estimating(
            f"covariance, {_title(p, sr, n)}", partial(rows, p=p, sr=sr, n=n), "wx"
        )
        for p, sr, n in SHAPES
    },
    "local": replace(
        estimating(
            f"covariance from local reports, {_title(50, 0.2, MANY)} (ours: local as well)",
            partial(rows, p=50, sr=0.2, n=MANY),
            "wx-local",
            reports,
        ),
        own=our_reports,
    ),
}
