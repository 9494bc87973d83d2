"""Write the results page from the stored results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from benchmarks.cells import Benchmark, Cell, read_results
from benchmarks.pages import figure, table, write_page
from benchmarks.statistics import cells, methods, moments, peers
from benchmarks.statistics.cells import EPSILONS, METHODS, Result
from benchmarks.statistics.comparisons import Comparison, comparisons, geometric_mean
from benchmarks.statistics.correlations import error
from benchmarks.statistics.moments import MEASURED
from benchmarks.statistics.tables import TABLES, load
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.scaling.shares import LEAST_STRENGTH
from tests.support.private_release import DELTA


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
        "not part of this page. Written by `python -m benchmarks statistics` from `results.jsonl`, "
        "which was measured on 27 November 2026. "
        "Noise is seeded, so nothing here is a release.\n"
    )
    for method in methods.METHODS.values():
        yield f"- **{method.title}**: {method.note}."
    yield ""
    yield from _summary(found)
    yield "![Errors of correlations](figures/accuracy.svg)\n"
    yield from _by_table(found)
    yield from peer_sections(results)
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
            "error of one stage / error",
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
    whitened = [each.whitening for each in known if each.whitening is not None]
    return (
        str(len(known)),
        f"{geometric_mean(to_best):.2f}",
        f"{np.mean(to_best <= 1.3):.0%}",
        f"{np.mean(to_best <= 2):.0%}",
        f"{to_expert:.2f}",
        f"{geometric_mean(gains):.1f}" if gains else "",
        f"{geometric_mean(whitened):.2f}" if whitened else "",
    )


def _by_table(found: list[Comparison]) -> Iterator[str]:
    yield "## By table\n"
    yield "Geometric means over epsilon of the error, relative to the best hand-tuned constants.\n"
    lines = []
    for name, recipe in TABLES.items():
        here = [each for each in found if each.table == name and each.private is not None]
        if here:
            gains = [each.gain for each in here if each.gain is not None]
            whitened = [each.whitening for each in here if each.whitening is not None]
            lines.append(
                (
                    name,
                    recipe.title,
                    f"{here[0].n:,} x {here[0].p}",
                    f"{geometric_mean(each.to_best for each in here):.2f}",
                    f"{max(each.to_best for each in here):.2f}",
                    f"{geometric_mean(gains):.1f}" if gains else "",
                    f"{geometric_mean(whitened):.2f}" if whitened else "",
                )
            )
    yield from table(
        (
            "table",
            "",
            "rows x columns",
            "error / best",
            "largest",
            "bounds and unit rows / error",
            "one stage / error",
        ),
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


Results = Mapping[Cell, Result]
OWN = "own units, private"
MOMENTS = ("own units, bounds", "OpenDP moments", "diffprivlib moments", "SmartNoise moments")
FORMS = ("means", "deviations", "means, median", "deviations, median")
COMPONENTS = ("OpenDP components", "diffprivlib components")


def peer_sections(results: Results) -> Iterator[str]:
    """Yield the sections whose cells have been measured."""
    if any(cell.method in MOMENTS for cell in results):
        yield from _moments(results)
    if any(cell.method in COMPONENTS for cell in results):
        yield from _components(results)


def _moments(results: Results) -> Iterator[str]:
    yield "## Means and deviations\n"
    yield (
        "Means and standard deviations of all columns in their own units, from bounds, at the same "
        f"(epsilon, {DELTA:g}) guarantee (replace-one). Gramercy's come from one release that also "
        "gives all correlations; the libraries divide their budget evenly over 2p statistics and "
        "give nothing else. The error of a mean is in units of the true deviation; that of a "
        "deviation is the logarithm of estimate over truth, at most log 10, which also counts for "
        "a deviation that is unknown. Errors are root mean squares over the columns, and all "
        "estimates are put within the bounds. Tables have no missing cells; the libraries get "
        "columns that the bounds carry to [-1, 1]; few releases are drawn, 8 of Gramercy and "
        "OpenDP, 4 of diffprivlib and 2 of SmartNoise.\n"
    )
    for name in (OWN, *MOMENTS):
        yield f"- **{METHODS[name].title}**: {METHODS[name].note}."
    yield "\nErrors relative to private constants: above 1, private constants are more accurate.\n"
    lines = []
    for epsilon in moments.EPSILONS:
        for name in MOMENTS:
            ratios = [_peer_ratios(results, each, epsilon, name) for each in MEASURED]
            known = [each for each in ratios if each is not None]
            if known:
                forms = np.array(known).T
                shares = (f"{np.mean(each < 1):.0%}" for each in forms[:2])
                lines.append(
                    (
                        f"{epsilon:g}",
                        METHODS[name].title,
                        str(len(known)),
                        *(_ratio(each) for each in forms),
                        *shares,
                    )
                )
    yield from table(
        (
            "epsilon",
            "method",
            "cells",
            "means",
            "deviations",
            "means, median column",
            "deviations, median column",
            "cells with better means",
            "cells with better deviations",
        ),
        lines,
    )
    yield from _better(results)
    yield "By table, geometric means over epsilon, for the median column's mean / deviation:\n"
    yield from table(("table", *(METHODS[name].title for name in MOMENTS)), _tables(results))


def _peer_ratios(results: Results, name: str, epsilon: float, method: str) -> list[float] | None:
    """Errors relative to Gramercy's, in the order of `FORMS`."""
    ours, theirs = (results.get(Cell(name, epsilon, each)) for each in (OWN, method))
    if ours is None or theirs is None or not ours.errors or not theirs.errors:
        return None
    return [theirs.errors[form] / ours.errors[form] for form in FORMS]


