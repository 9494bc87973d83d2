"""Warnings about the private table, for the steward: on the terminal and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gramercy.cli.output import terminal
from gramercy.schemas.problem import Notice
from gramercy.schemas.problems import warnings

_LISTED = 5  # columns


def print_steward_notes(internal: Mapping[str, Any]) -> None:
    """Print them on a terminal; to a file or a pipe, print nothing.

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
    """The columns with the most such cells, with their numbers of cells."""
    counts = {name: count for name, count in cells.items() if count}
    worst = sorted(counts, key=counts.__getitem__, reverse=True)
    listed = ", ".join(f"{name} ({counts[name]})" for name in worst[:_LISTED])
    others = len(worst) - _LISTED
    return listed + (f" and {others} more columns" if others > 0 else "")
