"""What a steward should know of the private table: on the terminal, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gramercy.cli.output import terminal

_REPAIRS = {
    "filled_cells": "were missing, no number or no level, and took the centre or no level",
    "clamped_cells": "were out of bounds, and were clamped",
}
_LISTED = 5  # columns


def steward_notes(internal: Mapping[str, Any]) -> None:
    """Print them; into a file or a pipe, nothing.

    Parameters
    ----------
    internal
        The internal record of a release.
    """
    if terminal.err.is_terminal:
        for note in _notes(internal):
            terminal.warn("Note for the steward: ", note)


def _notes(internal: Mapping[str, Any]) -> Iterator[str]:
    if internal.get("table_changed_since"):
        yield (
            "the files have changed since this version was published. A new version is a new "
            "release, and a new charge."
        )
    found, declared = internal.get("persons"), internal.get("persons_declared")
    if found != declared:
        yield (
            f"the table has {found} persons and the contract's 'persons' is {declared}. The "
            "guarantee holds, but averages are off by that ratio: correct names or contract."
        )
    for key, words in _REPAIRS.items():
        counts = {name: count for name, count in internal.get(key, {}).items() if count}
        if counts:
            worst = sorted(counts, key=counts.__getitem__, reverse=True)
            listed = ", ".join(f"{name} ({counts[name]})" for name in worst[:_LISTED])
            left = len(worst) - _LISTED
            more = f" and {left} more columns" if left > 0 else ""
            yield f"cells {words}: {listed}{more}."
    if lines := internal.get("malformed_rows"):
        yield (
            f"{lines} lines are blank, broken or of the wrong width, and counted as rows of zeros."
        )
