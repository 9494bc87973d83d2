"""Areas under the curve of every method at every noise level: figures, tables, plots of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from benchmarks.markdown import table
from benchmarks.papers import scores
from benchmarks.papers.experiment import Figures, Mean, Measured, Scalar, Verdict
from benchmarks.papers.gpp.protocol import METHODS, Estimate, Noisy

Array = NDArray[np.float64]
Edges = NDArray[np.bool_]
Publish = Callable[[float], Noisy]  # by decibels
STYLES: dict[str, dict[str, Any]] = {
    "debiased": {"color": "black", "linewidth": 2.5},
    "plain": {"color": "C0"},
    "neighbourhoods": {"color": "C1"},
    "scio": {"color": "C2"},
}


def scored(
    publish: Publish,
    levels: Sequence[float],
    methods: Sequence[str],
    clean: Estimate,
    truth: Edges | None,
) -> Figures:
    """Lists by noise level.

    Parameters
    ----------
    publish
        The release of one noise level; all methods see the same.
    levels
        In decibels.
    methods
        Of `METHODS`.
    clean
        The graphical lasso without noise.
    truth
        The true graph, where there is one.
    """
    figures: Figures = {}
    for level in levels:
        noisy = publish(level)
        for name in methods:
            result = METHODS[name].find(noisy)
            ranks = np.abs(result.weights)
            values = {
                "vanilla": scores.auc(ranks, clean.edges),
                "shared": f1(result.edges, clean.edges),
                "doublings": result.doublings,
            }
            if truth is not None:
                values["truth"] = scores.auc(ranks, truth)
            for kind, value in values.items():
                figures.setdefault(f"{kind} {name}", []).append(value)
    return figures


def f1(result: Edges, wanted: Edges) -> float:
    """One where the two graphs are the same."""
    return float(2 * (result & wanted).sum() / max(result.sum() + wanted.sum(), 1))


def at(measured: Measured, figure: str, index: int, **setting: Scalar) -> Mean:
    """Of a list's entry, over repetitions."""
    values = measured.values(figure, **setting)[:, index]
    sd = float(values.std(ddof=1)) if values.size > 1 else math.nan
    return Mean(float(values.mean()), sd, values.size)


def decibels(level: float) -> str:
    return "none" if math.isinf(level) else f"{level:g} dB"


def cell(measured: Measured, figure: str, index: int, **setting: Scalar) -> str:
    """Three decimals, and the deviation."""
    result = at(measured, figure, index, **setting)
    return f"{result.mean:.3f}" + ("" if math.isnan(result.sd) else f" ({result.sd:.3f})")


def unsolved_shares(
    measured: Measured, name: str, index: int, **setting: Scalar
) -> tuple[float, float]:
    """The shares of repetitions with no answer at the asked penalty, and at any."""
    values = measured.values(f"doublings {name}", **setting)[:, index]
    return float((values != 0).mean()), float((values < 0).mean())


def by_level(
    measured: Measured,
    levels: Sequence[float],
    methods: Sequence[str],
    kinds: Sequence[str],
    **setting: Scalar,
) -> Iterator[str]:
    """A table: a line a noise level, a column a method and what it is held against."""
    against = {"truth": "the truth", "vanilla": "the graphical lasso without noise"}
    for kind in kinds:
        yield f"Against {against[kind]}:\n"
        yield from table(
            ("noise", *(METHODS[name].title for name in methods)),
            (
                (
                    decibels(level),
                    *(cell(measured, f"{kind} {name}", i, **setting) for name in methods),
                )
                for i, level in enumerate(levels)
            ),
        )


def solution_table(
    measured: Measured, levels: Sequence[float], methods: Sequence[str], **setting: Scalar
) -> Iterator[str]:
    """Where methods had no answer at the penalty asked for; nothing if they always had."""
    result = []
    for i, level in enumerate(levels):
        for name in methods:
            raised, none = unsolved_shares(measured, name, i, **setting)
            if raised > 0:
                result.append(
                    (decibels(level), METHODS[name].title, f"{raised:.0%}", f"{none:.0%}")
                )
    if result:
        yield "Repetitions without a solution:\n"
        head = ("noise", "method", "at that penalty", "at any (an area of a half)")
        yield from table(head, result)


def solution_verdict(
    title: str, measured: Measured, levels: Sequence[float], **setting: Scalar
) -> Verdict:
    """Corollary 1: equation 5 has a unique solution."""
    shares = {
        level: unsolved_shares(measured, "debiased", i, **setting) for i, level in enumerate(levels)
    }
    return Verdict(
        f"{title}: the debiased graphical lasso has a solution (Corollary 1), at every noise level",
        all(raised == 0 for raised, _ in shares.values()),
        "; ".join(
            f"none in {raised:.0%} at {decibels(level)} ({none:.0%} at any penalty)"
            for level, (raised, none) in shares.items()
            if raised > 0
        )
        or "in every repetition",
    )


def lines(
    axes: Axes,
    measured: Measured,
    levels: Sequence[float],
    methods: Sequence[str],
    kind: str,
    **setting: Scalar,
) -> None:
    """Mean and one deviation around it; noise grows to the right."""
    places = range(len(levels))
    for name in methods:
        means = [at(measured, f"{kind} {name}", i, **setting) for i in places]
        mean = np.array([each.mean for each in means])
        sd = np.nan_to_num([each.sd for each in means])
        axes.plot(places, mean, marker="o", markersize=3, label=METHODS[name].title, **STYLES[name])
        band = {"alpha": 0.15, "linewidth": 0, "color": STYLES[name]["color"]}
        axes.fill_between(places, mean - sd, np.minimum(mean + sd, 1), **band)
    axes.axhline(0.5, color="grey", linestyle=":", linewidth=1)
    axes.set_xticks(places, [decibels(level).removesuffix(" dB") for level in levels])
    axes.set(xlabel="signal to noise, dB", ylim=(0.35, 1.02))
    axes.grid(alpha=0.3)
