"""Numbers of the results page, and where another method is more accurate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.analyses.lines import Lines


def number(value: float | None, percent: bool = False) -> str:
    """A score with two digits; empty if there is none."""
    if value is None or np.isnan(value):
        return ""
    return f"{value:.0%}" if percent else f"{value:.2g}"


def better(lines: Lines, ours: str, theirs: str, names: Sequence[str]) -> Iterator[str]:
    """Cells in which the second method has a smaller score, with the names of these scores."""
    for (name, epsilon), here in lines.items():
        if ours in here and theirs in here:
            found = [of for of in names if here[theirs][of] < here[ours][of]]
            if found:
                yield f"{name} at epsilon {epsilon:g} ({', '.join(found)})"
