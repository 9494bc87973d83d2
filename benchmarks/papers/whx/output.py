"""Output against covariance perturbation, both with Gaussian noise at an exact guarantee."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.arrays import Rng
from benchmarks.pages import table
from benchmarks.papers.experiment import Experiment, Figures, Measured, Verdict, grid, short
from benchmarks.papers.scores import relative
from benchmarks.papers.sound import EPSILONS
from benchmarks.papers.whx import noise, precision
from benchmarks.papers.whx.precision import N, P
from benchmarks.utility.matrices import goe
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.solvers.glasso import graphical_lasso
from gramercy.mechanisms.output_perturbation import Output
from gramercy.schemas.neighbours import Neighbours

PENALTIES = (0.01, 0.05, 0.2)


def experiment() -> Experiment:
    """Build the experiment: one data set and release, all penalties."""
    settings = grid(epsilon=EPSILONS)
    return Experiment(
        title="Output against covariance perturbation, at an exact guarantee",
        about=(
            f"The graphical lasso of {N:,} rows of length one, {P} columns (a random graph), "
            "all entries penalised: relative Frobenius error against the solution without "
            f"privacy, at (epsilon, {noise.DELTA:g}), replace-one. Output: isotropic Gaussian "
            "noise on the solution, calibrated to its sensitivity, sqrt2 p^2 / (n penalty^2). "
            "Covariance: the solution from Gramercy's default release, denoised, at the same "
            "penalty."
        ),
        settings=settings,
        repetitions=20,
        measure=measure,
        page=_page,
        verdicts=_verdicts,
        quick=settings[1::2],
    )


def measure(rng: Rng, *, epsilon: float) -> Figures:
    """Measure both methods at every penalty, and the estimate from the row length only."""
    rows = precision.drawn(rng).rows
    released = noise.isotropic(rows, epsilon, rng)
    figures: Figures = {}
    for penalty in PENALTIES:
        wanted = graphical_lasso(rows.T @ rows / N, penalty, penalize_diagonal=True).precision
        made = Output.calibrated(
            p=P,
            n=N,
            neighbours=Neighbours.REPLACE_ONE,
            epsilon=epsilon,
            delta=noise.DELTA,
            penalty=penalty,
        )
        estimator = GraphicalLasso(penalty=penalty, penalize_diagonal=True)
        at = f"at {penalty:g}"
        figures[f"scale {at}"] = made.scale
        figures[f"entry {at}"] = float(np.diag(wanted).mean())
        figures[f"output {at}"] = relative(wanted + goe(rng, P, made.scale), wanted)
        figures[f"covariance {at}"] = relative(estimator.fit(released).matrix, wanted)
        figures[f"nothing {at}"] = relative(np.eye(P) / (1 / P + penalty), wanted)
    return figures


def _lines(measured: Measured) -> list[tuple[float, float, dict[str, float]]]:
    return [
        (
            penalty,
            epsilon,
            {
                name: measured.mean(f"{name} at {penalty:g}", epsilon=epsilon).mean
                for name in ("scale", "entry", "output", "covariance", "nothing")
            },
        )
        for penalty in PENALTIES
        for epsilon in EPSILONS
        if measured.has(epsilon=epsilon)
    ]


def _page(measured: Measured) -> Iterator[str]:
    yield from table(
        (
            "penalty",
            "epsilon",
            "output: sd on the diagonal",
            "diagonal entry",
            "output",
            "covariance",
            "without the release",
        ),
        (
            (f"{penalty:g}", f"{epsilon:g}", *(short(each) for each in result.values()))
            for penalty, epsilon, result in _lines(measured)
        ),
    )


def _verdicts(measured: Measured) -> Iterator[Verdict]:
    lines = _lines(measured)
    if not lines:
        return
    ratios = [result["output"] / result["covariance"] for _, _, result in lines]
    yield Verdict(
        "covariance perturbation is better than output perturbation (theirs: at pure epsilon; "
        "here with exactly calibrated Gaussian noise)",
        min(ratios) > 1,
        f"{short(min(ratios))} to {short(max(ratios))} times less error",
    )
    useful = sum(result["output"] < result["nothing"] for _, _, result in lines)
    yield Verdict(
        "output perturbation with exactly calibrated noise is better than not using the release",
        useful == len(lines),
        f"at {useful} of {len(lines)} penalties and epsilons",
    )
