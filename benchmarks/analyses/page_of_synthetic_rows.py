"""The section of the results page on synthetic rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.analyses.cells import Result
from benchmarks.analyses.comparing import better, number
from benchmarks.analyses.lines import SYNTHETIC_COLUMNS, synthetic_lines
from benchmarks.analyses.methods import SYNTHETIC
from benchmarks.analyses.surveys import SURVEYS, TITLES
from benchmarks.markdown import table
from benchmarks.method_cells import Cell

_NAMES = ("marginals", "correlations", "error", "loss")


def section(results: Mapping[Cell, Result]) -> Iterator[str]:
    """Yield the section."""
    lines = synthetic_lines(results)
    yield "## Synthetic rows\n"
    yield (
        "As many rows as the sample has, against the population. `marginals` is the total "
        "variation of the joint distribution of two columns, numeric ones in tenths, on average "
        "over all pairs; `correlations` the root mean square error over pairs of columns and "
        "indicators of levels; `error` and `loss` are as above, for least squares of the last "
        "column on all others in the synthetic rows.\n"
    )
    for method in SYNTHETIC.values():
        yield f"- **{method.title}**: {method.note}."
    yield ""
    yield (
        "MST and AIM draw their rows independently from the model that they fit; SmartNoise's own "
        "`sample` rounds, which with mbi 1.1 correlates independent columns, by up to .3. Their "
        "figures are of one release a cell, and ours of ten.\n"
    )
    for of in _NAMES:
        yield f"`{of}`:\n"
        body = []
        for (name, epsilon), here in lines.items():
            sample = results.get(Cell(name, 1.0, "synthetic, sample"))
            alone = sample.scores[""][of] if sample else None
            shown = (number(here.get(key, {}).get(of)) for key in SYNTHETIC_COLUMNS)
            body.append((name, f"{epsilon:g}", *shown, number(alone)))
        yield from table(("table", "epsilon", *SYNTHETIC_COLUMNS.values(), "the sample"), body)
    for theirs in ("synthetic, MST", "synthetic, AIM"):
        found = list(better(lines, "synthetic, private", theirs, _NAMES))
        if found:
            yield f"{SYNTHETIC_COLUMNS[theirs]} is more accurate: {'; '.join(found)}.\n"
    yield (
        "A copula has the released correlations and no curve: on the table of curves its joint "
        "distributions stay wrong with any budget.\n"
    )
    yield "Tables:\n"
    yield from (f"- {name}: {TITLES[name]}." for name in SURVEYS)
    yield ""
