"""Warnings for the steward about the private table, printed on a terminal only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.panel import Panel
from rich.text import Text

from gramercy.application.planning import Plan
from gramercy.application.progress import is_terminal
from gramercy.application.table_quality import (
    holds_nothing,
    quality_notices,
    recorded_quality,
)
from gramercy.cli.output import terminal
from gramercy.schemas.problem import Notice
from gramercy.schemas.problems import warnings

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
        yield warnings.release_is_noise(release)
    yield from quality_notices(columns, internal.get("rows", 0), internal.get("malformed_rows", 0))


def _notices(internal: Mapping[str, Any]) -> Iterator[Notice]:
    if internal.get("table_changed_since"):
        yield warnings.table_changed()
    counted, declared = internal.get("persons"), internal.get("persons_declared")
    if counted != declared:
        yield warnings.persons_differ(counted, declared)
    if columns := _worst(internal.get("filled_cells", {})):
        yield warnings.cells_filled(columns)
    if columns := _worst(internal.get("clamped_cells", {})):
        yield warnings.cells_clamped(columns)
    if lines := internal.get("malformed_rows"):
        yield warnings.malformed_lines(lines)


def _worst(cells: Mapping[str, int]) -> str:
    """The columns with the highest counts of cells, with these counts."""
    counts = {name: count for name, count in cells.items() if count}
    worst = sorted(counts, key=counts.__getitem__, reverse=True)
    listed = ", ".join(f"{name} ({counts[name]})" for name in worst[:_LISTED_COLUMNS])
    others = len(worst) - _LISTED_COLUMNS
    return listed + (f" and {others} more columns" if others > 0 else "")
