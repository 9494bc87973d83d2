"""Figure 2: linear discriminant analysis of the Ionosphere data with a private ridge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.arrays import Array, Rng
from benchmarks.pages import table
from benchmarks.papers import data
from benchmarks.papers.classes import classified
from benchmarks.papers.experiment import Experiment, Figures, Mean, Measured, Verdict, grid
from benchmarks.papers.sgz.models import moment, noise, text_scale
from gramercy.estimators.ridge import ridge_path

Flags = NDArray[np.bool_]
TABLE = "ionosphere"
_PART, _DELTA = 40, 0.001  # rows of the training set and of the validation set; delta
_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_GRID = np.geomspace(1e2, 1e-6, 41)
_SETTINGS = grid()  # a single setting
_REPORTED = (0.1, 1.0, 100.0)


def labels() -> Flags:
    """Read the class of every row: whether the radar return is good."""
    good: Flags = (data.labels(TABLE).iloc[:, 0] == "g").to_numpy()
    return good


@dataclass(frozen=True)
class Rule:
    """The linear rule of a precision matrix; class means and proportions are not private."""

    means: Array  # shape (2, p)
    shares: Array

    @classmethod
    def of(cls, x: Array, good: Flags) -> Rule:
        means = np.array([x[~good].mean(axis=0), x[good].mean(axis=0)])
        return cls(means, np.array([np.mean(~good), np.mean(good)]))

    def within(self, x: Array, good: Flags) -> Array:
        """Subtract the means of the classes from the rows."""
        left: Array = x - self.means[good.astype(int)]
        return left

    def errors(self, theta: Array, x: Array, good: Flags) -> float:
        """Misclassification rate."""
        return float(np.mean(classified(x, self.means, self.shares, theta) != good))


def measure(rng: Rng) -> Figures:
    """Measure one split of the rows."""
    x = data.frame(TABLE).to_numpy(float)
    good = labels()
    order = rng.permutation(len(x))
    training, validation, test = np.split(order, [_PART, 2 * _PART])
    rule = Rule.of(x[training], good[training])
    rest = rule.within(x[training], good[training])
    radius = np.linalg.norm(rest, axis=1).max()
    S = moment(rest / radius)

    def errors(matrix: Array) -> float:
        path = [theta / radius**2 for theta in ridge_path(matrix, _GRID)]
        of = [rule.errors(theta, x[validation], good[validation]) for theta in path]
        return rule.errors(path[int(np.argmin(of))], x[test], good[test])

    figures: Figures = {"non-private": errors(S)}
    for epsilon in _EPSILONS:
        noisy = S + text_scale(_PART, epsilon, _DELTA) * noise(len(S), rng)
        figures[f"epsilon {epsilon:g}"] = errors(noisy)
    figures["no covariance"] = errors(np.zeros_like(S))
    return figures


def _page(measured: Measured) -> Iterator[str]:
    named = {name: measured.mean(name) for name in _names()}
    yield from table(
        ("precision matrix", "share of errors"), ((name, str(mean)) for name, mean in named.items())
    )


def _names() -> Iterator[str]:
    yield from (f"epsilon {epsilon:g}" for epsilon in _EPSILONS)
    yield from ("non-private", "no covariance")


def _paired(measured: Measured, one: str, other: str) -> Mean:
    """Mean difference of two figures, paired by split."""
    off = measured.values(one) - measured.values(other)
    return Mean(float(off.mean()), float(off.std(ddof=1)) if off.size > 1 else 0.0, off.size)


def _verdicts(measured: Measured) -> Iterator[Verdict]:
    gaps = {
        epsilon: _paired(measured, f"epsilon {epsilon:g}", "non-private") for epsilon in _EPSILONS
    }
    least, most = gaps[_EPSILONS[0]], gaps[_EPSILONS[-1]]
    listed = ", ".join(f"{gaps[epsilon].mean:.3f} at epsilon {epsilon:g}" for epsilon in _REPORTED)
    yield Verdict(
        "Figure 2: the gap to the non-private errors is large at small epsilon, and closes",
        least.mean > 4 * least.error and most.mean < least.mean / 2,
        f"{listed}; standard errors up to {max(gap.error for gap in gaps.values()):.3f}",
    )
    useful = [
        epsilon
        for epsilon in _EPSILONS
        if (gain := _paired(measured, "no covariance", f"epsilon {epsilon:g}")).mean
        > 2 * gain.error
    ]
    yield Verdict(
        "Figure 2: a private matrix at epsilon = 1 is better than the means of the classes alone, "
        "by two standard errors",
        1.0 in useful,
        f"first at epsilon {min(useful):g} of those measured"
        if useful
        else "at no epsilon measured",
    )


def _draw(measured: Measured) -> Figure:
    canvas = Figure(figsize=(5.5, 3.4), layout="constrained")
    axes = canvas.subplots()
    means = [measured.mean(f"epsilon {epsilon:g}") for epsilon in _EPSILONS]
    errors = [0.0 if np.isnan(mean.error) else mean.error for mean in means]
    axes.errorbar(_EPSILONS, [mean.mean for mean in means], errors, marker="o", label="private")
    styles = {"non-private": "--", "no covariance": ":"}
    for name, style in styles.items():
        axes.axhline(measured.mean(name).mean, color="grey", linestyle=style, label=name)
    axes.set(xscale="log", xlabel="epsilon", ylabel="share of errors")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return canvas


EXPERIMENT = Experiment(
    title="Figure 2: errors of discriminant analysis, Ionosphere",
    about=(
        f"{_PART} rows for training, {_PART} for validation, the rest for the test, at random; "
        "the ridge of the second moment within classes, rows divided by the largest length, the "
        f"text's noise at delta = {_DELTA:g}; the penalty with the fewest errors in the "
        "validation set. Class means and shares are taken from the training rows without noise, "
        "which the paper does not mention. No covariance: the same with a zero matrix, so that "
        "the rule is that of the nearest mean. The paper prints only a figure."
    ),
    settings=_SETTINGS,
    repetitions=50,
    measure=measure,
    page=_page,
    verdicts=_verdicts,
    draw=_draw,
    quick=_SETTINGS,
    quick_repetitions=10,
    table=TABLE,
)
