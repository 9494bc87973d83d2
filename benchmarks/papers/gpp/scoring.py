"""Areas under the curve of every method at every noise level: figures, tables and plots."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from benchmarks.pages import table
from benchmarks.papers import scores
from benchmarks.papers.experiment import Figures, Mean, Measured, Scalar, Verdict
from benchmarks.papers.gpp.protocol import METHODS, Estimate, Noisy

Edges = NDArray[np.bool_]
Publish = Callable[[float], Noisy]  # a release at a noise level in decibels
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
    """Score methods at every noise level; each figure is a list over the levels.

    Parameters
    ----------
    publish
        Draws the release of one noise level, which all methods share.
    levels
        Noise levels in decibels.
    methods
        Keys of `METHODS`.
    clean
        The graphical lasso without noise.
    truth
        The true graph, if known.
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
    """F1 score of a graph against another one; 1 if they are equal."""
    return float(2 * (result & wanted).sum() / max(result.sum() + wanted.sum(), 1))


def at(measured: Measured, figure: str, index: int, **setting: Scalar) -> Mean:
    """Mean over repetitions of entry `index` of a list figure."""
    values = measured.values(figure, **setting)[:, index]
    sd = float(values.std(ddof=1)) if values.size > 1 else math.nan
    return Mean(float(values.mean()), sd, values.size)


def decibels(level: float) -> str:
    return "none" if math.isinf(level) else f"{level:g} dB"


def cell(measured: Measured, figure: str, index: int, **setting: Scalar) -> str:
    """Format a mean with three decimals and its standard deviation."""
    result = at(measured, figure, index, **setting)
    return f"{result.mean:.3f}" + ("" if math.isnan(result.sd) else f" ({result.sd:.3f})")


def unsolved_shares(
    measured: Measured, name: str, index: int, **setting: Scalar
) -> tuple[float, float]:
    """Return the shares of repetitions without a solution at the requested and at any penalty."""
    values = measured.values(f"doublings {name}", **setting)[:, index]
    return float((values != 0).mean()), float((values < 0).mean())


def by_level(
    measured: Measured,
    levels: Sequence[float],
    methods: Sequence[str],
    kinds: Sequence[str],
    **setting: Scalar,
) -> Iterator[str]:
    """Yield a table per reference graph, with a line per noise level and a column per method."""
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
    """Yield a table of the methods without a solution at the requested penalty, if any."""
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
        head = ("noise", "method", "at that penalty", "at any penalty (area 0.5)")
        yield from table(head, result)


def solution_verdict(
    title: str, measured: Measured, levels: Sequence[float], **setting: Scalar
) -> Verdict:
    """Test Corollary 1: equation 5 has a unique solution."""
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
    """Plot means with one standard deviation around them; noise increases to the right."""
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
