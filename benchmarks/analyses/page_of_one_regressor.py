"""The section of the results page on regressions on one regressor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.analyses.cells import Result
from benchmarks.analyses.comparing import better, number
from benchmarks.analyses.lines import ONE_REGRESSOR_COLUMNS, one_regressor_lines
from benchmarks.analyses.methods import ONE_REGRESSOR
from benchmarks.markdown import table
from benchmarks.method_cells import Cell

_NAMES = ("error", "loss")


def section(results: Mapping[Cell, Result]) -> Iterator[str]:
    """Yield the section."""
    lines = one_regressor_lines(results)
    yield "## One regressor\n"
    yield (
        "The first and the last column of tables above. OpenDP's regression has one regressor, and "
        "is robust: it estimates medians, which differ from least squares where errors are skewed "
        "or the outcome has few values, and `error` contains that difference.\n"
    )
    for method in ONE_REGRESSOR.values():
        yield f"- **{method.title}**: {method.note}."
    yield ""
    private = "one regressor, private"
    coverage = {
        "private constants: coverage": "coverage",
        "clipped coverage": "clipped coverage",
    }
    titles = [f"{title}: {of}" for title in ONE_REGRESSOR_COLUMNS.values() for of in _NAMES]
    body = []
    for (name, epsilon), here in lines.items():
        shown = [
            number(here.get(key, {}).get(of)) for key in ONE_REGRESSOR_COLUMNS for of in _NAMES
        ]
        shown += [number(here.get(private, {}).get(of), percent=True) for of in coverage.values()]
        body.append((name.removesuffix(", one regressor"), f"{epsilon:g}", *shown))
    yield from table(("table", "epsilon", *titles, *coverage), body)
    for ours in (private, "one regressor, pure"):
        found = list(better(lines, ours, "one regressor, OpenDP", _NAMES))
        if found:
            cells = "; ".join(found).replace(", one regressor", "")
            yield f"OpenDP is more accurate than {ONE_REGRESSOR_COLUMNS[ours]}: {cells}.\n"
    yield (
        "One coefficient of a large table has little noise, and what clipping changes shows: on "
        "lognormal columns it exceeds the interval, unless the coefficient of the clipped rows is "
        "what is asked for.\n"
    )