def _ratio(ratios: Iterable[float]) -> str:
    value = geometric_mean(ratios)
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _better(results: Results) -> Iterator[str]:
    """Where a library is more accurate than private constants."""
    found = []
    for method, name, epsilon in product(MOMENTS[1:], MEASURED, moments.EPSILONS):
        ratios = _peer_ratios(results, name, epsilon, method) or (1.0, 1.0)
        better = [of for of, each in zip(("means", "deviations"), ratios, strict=False) if each < 1]
        if better:
            title = f"{METHODS[method].title}, {name}, epsilon {epsilon:g}"
            found.append(f"- {title}: {' and '.join(better)}")
    if found:
        yield (
            "In these cells a library has the smaller root mean square error: it estimates a mean "
            "directly, without the bias of clipped tails and without a share of the budget for "
            "constants and correlations.\n"
        )
        yield from (*found, "")


def _tables(results: Results) -> Iterator[tuple[str, ...]]:
    for name in MEASURED:
        row = [name]
        for method in MOMENTS:
            ratios = [_peer_ratios(results, name, epsilon, method) for epsilon in moments.EPSILONS]
            known = [each[2:] for each in ratios if each is not None]
            pair = (_ratio(each) for each in zip(*known, strict=True))
            row.append(" / ".join(pair))
        if any(row[1:]):
            yield tuple(row)


def _least(result: Result | None) -> float | None:
    """The least error of the forms that one release may have."""
    errors = {} if result is None else result.errors
    return errors.get("", min(errors.values(), default=None))


def _components(results: Results) -> Iterator[str]:
    yield "## Correlations by other libraries\n"
    yield (
        "The principal components of two libraries give a covariance, and that gives correlations. "
        "Their guarantee is pure epsilon, which is stronger than that of private constants; "
        "so Gramercy with pure epsilon is measured as well. The libraries get rows that the bounds "
        "carry to [-1, 1], clipped at the lengths sqrt(p) and .3 sqrt(p); each error is that of "
        f"the better length. `all zero` is the error of answering zero for every correlation. A "
        f"blank: two fits took more than {peers.SECONDS} seconds of processor "
        "time at either length. That is why only tables of few columns are measured, and no larger "
        "epsilon.\n"
    )
    for name in ("pure", *COMPONENTS):
        yield f"- **{METHODS[name].title}**: {METHODS[name].note}."
    yield ""
    lines = []
    for epsilon in peers.DECOMPOSED_EPSILONS:
        for name in peers.DECOMPOSED:
            found = [
                results.get(Cell(name, epsilon, each)) for each in ("private", "pure", *COMPONENTS)
            ]
            least = (_least(each) for each in found)
            numbers = ("" if each is None else f"{each:.3g}" for each in least)
            truth = load(name).correlations
            lines.append((f"{epsilon:g}", name, f"{error(0 * truth, truth):.3g}", *numbers))
    yield from table(
        (
            "epsilon",
            "table",
            "all zero",
            f"private constants, delta = {DELTA:g}",
            *(METHODS[each].title for each in ("pure", *COMPONENTS)),
        ),
        lines,
    )
