"""Experiments at an exact guarantee: the paper's method, Gramercy's, and bounds of the score."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.graphs.releases import DELTA
from benchmarks.pages import table
from benchmarks.papers.experiment import (
    Comparison,
    Experiment,
    Mean,
    Measured,
    Outcome,
    Verdict,
    grid,
    short,
)
from benchmarks.papers.task import Task, measure

EPSILONS = (0.5, 1.0, 2.0, 4.0)
USEFUL = 0.1  # smallest share of the non-private gain that counts as useful
SLACK = 0.02  # relative tolerance of the ratio of the two noises
IDENTITY = "our raw matrix beats independent noise by sqrt(2p/(p+1))"
GAIN = 0.05  # if the exact matrix improves the score by a smaller share, it is not useful


def experiment(task: Task) -> Experiment:
    """Build the experiment of one task."""
    settings = grid(epsilon=EPSILONS)
    return Experiment(
        title=f"At an exact guarantee: {task.title}",
        about=_about(task),
        settings=settings,
        repetitions=task.repetitions,
        measure=partial(measure, task=task),
        page=partial(_page, task=task),
        verdicts=partial(_verdicts, task=task),
        draw=partial(_draw, task=task),
        compared=partial(_compared, task=task),
        quick=settings[1::2],
        table=task.table,
    )


@dataclass(frozen=True)
class Line:
    """The mean scores of a task at one epsilon."""

    epsilon: float
    paper: Mean
    estimator: Mean
    default: Mean
    without: Mean
    nothing: Mean
    larger: bool

    @property
    def ratio(self) -> float:
        """How many times better Gramercy's default is: ratio of losses, or of gains."""
        if not self.larger:
            return self.paper.mean / self.default.mean
        gain = self.paper.mean - self.nothing.mean
        return (self.default.mean - self.nothing.mean) / gain if gain > 0 else math.inf

    @property
    def best(self) -> float:
        """The best score of all, usually that without privacy."""
        every = (self.without.mean, self.paper.mean, self.default.mean)
        return max(every) if self.larger else min(every)

    def share(self, of: Mean) -> float:
        """The gain over not using the release, as a share of the largest gain."""
        return (of.mean - self.nothing.mean) / (self.best - self.nothing.mean)

    def useful(self, of: Mean) -> bool:
        """Whether a score is significantly better than the score without the release."""
        gain = (self.best - self.nothing.mean) * (1 if self.larger else -1)
        if not gain > GAIN * abs(self.nothing.mean) or not self.share(of) > USEFUL:
            return False
        return not abs(of.mean - self.nothing.mean) <= 2 * of.error

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.ratio, self.useful(self.default), self.useful(self.paper))


def lines_of(measured: Measured, task: Task) -> Iterator[Line]:
    for epsilon in EPSILONS:
        if measured.has(epsilon=epsilon):
            of = partial(measured.mean, epsilon=epsilon)
            yield Line(
                epsilon,
                paper=of("paper"),
                estimator=of("estimator"),
                default=of("default"),
                without=of("without"),
                nothing=of("nothing"),
                larger=task.larger,
            )


def noise_ratio(measured: Measured, epsilon: float) -> float:
    """Root mean square noise of the paper's raw matrix over that of Gramercy's."""
    both = [
        np.square(measured.values(f"noise_{name}", epsilon=epsilon)).mean()
        for name in ("paper", "ours")
    ]
    return math.sqrt(both[0] / both[1])


def expected(p: int) -> float:
    return math.sqrt(2 * p / (p + 1))


def _compared(measured: Measured, *, task: Task) -> Comparison:
    outcomes = {line.epsilon: line.outcome for line in lines_of(measured, task)}
    n, p = (int(measured.mean(key, epsilon=min(outcomes)).mean) for key in ("n", "p"))
    matrix = _matrix_ratio(measured, 1.0) if _has_matrix(task) and 1.0 in outcomes else ""
    return Comparison(task.title, n, p, outcomes, matrix)


def _matrix_ratio(measured: Measured, epsilon: float) -> str:
    of = partial(measured.mean, epsilon=epsilon)
    if of("denoised").mean > (1 - GAIN) * of("even").mean:
        return "not useful"
    return f"{short(of('paper_raw').mean / of('denoised').mean)} ×"


def _has_matrix(task: Task) -> bool:
    return task.covariance or task.moment


