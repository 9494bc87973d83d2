"""The lengths of rows that the noise calibration assumes to be one."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from benchmarks.pages import table
from benchmarks.papers.experiment import Experiment, Figures, Measured, Verdict, grid, short
from benchmarks.papers.wx.models import covariance
from gramercy.mechanisms.accounting.guarantee import Guarantee

Rng = np.random.Generator
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
