"""The sparse covariance of Wang and Xu, and normal rows with this covariance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from benchmarks.arrays import Array, Rng
from benchmarks.graphs.releases import scale
from benchmarks.graphs.truths import of_unit_rows
from benchmarks.pages import table
from benchmarks.papers import data
from benchmarks.papers.experiment import Experiment, Figures, Measured, Verdict, grid, short
from benchmarks.papers.lw.models import estimating
from benchmarks.papers.task import Sample
from benchmarks.utility.matrices import goe, triangle
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw

LAMBDA = 50.0
C = 200.0
GAMMA = 1.0

ABOUT = (
    "The covariance is U = (U~ + 50 I) / 200, U~ symmetric with a share sr of entries that are not "
    "zero. The paper does not state the distribution: here uniform on [0, 1], off the diagonal. "
    "It names "
    f"no gamma: here {GAMMA:g}, for which its lemma holds with equality: entries off the diagonal "
    "have the deviation 0.25 / sqrt(n), and exceed gamma sqrt(log p / n) with probability p^-8. "
    "It prints curves and no numbers, so only its claims can be tested. Rows are used as they are "
    "drawn, and delta = 1/n. The paper thresholds "
    "every entry, those on the diagonal too."
)


def covariance(p: int, sr: float, rng: Rng) -> Array:
    """Draw a sparse covariance with about sr p^2 nonzero entries off the diagonal."""
    i, j = np.triu_indices(p, 1)
    chosen = rng.permutation(i.size)[: round(sr * p * p / 2)]
    sparse = np.zeros((p, p))
    sparse[i[chosen], j[chosen]] = rng.random(chosen.size)
    made: Array = (sparse + sparse.T + LAMBDA * np.eye(p)) / C
    return made


def moment(covariance: Array, n: int, rng: Rng) -> Array:
    """Draw X^T X / n of n normal rows, by Bartlett's decomposition if n >= p."""
    p = len(covariance)
    root = np.linalg.cholesky(covariance)
    if n < p:
        factor = rng.standard_normal((p, n))
    else:
        factor = np.tril(rng.standard_normal((p, p)), -1)
        np.fill_diagonal(factor, np.sqrt(rng.chisquare(n - np.arange(p))))
    half = root @ factor
    made: Array = half @ half.T / n
    return made


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


ROWS = 2000
SR = 0.2
EPSILON = 1.0
SETTINGS = grid(p=(50, 100, 200, 500))


def measure(rng: Rng, *, p: int) -> Figures:
    """Measure row norms, and the guarantee for the row of median norm against the zero row."""
    root = np.linalg.cholesky(covariance(p, SR, rng))
    lengths = np.linalg.norm(rng.standard_normal((ROWS, p)) @ root.T, axis=1)
    median = float(np.median(lengths))
    # Replacing the zero row by a row of length r moves the sum by r^2.
    scale = math.sqrt(2 * math.log(1.25 * ROWS)) / EPSILON
    return {
        "median": median,
        "shortest": float(lengths.min()),
        "within": float((lengths <= 1).mean()),
        "epsilon": Guarantee(median**2 / scale).epsilon(1 / ROWS),
    }


def _page(measured: Measured) -> Iterator[str]:
    names = ("median", "shortest", "within", "epsilon")
    yield from table(
        (
            "p", "median length", "shortest", "share of length at most 1",
            f"exact epsilon of the median row at nominal {EPSILON:g}",
        ),
        (
            (str(of["p"]), *(str(measured.mean(name, **of)) for name in names))
            for of in map(dict, measured.settings)
        ),
    )  # fmt: skip


def _verdicts(measured: Measured) -> Iterator[Verdict]:
    settings = [dict(setting) for setting in measured.settings]
    if settings:
        medians = ", ".join(short(measured.mean("median", **of).mean) for of in settings)
        share = max(measured.mean("within", **of).mean for of in settings)
        sizes = ", ".join(str(of["p"]) for of in settings)
        yield Verdict(
            "Scaling by c = 200 makes rows shorter than 1 with high probability",
            share > 0.5,
            f"{share:.1%} of the rows are, at most; median lengths {medians} at p = {sizes}",
        )


def _draw(measured: Measured) -> Figure:
    canvas = Figure(figsize=(5.5, 3.4), layout="constrained")
    axes = canvas.subplots()
    at = [dict(setting)["p"] for setting in measured.settings]
    for name in ("median", "shortest"):
        means = [measured.mean(name, p=p).mean for p in at]
        axes.plot(at, means, marker="o", label=f"{name} row")
    axes.axhline(1, color="grey", linestyle=":", label="length assumed by the noise")
    axes.set(xlabel="columns", ylabel="length")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return canvas


EXPERIMENT = Experiment(
    title="Lengths of rows",
    about=(
        f"{ROWS:,} rows, sr = {SR:g}. The paper says that scaling makes the norm of a row less "
        "than 1 with high probability, and calibrates its noise accordingly. Exact epsilon: of "
        "the "
        "noise as published, delta = 1/n, when the row of median length replaces the zero row."
    ),
    settings=SETTINGS,
    repetitions=5,
    measure=measure,
    page=_page,
    verdicts=_verdicts,
    draw=_draw,
    quick=SETTINGS,
)
