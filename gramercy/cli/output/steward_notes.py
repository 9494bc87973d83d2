"""Warnings for the steward about the private table, printed on a terminal only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.panel import Panel
from rich.text import Text

from gramercy.cli.output import terminal
from gramercy.pipeline.plan.checking import (
    holds_nothing,
    quality_notices,
    recorded_quality,
)
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.progress import is_terminal
from gramercy.schemas import families, wordings
from gramercy.schemas.problem import Notice

_LISTED_COLUMNS = 5


def print_steward_notes(plan: Plan, release: str, internal: Mapping[str, Any]) -> None:
    """Print the warnings about a release's table, if standard error is a terminal.

    They are exact facts about private cells. So they go nowhere else, and change no exit code.

    Parameters
    ----------
    plan
        The plan of the release.
    release
        DATASET/RELEASE.
    internal
        The internal record of the release.
    """
    if not is_terminal(terminal.err):
        return
    for notice in _notices(internal):
        terminal.warn(notice)
    if loud := list(_loud_notices(plan, release, internal)):
        terminal.err.print(_framed(loud))


def _framed(notices: Sequence[Notice]) -> Panel:
    text = Text("\n\n").join(
        Text.assemble((f"Warning {each.code}: ", "bold red"), each.message) for each in notices
    )
    title = Text("The table could not be read well (internal, do not publish)", style="bold red")
    return Panel(text, title=title, title_align="left", border_style="red", padding=1)


def _loud_notices(plan: Plan, release: str, internal: Mapping[str, Any]) -> Iterator[Notice]:
    """Warnings about a table that could hardly be read."""
    columns = recorded_quality(internal, plan.contract)
    if not columns:  # the release did not read a table
        return
    if holds_nothing(columns) or internal.get("persons") == 0:
        yield families.NOTHING_USED(
            "{release} contains nothing but noise: not one cell of the table could be used.",
            "Withdraw it, and find the cause with 'gramercy check REQUEST'. The "
            "corrected table needs a new version, which is a new charge.",
            release=release,
        )
    yield from quality_notices(columns, internal.get("rows", 0), internal.get("malformed_rows", 0))


def _notices(internal: Mapping[str, Any]) -> Iterator[Notice]:
    if internal.get("table_changed_since"):
        yield wordings.files_changed()
    counted, declared = internal.get("persons"), internal.get("persons_declared")
    if counted != declared:
        yield wordings.persons_differ(counted, declared)
    if columns := _worst(internal.get("filled_cells", {})):
        yield families.REPAIRED_CELLS(
            "Missing or invalid cells were set to the column's centre, or to no level: {columns}.",
            columns=columns,
        )
    if columns := _worst(internal.get("clamped_cells", {})):
        yield families.REPAIRED_CELLS(
            "Cells were out of bounds and were clamped: {columns}.",
            columns=columns,
        )
    if lines := internal.get("malformed_rows"):
        yield families.UNUSABLE_LINES(
            "{lines} lines are blank, malformed or of the wrong width: none of their "
            "cells was used.",
            "Write the file again with one line for each row, and quotes around "
            "fields with commas.",
            lines=lines,
        )


def _worst(cells: Mapping[str, int]) -> str:
    """The columns with the highest counts of cells, with these counts."""
    counts = {name: count for name, count in cells.items() if count}
    worst = sorted(counts, key=counts.__getitem__, reverse=True)
    listed = ", ".join(f"{name} ({counts[name]})" for name in worst[:_LISTED_COLUMNS])
    others = len(worst) - _LISTED_COLUMNS
    return listed + (f" and {others} more columns" if others > 0 else "")
