"""Write the results page from the stored results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from benchmarks.cells import Benchmark, Cell, read_results
from benchmarks.pages import figure, table, write_page
from benchmarks.statistics import cells, page_of_peers
from benchmarks.statistics.cells import EPSILONS, Result
from benchmarks.statistics.comparisons import Comparison, comparisons, geometric_mean
from benchmarks.statistics.methods import DELTA, METHODS
from benchmarks.statistics.tables import TABLES
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.scaling.shares import LEAST_STRENGTH


def write(folder: Path) -> None:
    """Write `results.md` and its figure from `results.jsonl` in the same folder."""
    results = read_results(folder / "results.jsonl", cells.Result)
    found = comparisons(results)
    (folder / "figures").mkdir(exist_ok=True)
    draw_errors(found, folder / "figures" / "accuracy.svg")
    write_page(folder / "results.md", _page(found, results))


def _page(found: list[Comparison], results: Mapping[Cell, Result]) -> Iterator[str]:
    yield "# Accuracy of correlations\n"
    yield (
        "For readers who choose centres and scales: the root mean square error of a table's "
        "Pearson correlations, about means and in pairs of cells that are both present, from one "
        f"release at the same exact (epsilon, {DELTA:g}) guarantee (replace-one). All matrices are "
        "denoised; a correlation that the noise hides counts as zero. The rule was tuned on "
        "generated tables of these kinds and on the tables on disk, and checked on others that are "
        "not part of this page. Written by `python -m benchmarks statistics` from `results.jsonl`. "
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


MARKS = {
    "bounds": ("bounds, unit rows", "C3", "s"),
    "expert": ("expert", "C0", "^"),
    "best": ("best hand-tuned", "0.6", "|"),
    "private": ("private constants", "black", "o"),
}


def draw_errors(found: list[Comparison], path: Path) -> None:
    """Draw the errors of all methods as SVG."""
    names = list(dict.fromkeys(each.table for each in found))[::-1]
    epsilons = sorted({each.epsilon for each in found})
    with figure(path, 13, 1.5 + 0.22 * len(names), salt="statistics") as canvas:
        panels = canvas.subplots(1, len(epsilons), sharey=True, squeeze=False)[0]
        for axes, epsilon in zip(panels, epsilons, strict=True):
            here = {each.table: each for each in found if each.epsilon == epsilon}
            _panel(axes, here, names)
            axes.set(xscale="log", title=f"ε = {epsilon:g}", xlabel="error of correlations")
            axes.grid(alpha=0.3)
        panels[0].set_yticks(range(len(names)), names)
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)


def _panel(axes: Axes, found: dict[str, Comparison], names: list[str]) -> None:
    for key, (label, colour, marker) in MARKS.items():
        here = [(getattr(found[name], key), row) for row, name in enumerate(names) if name in found]
        known = [(value, row) for value, row in here if value is not None]
        values, rows = [value for value, _ in known], [row for _, row in known]
        size = 90 if marker == "|" else 22
        axes.scatter(values, rows, s=size, c=colour, marker=marker, label=label)


BENCHMARK = Benchmark(
    name="statistics",
    quick="measure two tables with few releases",
    result=cells.Result,
    missing=cells.missing,
    measure=cells.measure,
    label=lambda cell: f"{cell.table} {cell.epsilon:g} {cell.method}",
    write=write,
)
