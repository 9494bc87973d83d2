"""The same task at a sound, exactly accounted guarantee: the paper's mechanism, and our default.

Rows have length one by public constants, and nothing is tuned on them: every method sees the
release alone. Both mechanisms have the same exact (epsilon, delta), replace-one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.graphs.releases import DELTA, exact, independent, isotropic, scale
from benchmarks.markdown import table
from benchmarks.papers.experiment import Experiment, Figures, Mean, Measured, Verdict, grid, short
from benchmarks.utility.matrices import goe, triangle
from schemas.evidence import Evidence

Array = NDArray[np.float64]
Rng = np.random.Generator
EPSILONS = (0.5, 1.0, 2.0, 4.0)
HOPELESS = 0.1  # of what is to be had without privacy: less is as good as nothing
SLACK = 0.02  # of the ratio of the two noises
GAIN = 0.05  # of the score of nothing: if the exact matrix gains less, it is worth nothing
_PRECISE = 0.003  # the standard error of that ratio, in one measurement


@dataclass(frozen=True)
class Sample:
    """What a task works on.

    Parameters
    ----------
    rows
        Of length at most one, shape (n, p).
    truth
        Whatever the scores need.
    """

    rows: Array
    truth: Any = None


Method = Callable[[Evidence, Sample], float]


@dataclass(frozen=True)
class Task:
    """What an experiment of a paper asks of a release.

    Parameters
    ----------
    title
        In the tables.
    score
        What the methods' numbers are, in words.
    sample
        The rows, and the truth.
    paper, default
        The paper's method, from its mechanism calibrated exactly; ours from our default.
        They return the score; `default` on the exact matrix is what is to be had without privacy.
    nothing
        The score of whoever does not look at the release.
    larger
        Whether larger scores are better.
    release
        The paper's mechanism.
    covariance
        Whether it releases a matrix, so that the two noises can be compared.
    moment
        Whether a second moment follows from what it releases (noisy rows), so that the errors of
        the matrices can be compared, though not their noises.
    repetitions
        How often.
    table
        The folder of the table it needs, if any.
    """

    title: str
    score: str
    sample: Callable[[Rng], Sample]
    paper: Method
    default: Method
    nothing: Callable[[Sample], float]
    larger: bool = False
    release: Callable[[Array, float, Rng], Evidence] = independent
    covariance: bool = True
    moment: bool = False
    repetitions: int = 20
    table: str | None = None


def experiment(task: Task) -> Experiment:
    """The experiment of one task."""
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


def measure(rng: Rng, *, epsilon: float, task: Task) -> Figures:
    """Both methods on one release each, and what bounds them from above and below."""
    sample = task.sample(rng)
    rows = sample.rows
    ours, theirs = isotropic(rows, epsilon, rng), task.release(rows, epsilon, rng)
    known = exact(rows)
    figures: Figures = {
        "n": rows.shape[0],
        "p": rows.shape[1],
        "paper": task.paper(theirs, sample),
        "default": task.default(ours, sample),
        "without": task.default(known, sample),
        "nothing": task.nothing(sample),
    }
    if task.covariance:
        figures |= _noises(len(rows), rows.shape[1], epsilon, rng)
    if task.covariance or task.moment:
        length = np.linalg.norm(known.raw)
        figures["paper_raw"] = float(np.linalg.norm(theirs.raw - known.raw) / length)
        figures["raw"] = float(np.linalg.norm(ours.raw - known.raw) / length)
        figures["denoised"] = float(np.linalg.norm(ours.repaired - known.raw) / length)
    return figures


def _noises(n: int, p: int, epsilon: float, rng: Rng) -> Figures:
    """Root mean square errors of the raw matrices, of as many draws as it takes to compare them."""
    times = max(1, math.ceil((math.sqrt(2) / (p * _PRECISE)) ** 2))
    one, other = scale("gaussian-iid", p, epsilon) / n, scale("gaussian", p, epsilon) / n

    def squares(draw: Callable[[], Array]) -> float:
        return math.sqrt(float(np.mean([np.square(draw()).sum() for _ in range(times)])))

    return {
        "noise_independent": squares(lambda: triangle(lambda of: rng.normal(0, one, of), p)),
        "noise_isotropic": squares(lambda: goe(rng, p, other)),
    }


@dataclass(frozen=True)
class Line:
    """One epsilon of a task."""

    epsilon: float
    paper: Mean
    default: Mean
    without: Mean
    nothing: Mean
    larger: bool

    @property
    def ratio(self) -> float:
        """How much better ours is: of losses, theirs over ours; of gains, ours over theirs."""
        if not self.larger:
            return self.paper.mean / self.default.mean
        left = self.paper.mean - self.nothing.mean
        return (self.default.mean - self.nothing.mean) / left if left > 0 else math.inf

    def share(self, of: Mean) -> float:
        """Of the way from nothing to what is to be had without privacy."""
        return (of.mean - self.nothing.mean) / (self.without.mean - self.nothing.mean)

    def hopeless(self, of: Mean) -> bool:
        """So is every method where not even the exact matrix is worth anything."""
        gained = (self.without.mean - self.nothing.mean) * (1 if self.larger else -1)
        return not gained > GAIN * abs(self.nothing.mean) or not self.share(of) > HOPELESS


def lines_of(measured: Measured, task: Task) -> Iterator[Line]:
    for epsilon in EPSILONS:
        if measured.has(epsilon=epsilon):
            of = partial(measured.mean, epsilon=epsilon)
            yield Line(
                epsilon, of("paper"), of("default"), of("without"), of("nothing"), task.larger
            )


def noise_ratio(measured: Measured, epsilon: float) -> float:
    """Of the papers' raw matrix to ours: root mean squares over all repetitions."""
    both = [
        np.square(measured.values(f"noise_{name}", epsilon=epsilon)).mean()
        for name in ("independent", "isotropic")
    ]
    return math.sqrt(both[0] / both[1])


