"""Warnings for the steward about the private table, printed on a terminal only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gramercy.cli.output import terminal
from gramercy.schemas.problem import Notice
from gramercy.schemas.problems import warnings

_LISTED_COLUMNS = 5


def print_steward_notes(internal: Mapping[str, Any]) -> None:
    """Print the warnings about a release's table, if standard error is a terminal.

    Parameters
    ----------
    internal
        The internal record of a release.
    """
    if terminal.err.is_terminal:
        for notice in _notices(internal):
            terminal.warn(notice)


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
