"""The parts of the page on means, deviations and other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

import numpy as np

from benchmarks.cells import Cell
from benchmarks.pages import table
from benchmarks.statistics import peers
from benchmarks.statistics.cells import METHODS, Result
from benchmarks.statistics.comparisons import geometric_mean
from benchmarks.statistics.correlations import error
from benchmarks.statistics.methods import DELTA
from benchmarks.statistics.moments import EPSILONS, MEASURED
from benchmarks.statistics.tables import load

Results = Mapping[Cell, Result]
OURS = "own units, private"
MOMENTS = ("own units, bounds", "OpenDP moments", "diffprivlib moments", "SmartNoise moments")
FORMS = ("means", "deviations", "means, median", "deviations, median")
COMPONENTS = ("OpenDP components", "diffprivlib components")


def sections(results: Results) -> Iterator[str]:
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
    for name in (OURS, *MOMENTS):
        yield f"- **{METHODS[name].title}**: {METHODS[name].note}."
    yield "\nErrors relative to private constants: above 1, private constants are more accurate.\n"
    lines = []
    for epsilon in EPSILONS:
        for name in MOMENTS:
            ratios = [_ratios(results, each, epsilon, name) for each in MEASURED]
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


def _ratios(results: Results, name: str, epsilon: float, method: str) -> list[float] | None:
    """Errors relative to Gramercy's, in the order of `FORMS`."""
    ours, theirs = (results.get(Cell(name, epsilon, each)) for each in (OURS, method))
    if ours is None or theirs is None or not ours.errors or not theirs.errors:
        return None
    return [theirs.errors[form] / ours.errors[form] for form in FORMS]


def _ratio(ratios: Iterable[float]) -> str:
    value = geometric_mean(ratios)
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _better(results: Results) -> Iterator[str]:
    """Where a library is more accurate than private constants."""
    found = []
    for method, name, epsilon in product(MOMENTS[1:], MEASURED, EPSILONS):
        ratios = _ratios(results, name, epsilon, method) or (1.0, 1.0)
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
            ratios = [_ratios(results, name, epsilon, method) for epsilon in EPSILONS]
            known = [each[2:] for each in ratios if each is not None]
            pair = (_ratio(each) for each in zip(*known, strict=True))
            row.append(" / ".join(pair))
        if any(row[1:]):
            yield tuple(row)


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
            least = (min(each.errors.values(), default=None) if each else None for each in found)
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
