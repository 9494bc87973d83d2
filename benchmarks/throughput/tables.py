"""Figures for the page: medians over rounds of times, and of ratios within a round."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from benchmarks.throughput.cells import Cell, Measured, Result

Results = dict[Cell, Result]


def of(results: Results, what: str) -> list[Result]:
    """Return the results of one job, by size."""
    found = (result for cell, result in results.items() if cell.what == what)
    return sorted(found, key=lambda each: (each.cell.columns, each.cell.rows))


def seconds(measured: Measured) -> float:
    """Median time over rounds."""
    return statistics.median(measured.seconds)


def ratio(result: Result, name: str, to: str) -> float | None:
    """Median ratio of a contender's time to another's; None if either was not measured."""
    one, other = result.contenders.get(name), result.contenders.get(to)
    if one is None or other is None:
        return None
    pairs = zip(one.seconds, other.seconds, strict=False)
    return statistics.median(theirs / ours for theirs, ours in pairs)


def added(measured: Measured) -> float:
    """Peak memory minus the memory before, in megabytes."""
    return measured.peak - measured.before


def slope(points: list[tuple[int, float]]) -> float:
    """Slope of the line fitted to the logarithms of the points."""
    x, y = ([math.log(value) for value in values] for values in zip(*points, strict=True))
    return statistics.linear_regression(x, y).slope


def series(results: Results, name: str, *, over_rows: bool) -> list[tuple[int, float]]:
    """Seconds of `gram` against rows or columns; the other size is the most frequent one."""
    cells = [each.cell for each in of(results, "gram")]
    fixed = statistics.mode(cell.columns if over_rows else cell.rows for cell in cells)
    return sorted(_points(of(results, "gram"), name, fixed, over_rows=over_rows))


def _points(
    result: list[Result], name: str, fixed: int, *, over_rows: bool
) -> Iterator[tuple[int, float]]:
    for each in result:
        at, along = each.cell.columns, each.cell.rows
        if not over_rows:
            at, along = along, at
        if at == fixed and name in each.contenders:
            yield along, seconds(each.contenders[name])
