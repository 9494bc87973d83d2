"""The result of a check, as text and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from gramercy.cli.output import terminal
from gramercy.pipeline.plan.checking import ColumnQuality, TableCheck, percentage
from gramercy.schemas import families
from gramercy.schemas.errors import TableError
from gramercy.schemas.problem import Notice


def _check_is_private() -> Notice:
    return families.PRIVATE(
        "These are exact facts about private cells, without a privacy guarantee: never publish or "
        "send them.",
        "Use them to correct files, units and the spelling of levels. Do not choose bounds, "
        "centres or scales by them: 'scaling: private' finds centres and scales within the budget.",
    )


_MOST_COLUMNS = 100  # with more columns, only those with a problem are listed
_STYLES = {"fine": "green", "warning": "yellow", "unusable": "bold red"}


def check_facts(check: TableCheck, version: str) -> dict[str, Any]:
    """A check as plain data. Private."""
    errors, notices = check.errors, check.notices
    return {
        "notice": _check_is_private().message,
        "dataset": check.contract.id,
        "version": version,
        "usable": not errors,
        "complete": check.complete,
        "rows": check.lines,
        "rows_declared": check.contract.rows,
        "malformed_rows": check.malformed,
        "persons": check.persons if check.complete else None,
        "persons_declared": check.contract.persons,
        "rows_without_person": check.rows_without_person,
        "ids_alike": check.ids_alike,
        "rows_without_date": check.rows_without_date,
        "columns": {
            column.name: {
                "missing": column.missing,
                "out_of_bounds": column.clamped,
                "verdict": column.verdict,
            }
            for column in check.columns
        },
        "levels_without_cells": list(check.levels_without_cells),
        "problems": [*map(_problem, errors), *map(_problem, notices)],
    }


def _problem(each: TableError | Notice) -> dict[str, str]:
    return {"code": each.code, "message": each.message}


def print_check(check: TableCheck, version: str) -> None:
    """Print a check: a table of columns, what to do, and that all of it is private."""
    contract = check.contract
    read = f"{check.lines:,} lines" if check.complete else f"the first {check.lines:,} lines"
    terminal.say(terminal.bold(contract.id), f", version {version}: {read} read")
    listed = _listed(check.columns)
    if listed:
        terminal.out.print(_table(listed))
    if others := len(check.columns) - len(listed):
        terminal.say(f"{others} other columns are fine.")
    if check.persons is not None:
        terminal.say(
            f"Persons: {check.persons:,} ids. The guarantee is for each id: a person with two ids, "
            "or with one id in two spellings, counts as two."
        )
    if check.rows_without_person:
        terminal.say(f"Rows without a person, which are left out: {check.rows_without_person:,}.")
    for error in check.errors:
        terminal.say(Text(f"Error {error.code}: ", style="red"), error.message, to=terminal.err)
    for notice in check.notices:
        terminal.warn(notice)
    if not check.errors and not check.notices:
        terminal.say("Nothing to correct was found.")
    terminal.warn(_check_is_private())


def _listed(columns: Sequence[ColumnQuality]) -> list[ColumnQuality]:
    many = len(columns) > _MOST_COLUMNS
    return [column for column in columns if not many or column.verdict != "fine"]


def _table(columns: Sequence[ColumnQuality]) -> Table:
    table = Table(box=None)
    table.add_column("column")
    for title in ("missing", "out of bounds"):
        table.add_column(title, justify="right")
    table.add_column("verdict")
    for column in columns:
        bounds = "" if column.is_levels else percentage(column.clamped_share)
        table.add_row(
            Text(column.name),
            percentage(column.missing_share),
            bounds,
            Text(column.verdict, style=_STYLES[column.verdict]),
        )
    return table
