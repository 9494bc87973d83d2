"""Pure epsilon and the slides' other mechanisms, with enough rows for useful results."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from benchmarks.arrays import Array, Rng
from benchmarks.graphs.releases import exact
from benchmarks.pages import table
from benchmarks.papers.experiment import Experiment, Figures, Measured, Verdict, grid, short
from benchmarks.papers.scores import relative
from benchmarks.papers.sound import EPSILONS
from benchmarks.papers.whx import noise, precision
from benchmarks.papers.whx.precision import N, P
from benchmarks.utility.matrices import triangle
from benchmarks.utility.ours import unit_noise

TITLES = {
    "laplace-published": "Laplace as published, 2p / epsilon; their estimator",
    "laplace": "Laplace, exactly calibrated; their estimator",
    "matrix-laplace": "matrix Laplace, denoised; our estimator",
    "k-norm": "K-norm, denoised; our estimator",
    "wishart": f"Wishart, exactly calibrated to (epsilon, {noise.DELTA:g}), denoised; ours",
    "gaussian": f"isotropic Gaussian, (epsilon, {noise.DELTA:g}), denoised; ours",
}
PURE = tuple(TITLES)[:4]
SLACK = 0.03
_DRAWS = 40


def experiment() -> Experiment:
    """Build the experiment of all mechanisms at one epsilon."""
    settings = grid(epsilon=EPSILONS)
    return Experiment(
        title="Pure epsilon, at an exact guarantee",
        about=(
            f"Relative Frobenius error of the precision matrix of a random graph, {N:,} rows of "
            f"length one, {P} columns, replace-one. Laplace noise as published has a valid "
            "guarantee, but more noise than necessary. Their estimator: the "
            "graphical lasso of the raw matrix with the best penalty in hindsight. Ours: our "
            "default on the denoised matrix, tuned on the release. The last two have a delta."
        ),
        settings=settings,
        repetitions=20,
        measure=measure,
        page=_page,
        verdicts=_verdicts,
        draw=_draw,
        quick=settings[1::2],
    )


def laplace_excess(p: int) -> float:
    """Factor of the scale 2p / epsilon over the scale that the sensitivity requires."""
    return 2 * p / noise.scale("laplace", p, 1.0)


def matrix_gain(p: int) -> float:
    """Factor of the published Laplace noise over matrix Laplace noise."""
    return unit_noise("laplace", p) * laplace_excess(p) / unit_noise("matrix-laplace", p)


def measure(rng: Rng, *, epsilon: float) -> Figures:
    """Measure one data set with one release of every mechanism."""
    sample = precision.drawn(rng)
    rows = sample.rows
    known = exact(rows)
    published = noise.laplace_scale(N, P, epsilon)
    calibrated = noise.scale("laplace", P, epsilon) / N
    released = {
        "laplace-published": noise.independent_laplace(rows, published, rng),
        "laplace": noise.independent_laplace(rows, calibrated, rng),
        "matrix-laplace": noise.matrix_laplace(rows, epsilon, rng),
        "k-norm": noise.k_norm(rows, epsilon, rng),
        "wishart": noise.wishart_exact(rows, epsilon, rng),
        "gaussian": noise.isotropic(rows, epsilon, rng),
    }
    figures: Figures = {
        "without": precision.ours(known, sample),
        "nothing": precision.by_length(sample),
    }
    for name, evidence in released.items():
        estimate = precision.theirs if name.startswith("laplace") else precision.ours
        figures[name] = estimate(evidence, sample)
        figures[f"{name} raw"] = relative(evidence.raw, known.raw)
    norms = {
        "laplace-published": partial(_laplace, rng, published),
        "matrix-laplace": partial(_matrix_laplace, rng, epsilon),
    }
    for name, draw in norms.items():
        squares = [np.square(draw()).sum() for _ in range(_DRAWS)]
        figures[f"{name} noise"] = math.sqrt(float(np.mean(squares)))
    return figures


def _laplace(rng: Rng, b: float) -> Array:
    return triangle(lambda of: rng.laplace(0, b, of), P)


def _matrix_laplace(rng: Rng, epsilon: float) -> Array:
    s = noise.scale("matrix-laplace", P, epsilon) / N
    return noise.wishart(rng, P, P + 1, s) - noise.wishart(rng, P, P + 1, s)


def _known(measured: Measured) -> list[float]:
    return [epsilon for epsilon in EPSILONS if measured.has(epsilon=epsilon)]


def _page(measured: Measured) -> Iterator[str]:
    known = _known(measured)
    head = ("mechanism", *(f"epsilon = {epsilon:g}" for epsilon in known))
    titles = TITLES | {"without": "without privacy", "nothing": "without the release"}
    yield "The precision matrix.\n"
    yield from table(
        head,
        (
            (title, *(str(measured.mean(name, epsilon=epsilon)) for epsilon in known))
            for name, title in titles.items()
        ),
    )
    yield "The raw second moment.\n"
    yield from table(
        head,
        (
            (title, *(str(measured.mean(f"{name} raw", epsilon=epsilon)) for epsilon in known))
            for name, title in TITLES.items()
        ),
    )


def noise_ratio(measured: Measured, epsilon: float) -> float:
    """Root mean square of the published Laplace noise over that of matrix Laplace noise."""
    one, other = (
        np.square(measured.values(f"{name} noise", epsilon=epsilon)).mean()
        for name in ("laplace-published", "matrix-laplace")
    )
    return math.sqrt(one / other)


def _verdicts(measured: Measured) -> Iterator[Verdict]:
    known = _known(measured)
    if not known:
        return
    means = {
        (name, epsilon): measured.mean(name, epsilon=epsilon).mean
        for name in (*TITLES, "without", "nothing")
        for epsilon in known
    }
    ratios = [noise_ratio(measured, epsilon) for epsilon in known]
    want = matrix_gain(P)
    yield Verdict(
        f"pure epsilon, {P} columns: Laplace as published has {want:.2f} times the noise of the "
        f"matrix Laplace mechanism, within {SLACK:.0%} (a factor of {laplace_excess(P):.2f} is "
        "unnecessary: the sensitivity is smaller by it)",
        max(abs(ratio / want - 1) for ratio in ratios) <= SLACK,
        ", ".join(f"{ratio:.2f}" for ratio in ratios),
    )
    gains = [means["laplace-published", each] / means["matrix-laplace", each] for each in known]
    yield Verdict(
        "pure epsilon: our default, tuned on the release, has a smaller error than Laplace as "
        "published with the best penalty in hindsight",
        min(gains) > 1,
        ", ".join(
            f"{short(gain)} x at {epsilon:g}" for gain, epsilon in zip(gains, known, strict=True)
        ),
    )
    useful = [
        epsilon
        for epsilon in known
        if means["laplace-published", epsilon] < means["nothing", epsilon]
    ]
    yield Verdict(
        "pure epsilon: Laplace as published, with the best penalty in hindsight, is better than "
        "not using the release",
        len(useful) == len(known),
        f"at {len(useful)} of {len(known)} epsilons",
    )
    over = [
        measured.mean("wishart raw", epsilon=epsilon).mean
        / measured.mean("gaussian raw", epsilon=epsilon).mean
        for epsilon in known
    ]
    yield Verdict(
        "Gaussian noise is the least (theirs; here isotropic, against the Wishart mechanism, both "
        "exactly calibrated)",
        min(over) > 1,
        f"Wishart: {', '.join(f'{ratio:.2f}' for ratio in over)} times the error of the raw matrix",
    )


def _draw(measured: Measured) -> Figure:
    canvas = Figure(figsize=(6.0, 4.2), layout="constrained")
    axes = canvas.subplots()
    known = _known(measured)
    for name, title in TITLES.items():
        means = [measured.mean(name, epsilon=epsilon) for epsilon in known]
        axes.errorbar(
            known,
            [each.mean for each in means],
            [0 if math.isnan(each.sd) else each.sd for each in means],
            marker="o",
            markersize=3,
            linestyle="-" if name in PURE else "--",
            linewidth=2.5 if name == "matrix-laplace" else 1.2,
            label=title.split(";")[0],
        )
    for name, style in (("without", "--"), ("nothing", ":")):
        level = [measured.mean(name, epsilon=epsilon).mean for epsilon in known]
        label = "without privacy" if name == "without" else "without the release"
        axes.plot(known, level, color="grey", linestyle=style, label=label)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="relative Frobenius error")
    axes.set_xticks(known, [f"{epsilon:g}" for epsilon in known])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    canvas.legend(loc="outside lower center", ncol=2, fontsize=7)
    return canvas
