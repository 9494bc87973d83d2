"""Figures 1 to 4: relative errors against the number of rows, by sparsity, columns, epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from benchmarks.arrays import Array, Rng
from benchmarks.pages import table
from benchmarks.papers import thresholding
from benchmarks.papers.experiment import (
    Experiment,
    Figures,
    Mean,
    Measured,
    Scalar,
    Setting,
    Verdict,
    grid,
)
from benchmarks.papers.wx.models import GAMMA, covariance, moment

REPETITIONS = 20
ROWS = (500, 1000, 2000, 5000, 10_000, 40_000)
AT = {"Algorithm 1": 2000, "Algorithm 2": 40_000}  # rows at which claims are tested
SLACK = 0.02  # smaller changes do not count
NEARLY = 0.95
NORMS = {"spectral": "l2", "column": "l1"}
WIDE = 200  # number of columns when epsilon is varied
Line = tuple[int, float, float]  # p, sr, epsilon
PANELS: Mapping[str, tuple[Line, ...]] = {
    "sr": tuple((100, sr, 1.0) for sr in (0.1, 0.2, 0.3, 0.5)),
    "p": tuple((p, 0.2, 1.0) for p in (50, 100, 200, 500)),
    "epsilon": tuple((WIDE, 0.2, epsilon) for epsilon in (0.1, 0.5, 1.0, 2.0)),
}
_ABOUT = {
    "sr": "p = 100, epsilon = 1",
    "p": "sr = 0.2, epsilon = 1",
    "epsilon": f"p = {WIDE}, sr = 0.2",
}
Deviation = Callable[[int, float], float]


def central(n: int, epsilon: float) -> float:
    return thresholding.central("wx", n, epsilon, 1 / n)


def local(n: int, epsilon: float) -> float:
    """Noise deviation of the average of n reports; it has the law of noise on one matrix."""
    return thresholding.local(n, epsilon, 1 / n)


def measure(rng: Rng, *, p: int, sr: float, n: int, deviation: Deviation) -> Figures:
    """Measure one covariance and one sample, at every epsilon of the figures."""
    truth = covariance(p, sr, rng)
    sample = moment(truth, n, rng)
    figures: Figures = {}
    for epsilon in epsilons(p):
        sd = deviation(n, epsilon)
        noisy = sample + thresholding.noise(p, sd, rng)
        made = thresholding.estimate(noisy, thresholding.threshold(GAMMA, n, p, sd))
        off = made - truth
        figures[f"spectral at {epsilon:g}"] = _spectral(off) / _spectral(truth)
        figures[f"column at {epsilon:g}"] = _column(off) / _column(truth)
        figures[f"zero at {epsilon:g}"] = not made.any()
        figures[f"off at {epsilon:g}"] = np.count_nonzero(made) - np.count_nonzero(np.diag(made))
    return figures


def epsilons(p: int) -> tuple[float, ...]:
    return tuple(line[2] for line in PANELS["epsilon"]) if p == WIDE else (1.0,)


def _spectral(matrix: Array) -> float:
    return float(np.abs(np.linalg.eigvalsh(matrix)).max())


def _column(matrix: Array) -> float:
    return float(np.abs(matrix).sum(axis=0).max())


def mean(measured: Measured, line: Line, n: int, figure: str) -> Mean | None:
    """Mean of a figure on one line of a panel; None if it was not measured."""
    p, sr, epsilon = line
    if not measured.has(p=p, sr=sr, n=n):
        return None
    return measured.mean(f"{figure} at {epsilon:g}", p=p, sr=sr, n=n)


def _line_label(panel: str, line: Line) -> str:
    p, sr, epsilon = line
    value = {"sr": sr, "p": p, "epsilon": epsilon}[panel]
    return f"{panel} = {value:g}"


def _page(measured: Measured, *, first: int) -> Iterator[str]:
    known = [n for n in ROWS if any(dict(each)["n"] == n for each in measured.settings)]
    for turn, (norm, name) in enumerate(NORMS.items()):
        yield f"**Figure {first + turn}**, relative error in {name} norm, by rows.\n"
        yield from table(
            ("panel", "", *(f"{n:,}" for n in known)),
            (
                (
                    _ABOUT[panel],
                    _line_label(panel, line),
                    *(_cell(measured, line, n, norm) for n in known),
                )
                for panel, lines in PANELS.items()
                for line in lines
            ),
        )
    yield (
        "Share of runs whose output is the zero matrix, and mean number of non-zero off-diagonal "
        "entries.\n"
    )
    yield from table(
        ("panel", "", *(f"{n:,}" for n in known)),
        (
            (_ABOUT[panel], _line_label(panel, line), *(_empty(measured, line, n) for n in known))
            for panel, lines in PANELS.items()
            for line in lines
        ),
    )


def _cell(measured: Measured, line: Line, n: int, norm: str) -> str:
    result = mean(measured, line, n, norm)
    return "" if result is None else str(result)


def _empty(measured: Measured, line: Line, n: int) -> str:
    zero, off = (mean(measured, line, n, name) for name in ("zero", "off"))
    return "" if zero is None or off is None else f"{zero.mean:.0%}; {off.mean:g}"


def rising(means: list[Mean]) -> bool:
    """Whether means increase in total and never decrease, ignoring changes within `SLACK`."""
    grown = means[-1].mean > (1 + SLACK) * means[0].mean
    return grown and all(other.mean > (1 - SLACK) * one.mean for one, other in pairwise(means))


def _means_along(measured: Measured, panel: str, norm: str, n: int) -> list[Mean]:
    result = [mean(measured, line, n, norm) for line in PANELS[panel]]
    return [each for each in result if each is not None]


def _listed(means: dict[str, list[Mean]]) -> str:
    return "; ".join(
        f"{NORMS[norm]} {', '.join(f'{each.mean:.3f}' for each in of)}"
        for norm, of in means.items()
    )


def _verdicts(measured: Measured, *, what: str) -> Iterator[Verdict]:
    n = AT[what]
    along = {
        panel: {norm: _means_along(measured, panel, norm, n) for norm in NORMS} for panel in PANELS
    }  # fmt: skip
    if any(len(of) < len(PANELS[panel]) for panel, by in along.items() for of in by.values()):
        return
    where = f"{what}, n = {n:,}"
    by = along["sr"]
    yield Verdict(
        f"{where}: the error grows with the sparsity ratio",
        all(rising(of) for of in by.values()),
        f"sr = 0.1, 0.2, 0.3, 0.5: {_listed(by)}",
    )
    by = along["p"]
    allowed = math.sqrt(math.log(500) / math.log(50))
    yield Verdict(
        f"{where}: p affects the error only slightly: from 50 to 500 columns by no more than "
        f"sqrt(log p) does, {allowed:.2f} times",
        all(of[-1].mean / of[0].mean <= allowed for of in by.values()),
        f"p = 50, 100, 200, 500: {_listed(by)}",
    )
    by = along["epsilon"]
    listed = f"epsilon = 0.1, 0.5, 1, 2: {_listed(by)}"
    yield Verdict(
        f"{where}: the error grows with epsilon, as the paper prints it (with 'more private')",
        all(rising(of) for of in by.values()),
        listed,
    )
    yield Verdict(
        f"{where}: the error grows with more privacy, a smaller epsilon, as it must be meant",
        all(rising(of[::-1]) for of in by.values()),
        listed,
    )
    result = [
        measured.mean(f"off at {epsilon:g}", **dict(setting)).mean
        for setting in measured.settings
        for epsilon in epsilons(int(dict(setting)["p"]))
    ]
    none = [count for count in result if count == 0]
    yield Verdict(
        f"{what}, with the constant and the distribution assumed here, finds any entry off the "
        "diagonal",
        not none,
        f"none at all in {len(none)} of {len(result)} settings of the figures",
    )


def _empty_verdicts(measured: Measured) -> Iterator[Verdict]:
    """Test the claims on Algorithm 2, and how often it gives the zero matrix."""
    yield from _verdicts(measured, what="Algorithm 2")
    shares = {
        (line, n): result.mean
        for lines in PANELS.values()
        for line in lines
        for n in ROWS
        if n <= 10_000 and line[2] <= 1
        if (result := mean(measured, line, n, "zero")) is not None
    }
    if shares:
        worst = min(shares, key=lambda at: shares[at])
        yield Verdict(
            f"Algorithm 2 gives the zero matrix in {NEARLY:.0%} of the runs or more, at "
            "epsilon <= 1 with 10,000 rows or fewer",
            float(np.mean(list(shares.values()))) >= NEARLY,
            f"in {np.mean(list(shares.values())):.1%} of them; least often with p = {worst[0][0]}, "
            f"sr = {worst[0][1]:g}, n = {worst[1]:,}: {shares[worst]:.0%}",
        )


def _draw(measured: Measured, *, first: int) -> Figure:
    canvas = Figure(figsize=(9, 5.2), layout="constrained")
    grid_of = canvas.subplots(len(NORMS), len(PANELS), sharex=True, sharey="row")
    for turn, (norm, name) in enumerate(NORMS.items()):
        for axes, (panel, lines) in zip(grid_of[turn], PANELS.items(), strict=True):
            for line in lines:
                result = {n: mean(measured, line, n, norm) for n in ROWS}
                at = {n: each for n, each in result.items() if each is not None}
                spread = [0 if math.isnan(each.sd) else each.sd for each in at.values()]
                axes.errorbar(
                    list(at), [each.mean for each in at.values()], spread,
                    marker="o", markersize=3, label=_line_label(panel, line),
                )  # fmt: skip
            axes.set(xscale="log", title=f"Figure {first + turn}: {_ABOUT[panel]}")
            axes.grid(alpha=0.3)
            axes.legend(fontsize=7)
        grid_of[turn][0].set_ylabel(f"relative error, {name} norm")
    for axes in grid_of[-1]:
        axes.set_xlabel("rows")
    return canvas


def _settings() -> tuple[Setting, ...]:
    """Return the settings of all panels without duplicates, by rows."""
    shapes = dict.fromkeys((p, sr) for lines in PANELS.values() for p, sr, _ in lines)
    sizes: tuple[Scalar, ...] = ROWS
    return tuple(
        setting for p, sr in shapes for setting in grid(p=(p,), sr=(sr,), n=sizes)
    )  # fmt: skip


SETTINGS = _settings()
_QUICK = tuple(setting for setting in SETTINGS if dict(setting)["n"] in {*AT.values(), 40_000})
_PROTOCOL = (
    f"Means over {REPETITIONS} repetitions, with the standard deviation, each with its own "
    "covariance. Only the second moment of the n rows is needed; it is drawn as a Wishart matrix."
)

CENTRAL = Experiment(
    title="Figures 1 and 2, Algorithm 1",
    about=f"{_PROTOCOL} The noise is as published, with sensitivity 1/n.",
    settings=SETTINGS,
    repetitions=REPETITIONS,
    measure=partial(measure, deviation=central),
    page=partial(_page, first=1),
    verdicts=partial(_verdicts, what="Algorithm 1"),
    draw=partial(_draw, first=1),
    quick=_QUICK,
    quick_repetitions=3,
)
LOCAL = Experiment(
    title="Figures 3 and 4, Algorithm 2 (local)",
    about=(
        f"{_PROTOCOL} The average of n noisy reports has the distribution of the sample's moment "
        "plus "
        "Gaussian noise of a variance n times smaller, and is drawn as that."
    ),
    settings=SETTINGS,
    repetitions=REPETITIONS,
    measure=partial(measure, deviation=local),
    page=partial(_page, first=3),
    verdicts=_empty_verdicts,
    draw=partial(_draw, first=3),
    quick=_QUICK,
    quick_repetitions=3,
)
