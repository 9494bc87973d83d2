"""Write the results page from the stored results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from benchmarks import markdown
from benchmarks.markdown import table
from benchmarks.method_cells import Cell
from benchmarks.statistics import cells, page_of_peers, plots
from benchmarks.statistics.cells import EPSILONS, Result
from benchmarks.statistics.comparisons import Comparison, comparisons, geometric_mean
from benchmarks.statistics.methods import DELTA, METHODS
from benchmarks.statistics.tables import TABLES
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.scaling.shares import LEAST_STRENGTH


def write(folder: Path) -> None:
    """Write `results.md` and its figure from `results.jsonl` in the same folder."""
    results = cells.read(folder / "results.jsonl")
    found = comparisons(results)
    (folder / "figures").mkdir(exist_ok=True)
    plots.draw(found, folder / "figures" / "accuracy.svg")
    markdown.write(folder / "results.md", _page(found, results))


def _page(found: list[Comparison], results: Mapping[Cell, Result]) -> Iterator[str]:
    yield "# Accuracy of correlations\n"
    yield (
        "For readers who choose centres and scales: the root mean square error of a table's "
        "Pearson correlations, about means and in pairs of cells that are both present, from one "
        f"release at the same exact (epsilon, {DELTA:g}) guarantee (replace-one). All matrices are "
        "denoised; a correlation that the noise hides counts as zero. The rule was tuned on "
        "generated tables of these kinds and on the tables on disk, and checked on others that are "
        "not part of this page. Written by `python -m benchmarks.statistics` from `results.jsonl`. "
        "Noise is seeded, so nothing here is a release.\n"
    )
    for method in METHODS.values():
        yield f"- **{method.title}**: {method.note}."
    yield ""
    yield from _summary(found)
    yield "![Errors of correlations](figures/accuracy.svg)\n"
    yield from _by_table(found)
    yield from page_of_peers.sections(results)
    yield "\n## All cells\n"
    for epsilon in EPSILONS:
        yield from _cells([each for each in found if each.epsilon == epsilon], epsilon)


def _summary(found: list[Comparison]) -> Iterator[str]:
    lines = []
    for epsilon in EPSILONS:
        here = [each for each in found if each.epsilon == epsilon]
        if here:
            lines.append((f"{epsilon:g}", *_ratios(here)))
    yield from table(
        (
            "epsilon",
            "cells",
            "error / best hand-tuned: geometric mean",
            "within 1.3",
            "within 2",
            "error / expert",
            "error of bounds and unit rows / error",
        ),
        [*lines, ("all", *_ratios(found))] if lines else [],
    )
    yield (
        f"Below n mu / sqrt(p) = {LEAST_STRENGTH:g}, constants are not estimated: the rule then "
        "takes the middle and the half width of the bounds, and unit rows with an intercept; "
        "tables without bounds have no result.\n"
    )


def _ratios(found: list[Comparison]) -> tuple[str, ...]:
    known = [each for each in found if each.private is not None]
    to_best = np.array([each.to_best for each in known])
    to_expert = geometric_mean(each.to_expert for each in known)
    gains = [each.gain for each in known if each.gain is not None]
    return (
        str(len(known)),
        f"{geometric_mean(to_best):.2f}",
        f"{np.mean(to_best <= 1.3):.0%}",
        f"{np.mean(to_best <= 2):.0%}",
        f"{to_expert:.2f}",
        f"{geometric_mean(gains):.1f}" if gains else "",
    )


def _by_table(found: list[Comparison]) -> Iterator[str]:
    yield "## By table\n"
    yield "Geometric means over epsilon of the error, relative to the best hand-tuned constants.\n"
    lines = []
    for name, recipe in TABLES.items():
        here = [each for each in found if each.table == name and each.private is not None]
        if here:
            gains = [each.gain for each in here if each.gain is not None]
            lines.append(
                (
                    name,
                    recipe.title,
                    f"{here[0].n:,} x {here[0].p}",
                    f"{geometric_mean(each.to_best for each in here):.2f}",
                    f"{max(each.to_best for each in here):.2f}",
                    f"{geometric_mean(gains):.1f}" if gains else "",
                )
            )
    yield from table(
        ("table", "", "rows x columns", "error / best", "largest", "bounds and unit rows / error"),
        lines,
    )


def _cells(found: list[Comparison], epsilon: float) -> Iterator[str]:
    if not found:
        return
    mu = gdp_mu(epsilon, DELTA)
    yield f"### epsilon = {epsilon:g} (mu = {mu:.3f})\n"
    lines = []
    for each in found:
        lines.append(
            (
                each.table,
                f"{each.n * mu / np.sqrt(each.p):,.0f}",
                _number(each.private),
                _number(each.bounds),
                _number(each.expert),
                f"{each.best:.3g} ({each.best_form})",
            )
        )
    head = ("table", "n mu / sqrt(p)", "private", "bounds, unit rows", "expert", "best hand-tuned")
    yield from table(head, lines)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
