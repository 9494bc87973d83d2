"""Noise in every step of ADMM, which section 3.2 of the paper considers, and what it costs.

Each Theta-step reads S = X^T X / n. As in the paper, a step is made private by noise on the S that
it reads, fresh in each step. Replacing one row of length one moves S by sqrt2 / n in Frobenius
norm. So T steps with isotropic noise of deviation s are exactly mu-GDP, mu = sqrt(2 T) / (n s), and
the noise of a step is sqrt T times that of one release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from benchmarks.arrays import Array, Rng
from benchmarks.graphs import scores
from benchmarks.graphs.methods import REFERENCE
from benchmarks.graphs.releases import DELTA, isotropic, scale
from benchmarks.graphs.scores import Target
from benchmarks.graphs.truths import truth
from benchmarks.pages import table
from benchmarks.papers.experiment import Experiment, Figures, Measured, Verdict, grid, short
from benchmarks.utility.matrices import goe
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.tuning.penalty_rule import edge_mask, penalty_grid

P = 20
STEPS = (5, 20, 100)
SETTINGS = grid(n=(2_000, 10_000, 50_000), epsilon=(1.0, 4.0))
RHOS = np.geomspace(1e-3, 10, 4) / P
PENALTIES = np.geomspace(0.5, 1e-3, 8) / P
MEASURES = {"f1": "F1 score of the edges", "stein": "Stein loss"}


def measure(rng: Rng, *, n: int, epsilon: float) -> Figures:
    """Score ADMM with noise in every step, and one release, on the same rows."""
    known = truth("random", P, rng)
    target = Target(known.moment, known.edges, invertible=True)
    rows = known.rows(n, rng)
    moment = rows.T @ rows / n
    figures: Figures = {}
    release = isotropic(rows, epsilon, rng)
    for steps in STEPS:
        sd = math.sqrt(steps) * scale("gaussian", P, epsilon) / n
        for name, matrix, deviation in (("every", moment, sd), ("once", release.raw, 0.0)):
            found = list(noisy_steps(matrix, steps, deviation, rng))
            losses = [loss for T, _ in found if (loss := scores.stein(T, target)) is not None]
            figures[f"f1 {name} {steps}"] = max(scores.f1(edge_mask(Z), target) for _, Z in found)
            figures[f"stein {name} {steps}"] = min(losses)
    path = GraphicalLasso().path(release, penalty_grid(release.repaired))
    solved = [T for T in path if T is not None]
    fit = REFERENCE.fit(release)
    assert fit.edges is not None
    losses = [loss for T in solved if (loss := scores.stein(T, target)) is not None]
    figures |= {
        "f1 best": max(scores.f1(edge_mask(T), target) for T in solved),
        "stein best": min(losses),
        "f1 default": scores.f1(fit.edges != 0, target),
        "stein default": scores.stein(fit.matrix, target),
    }
    return figures


def noisy_steps(moment: Array, steps: int, sd: float, rng: Rng) -> Iterator[tuple[Array, Array]]:
    """Theta and Z after the steps from zero, for every rho and penalty, with the same noise.

    `sd` is the deviation of the noise on a diagonal entry, in each step.
    """
    p = len(moment)
    rho, penalty = (each.reshape(-1, 1, 1) for each in np.meshgrid(RHOS, PENALTIES))
    T = Z = U = np.zeros((rho.size, p, p))
    for _ in range(steps):
        S = moment + goe(rng, p, sd)
        values, Q = np.linalg.eigh(rho * (Z - U) - S)
        values = (values + np.sqrt(values**2 + 4 * rho[:, 0])) / (2 * rho[:, 0])
        T = (Q * values[:, None, :]) @ Q.transpose(0, 2, 1)
        kept = np.abs(T + U) - penalty / rho
        Z = np.sign(T + U) * np.maximum(kept, 0)
        U = T + U - Z
    yield from zip(T, Z, strict=True)


TITLES = {
    **{
        f"{name} {steps}": f"{steps} steps, noise {title}"
        for steps in STEPS
        for name, title in (("every", "in each"), ("once", "once"))
    },
    "best": "one release, converged, best penalty",
    "default": "one release, `ebic`, refit",
}


def _page(measured: Measured) -> Iterator[str]:
    for figure, title in MEASURES.items():
        yield f"{title}.\n"
        yield from table(
            ("rows", "epsilon", *TITLES.values()),
            (
                (
                    f"{of['n']:,}",
                    f"{of['epsilon']:g}",
                    *(str(measured.mean(f"{figure} {name}", **of)) for name in TITLES),
                )
                for of in map(dict, measured.settings)
            ),
        )


def _verdicts(measured: Measured) -> Iterator[Verdict]:
    settings = [dict(setting) for setting in measured.settings]
    for figure, title in MEASURES.items():
        sign = 1 if figure == "stein" else -1
        pairs = [
            tuple(measured.mean(f"{figure} {name} {steps}", **of) for name in ("every", "once"))
            for of in settings
            for steps in STEPS
        ]
        gains = [sign * (once.mean - every.mean) for every, once in pairs]
        errors = [2 * math.hypot(every.error, once.error) for every, once in pairs]
        better = sum(gain > error for gain, error in zip(gains, errors, strict=True))
        worse = sum(gain < -error for gain, error in zip(gains, errors, strict=True))
        yield Verdict(
            "The same steps of ADMM with noise in each are nowhere better than with noise once, at "
            f"the same guarantee: {title}",
            not better,
            f"better in {better}, worse in {worse} of {len(pairs)} settings; medians "
            f"{short(float(np.median([every.mean for every, _ in pairs])))} and "
            f"{short(float(np.median([once.mean for _, once in pairs])))}",
        )


def _draw(measured: Measured) -> Figure:
    canvas = Figure(figsize=(8, 3.4), layout="constrained")
    for (figure, title), axes in zip(MEASURES.items(), canvas.subplots(1, 2), strict=True):
        for color, of in enumerate(map(dict, measured.settings)):
            label = f"{of['n']:,} rows, epsilon = {of['epsilon']:g}"
            for name, style in (("every", "o-"), ("once", "o:")):
                means = [measured.mean(f"{figure} {name} {steps}", **of).mean for steps in STEPS]
                axes.plot(
                    STEPS, means, style, markersize=3, color=f"C{color}",
                    label=label if name == "every" else None,
                )  # fmt: skip
        axes.set(xscale="log", xlabel="steps; dotted: noise once", ylabel=title)
        axes.set_xticks(STEPS, [str(steps) for steps in STEPS])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        if figure == "stein":
            axes.set_yscale("log")
    marks, names = canvas.axes[0].get_legend_handles_labels()
    canvas.legend(marks, names, loc="outside lower center", ncols=3, fontsize=7)
    return canvas


EXPERIMENT = Experiment(
    title="Noise in every step of ADMM",
    about=(
        f"A random graph, {P} columns, rows of length one. Section 3.2 makes the Theta-step of "
        "ADMM private in every iteration, by noise on the S that it reads, and then adds noise to "
        "S once, which costs less. How much less: T steps with fresh noise against one release, "
        f"both exactly (epsilon, {DELTA:g}), replace-one. A row moves S by sqrt2 / n in Frobenius "
        "norm, so T steps with isotropic noise of deviation s are sqrt(2 T) / (n s)-GDP, and each "
        "step has sqrt T times the noise of one release. (By the simple composition of the "
        "paper, T epsilon and T delta, it would be about T times.) Nothing is gained for it: the "
        "average of the T noisy matrices has the law of one release, and is all that they say "
        "about S. The steps start from zero, and get the penalty and rho that are best in "
        "hindsight for each measure; the graph is that of Z, the loss that of Theta. Few steps "
        "are another estimator than the graphical lasso, sometimes with a better graph: so the "
        "same steps are compared with noise in each, and once. The last column has the rule "
        "`ebic` with `refit`, which sees the release alone."
    ),
    settings=SETTINGS,
    repetitions=8,
    measure=measure,
    page=_page,
    verdicts=_verdicts,
    draw=_draw,
    quick=SETTINGS[:1],
)