def expected(p: int) -> float:
    return math.sqrt(2 * p / (p + 1))


COMPARED = ("task", "rows x columns", *(f"at {each:g}" for each in EPSILONS), "the matrix at 1")


def _compared(measured: Measured, *, task: Task) -> tuple[str, ...]:
    """How many times better ours is, by epsilon; and the denoised matrix at epsilon = 1."""
    lines = {line.epsilon: line for line in lines_of(measured, task)}
    n, p = (int(measured.mean(key, epsilon=min(lines)).mean) for key in ("n", "p"))
    denoised = ""
    if (task.covariance or task.moment) and 1.0 in lines:
        denoised = _times(_ratio_of(measured, 1.0, "paper_raw", "denoised"))
    cells = (_cell(lines[each]) if each in lines else "" for each in EPSILONS)
    return (task.title, f"{n:,} x {p}", *cells, denoised)


def _cell(line: Line) -> str:
    if line.hopeless(line.paper) and line.hopeless(line.default):
        return "hopeless"
    return _times(line.ratio) if not line.hopeless(line.paper) else "ours alone"


def _about(task: Task) -> str:
    return (
        f"Score: {task.score}, {'larger' if task.larger else 'smaller'} is better. The paper's "
        "mechanism, exactly calibrated, with the paper's estimator; our default mechanism with "
        f"our estimator; both at (epsilon, {DELTA:g}), replace-one, on rows of length one by "
        "public constants, tuned on the release alone. Means over repetitions, with the standard "
        "deviation. Nothing: the score of whoever does not look at the release. A method is "
        f"hopeless where it gets less than {HOPELESS:.0%} of the way from there to what is to be "
        "had without privacy."
    )


def _page(measured: Measured, *, task: Task) -> Iterator[str]:
    lines = list(lines_of(measured, task))
    if not lines:
        return
    shape = [int(measured.mean(key, epsilon=lines[0].epsilon).mean) for key in ("n", "p")]
    yield f"{shape[0]:,} rows, {shape[1]} columns.\n"
    yield from table(
        ("epsilon", "paper's", "ours", "times better", "without privacy", "nothing", "hopeless"),
        (
            (
                f"{line.epsilon:g}", str(line.paper), str(line.default), _times(line.ratio),
                short(line.without.mean), short(line.nothing.mean), _named(line),
            )
            for line in lines
        ),
    )  # fmt: skip
    if task.moment:
        yield from _moments(measured, lines)
    if not task.covariance:
        return
    want = expected(shape[1])
    yield (
        "The matrix: relative Frobenius error, raw and denoised, and how much larger the papers' "
        f"noise is than ours (sqrt(2p/(p+1)) = {want:.4f} is to be expected).\n"
    )
    yield from table(
        ("epsilon", "paper's raw", "our raw", "papers' noise / ours", "our denoised", "paper / it"),
        (
            (
                f"{line.epsilon:g}",
                *(str(measured.mean(key, epsilon=line.epsilon)) for key in ("paper_raw", "raw")),
                f"{noise_ratio(measured, line.epsilon):.4f}",
                str(measured.mean("denoised", epsilon=line.epsilon)),
                _times(_ratio_of(measured, line.epsilon, "paper_raw", "denoised")),
            )
            for line in lines
        ),
    )


def _moments(measured: Measured, lines: list[Line]) -> Iterator[str]:
    yield "The second moment that follows from either release: relative Frobenius error.\n"
    yield from table(
        ("epsilon", "paper's raw", "our raw", "paper / it", "our denoised", "paper / it"),
        (
            (
                f"{line.epsilon:g}",
                str(measured.mean("paper_raw", epsilon=line.epsilon)),
                *(
                    each
                    for key in ("raw", "denoised")
                    for each in (
                        str(measured.mean(key, epsilon=line.epsilon)),
                        _times(_ratio_of(measured, line.epsilon, "paper_raw", key)),
                    )
                ),
            )
            for line in lines
        ),
    )


def _verdicts(measured: Measured, *, task: Task) -> Iterator[Verdict]:
    lines = list(lines_of(measured, task))
    if not lines or not task.covariance:
        return
    want = expected(int(measured.mean("p", epsilon=lines[0].epsilon).mean))
    found = {line.epsilon: noise_ratio(measured, line.epsilon) for line in lines}
    far = max(abs(ratio / want - 1) for ratio in found.values())
    yield Verdict(
        f"{task.title}: our raw matrix beats independent noise by sqrt(2p/(p+1)), "
        f"within {SLACK:.0%}",
        far <= SLACK,
        f"{', '.join(f'{ratio:.3f}' for ratio in found.values())}; {want:.3f} expected",
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


def _ratio_of(measured: Measured, epsilon: float, one: str, other: str) -> float:
    return measured.mean(one, epsilon=epsilon).mean / measured.mean(other, epsilon=epsilon).mean


def _times(ratio: float) -> str:
    return "the paper's gets nothing" if math.isinf(ratio) else f"{short(ratio)} x"


def _named(line: Line) -> str:
    hopeless = [
        name
        for name, mean in (("paper's", line.paper), ("ours", line.default))
        if line.hopeless(mean)
    ]
    return "both" if len(hopeless) == 2 else "".join(hopeless)