def _about(task: Task) -> str:
    return (
        f"Score: {task.score}; {'larger' if task.larger else 'smaller'} is better. Ours: "
        f"{task.how}. Both mechanisms have the exact guarantee (epsilon, {DELTA:g}), replace-one. "
        "Public constants give rows length one. Unless stated, each method is tuned on its release "
        "alone. Numbers are means over repetitions, with the standard deviation in brackets."
    )


def _page(measured: Measured, *, task: Task) -> Iterator[str]:
    lines = list(lines_of(measured, task))
    shape = [int(measured.mean(key, epsilon=lines[0].epsilon).mean) for key in ("n", "p")]
    yield f"{shape[0]:,} rows, {shape[1]} columns; {lines[0].default.count} repetitions.\n"
    yield from table(
        (
            "epsilon", "the paper's", "our estimator on the paper's noise", "ours", "ratio",
            *(each.title for each in task.variants), "without privacy", "without the release",
        ),
        (
            (
                f"{line.epsilon:g}", str(line.paper), str(line.estimator), str(line.default),
                str(line.outcome),
                *(str(measured.mean(each.title, epsilon=line.epsilon)) for each in task.variants),
                short(line.without.mean), short(line.nothing.mean),
            )
            for line in lines
        ),
    )  # fmt: skip
    if task.remark:
        yield f"{task.remark}\n"
    if _has_matrix(task):
        yield from _matrices(measured, lines, task, expected(shape[1]))


def _matrices(measured: Measured, lines: list[Line], task: Task, ratio: float) -> Iterator[str]:
    compared = task.covariance
    yield "Relative Frobenius error of the matrix; I / p needs no release.\n"
    if compared:
        yield f"The paper's noise should be sqrt(2p/(p+1)) = {ratio:.4f} times ours.\n"
    yield from table(
        (
            "epsilon", "paper's raw", "our raw", *(("paper's noise / ours",) if compared else ()),
            "our denoised", "I / p", "the paper's raw / our denoised",
        ),
        (
            (
                f"{line.epsilon:g}",
                *(str(measured.mean(key, epsilon=line.epsilon)) for key in ("paper_raw", "raw")),
                *((f"{noise_ratio(measured, line.epsilon):.4f}",) if compared else ()),
                str(measured.mean("denoised", epsilon=line.epsilon)),
                short(measured.mean("even", epsilon=line.epsilon).mean),
                _matrix_ratio(measured, line.epsilon),
            )
            for line in lines
        ),
    )  # fmt: skip


def _verdicts(measured: Measured, *, task: Task) -> Iterator[Verdict]:
    lines = list(lines_of(measured, task))
    if not task.covariance:
        return
    want = expected(int(measured.mean("p", epsilon=lines[0].epsilon).mean))
    result = {line.epsilon: noise_ratio(measured, line.epsilon) for line in lines}
    far = max(abs(ratio / want - 1) for ratio in result.values())
    yield Verdict(
        f"{task.title}: {IDENTITY}, within {SLACK:.0%}",
        far <= SLACK,
        f"{', '.join(f'{ratio:.3f}' for ratio in result.values())}; {want:.3f} expected",
    )


def _draw(measured: Measured, *, task: Task) -> Figure:
    canvas = Figure(figsize=(5.5, 3.4), layout="constrained")
    axes = canvas.subplots()
    lines = list(lines_of(measured, task))
    at = [line.epsilon for line in lines]
    styles: Mapping[str, dict[str, Any]] = {
        "default": {"color": "black", "linewidth": 2.5, "label": "ours"},
        "paper": {"color": "C3", "label": "the paper's mechanism, exactly calibrated"},
        "without": {"color": "C2", "linestyle": "--", "label": "without privacy"},
        "nothing": {"color": "grey", "linestyle": ":", "label": "without the release"},
    }
    for key, style in styles.items():
        means = [getattr(line, key) for line in lines]
        spread = [0 if math.isnan(each.sd) else each.sd for each in means]
        axes.errorbar(at, [each.mean for each in means], spread, marker="o", markersize=3, **style)
    scores = [getattr(line, key).mean for line in lines for key in styles]
    steep = not task.larger and min(scores, default=0) > 0 and max(scores) > 20 * min(scores)
    axes.set(xscale="log", xlabel="epsilon", ylabel=task.score)
    if steep:
        axes.set_yscale("log")
    axes.set_xticks(at, [f"{epsilon:g}" for epsilon in at])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return canvas
