"""The section of the results page on principal components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.analyses.cells import Result
from benchmarks.analyses.comparing import better, number
from benchmarks.analyses.components import SECONDS
from benchmarks.analyses.lines import COMPONENT_COLUMNS, component_lines
from benchmarks.analyses.methods import COMPONENTS
from benchmarks.markdown import table
from benchmarks.method_cells import Cell


def section(results: Mapping[Cell, Result]) -> Iterator[str]:
    """Yield the section."""
    lines = component_lines(results)
    yield "## Principal components\n"
    yield (
        "Of the covariance of columns divided by half the width of their bounds. `lost` is the "
        "share of all variance by which the first two components found explain less than the best "
        "two; `share` is the root mean square error of the first component's share, from the "
        "released eigenvalues.\n"
    )
    for method in COMPONENTS.values():
        yield f"- **{method.title}**: {method.note}."
    yield ""
    head = (
        "table",
        "epsilon",
        *(f"{title}: {of}" for title in COMPONENT_COLUMNS.values() for of in ("lost", "share")),
    )
    body = [
        (
            name,
            f"{epsilon:g}",
            *(
                number(here.get(key, {}).get(of))
                for key in COMPONENT_COLUMNS
                for of in ("lost", "share")
            ),
        )
        for (name, epsilon), here in lines.items()
    ]
    yield from table(head, body)
    yield (
        f"An empty cell was not measured, or took more than {SECONDS} s of processor time. "
        "OpenDP's figures are of two releases a cell, and the others' of thirty."
    )
    ours, theirs = "components, pure", "components, OpenDP"
    found = list(better(lines, ours, theirs, ("lost", "share")))
    if found:
        yield f"\nOpenDP is more accurate than Gramercy, pure: {'; '.join(found)}."
    yield ""
