"""``gramercy check``: a look at the table for its steward, without a charge."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gramercy.cli import terminal
from gramercy.cli.options import AsJson, PeriodOption, RequestPath
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.checking import ColumnQuality, TableCheck, check_table, percentage
from gramercy.pipeline.plan.planning import load_contract, utc_now
from gramercy.pipeline.plan.request_files import dated_request, read_request
from gramercy.pipeline.progress import is_terminal, rows_bar
from gramercy.pipeline.publish.private_table import (
    copied_contract,
    copy_folder,
    remove_abandoned_copies,
)
from gramercy.pipeline.publish.table_validation import changes_since_last_version
from gramercy.pipeline.validation.mistakes import (
    derived_columns,
    find_mistakes,
    sampled_table,
)
from gramercy.pipeline.validation.outcome import Outcome, in_words, validation_notices
from gramercy.pipeline.validation.suite import Job
from gramercy.pipeline.validation.worker_process import start_ahead, worker
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError, TableError
from gramercy.schemas.problem import Notice

_VALIDATION = ("expectations", "changes_since", "changes")
_MOST_COLUMNS = 100  # with more columns, only those with a problem are listed
_LAST_STEPS = 6  # of a series, whose numbers of rows are shown
_STYLES = {"fine": "green", "warning": "yellow", "unusable": "bold red"}


def check(
    request: RequestPath,
    rows: Annotated[
        int | None, typer.Option("--rows", min=1, metavar="N", help="Read only the first N rows.")
    ] = None,
    period: PeriodOption = None,
    json: AsJson = False,
) -> None:
    """Show the steward what a release could not use of the table, without a charge.

    Counts missing, unreadable and out-of-bounds cells, unknown levels and malformed lines, looks
    for likely mistakes (codes of missing values, numbers in another notation, totals, duplicates,
    identifiers), runs Great Expectations on a sample, and compares the table with that of the last
    release. The output is private: it is printed on a terminal (or with --json), and stored
    nowhere. The exit code is 2 if the table cannot be used. A release never depends on a check.

    Example: gramercy check request.yaml
    """
    if not json and not (is_terminal(terminal.out) and is_terminal(terminal.err)):
        raise families.NOT_A_TERMINAL(
            "'gramercy check' prints exact facts about private cells, so standard output and "
            "standard error must be terminals.",
            "Run it in a terminal, or pass --json if a program must read the result.",
        )
    context = Context.default()
    start_ahead()
    remove_abandoned_copies(context.home)
    dated = dated_request(context, read_request(request, period), utc_now())
    contract = load_contract(context, dated)
    total = contract.rows if rows is None else min(rows, contract.rows)
    with copy_folder(context.home, contract) as folder:
        copied = contract if folder is None else copied_contract(contract, folder)
        job = Job.of(context.home, contract, copied)
        outcome = Outcome(replace(job, looks_for_mistakes=False))
        with ThreadPoolExecutor(1) as threads, worker() as process:
            validation = threads.submit(outcome.ask_all, process)
            with rows_bar("checking", total) as on_rows:
                result = check_table(copied, rows, on_rows)
            table = sampled_table(copied)
            mistakes, derived = find_mistakes(table), derived_columns(table)
            validation.result()
    facts = outcome.facts() | {
        "rows": result.lines,
        "malformed_rows": result.malformed,
        "filled_cells": {column.name: column.missing for column in result.columns},
    }
    facts |= changes_since_last_version(context, contract.id, "", facts)
    refused = outcome.error(context.home)
    found = Findings(
        [*result.errors, *([] if refused is None else [refused])],
        [*result.notices, *derived, *validation_notices(facts)],
        mistakes,
        {name: facts[name] for name in _VALIDATION if name in facts},
    )
    if json:
        terminal.print_json(_check_facts(result, dated.version, found))
    else:
        _print_check(result, dated.version, found)
    if found.errors:
        sys.exit(TableError.exit_code)


@dataclass(frozen=True, repr=False)
class Findings:
    """What a check found that is not a count. Private."""

    errors: Sequence[GramercyError]  # why a release would be refused
    notices: Sequence[Notice]
    mistakes: Sequence[Notice]
    validation: Mapping[str, Any]  # what Great Expectations found, and what changed


def _check_is_private() -> Notice:
    return families.PRIVATE(
        "These are exact facts about private cells, without a privacy guarantee: never publish or "
        "send them.",
        "Use them to correct files, units and the spelling of levels. Do not choose bounds, "
        "centres or scales by them: 'scaling: private' finds centres and scales within the budget.",
    )


def _check_facts(check: TableCheck, version: str, found: Findings) -> dict[str, Any]:
    """A check as plain data. Private."""
    problems: list[GramercyError | Notice] = [*found.errors, *found.notices]
    return {
        "notice": _check_is_private().message,
        "dataset": check.contract.id,
        "version": version,
        "usable": not found.errors,
        "complete": check.complete,
        "rows": check.lines,
        "rows_declared": check.contract.rows,
        "malformed_rows": check.malformed,
        "persons": check.persons if check.complete else None,
        "persons_declared": check.contract.persons,
        "rows_without_person": check.rows_without_person,
        "ids_alike": check.ids_alike,
        "rows_without_date": check.rows_without_date,
        "rows_by_step": [
            {
                "version": step.version,
                "first_day": step.first.isoformat(),
                "last_day": step.last.isoformat(),
                "rows": step.rows,
            }
            for step in check.rows_of_steps
        ],
        "columns": {
            column.name: {
                "missing": column.missing,
                "out_of_bounds": column.clamped,
                "verdict": column.verdict,
            }
            for column in check.columns
        },
        "levels_without_cells": list(check.levels_without_cells),
        **found.validation,
        "problems": [
            {"code": each.code, "message": each.message, "facts": dict(each.facts)}
            for each in problems
        ],
        "mistakes": [
            {
                "mistake": each.facts["mistake"],
                "columns": list(each.facts["columns"]),
                "line": each.facts.get("line"),
                "code": each.code,
                "message": each.message,
                "facts": dict(each.facts),
            }
            for each in found.mistakes
        ],
    }


def _print_check(check: TableCheck, version: str, found: Findings) -> None:
    """Print a check: a table of columns, what to do, and that all of it is private."""
    contract = check.contract
    read = f"{check.lines:,} lines" if check.complete else f"the first {check.lines:,} lines"
    terminal.say(terminal.bold(contract.id), f", version {version}: {read} read")
    many = len(check.columns) > _MOST_COLUMNS
    listed = [column for column in check.columns if not many or column.verdict != "fine"]
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
    if steps := check.rows_of_steps:
        last = "; ".join(step.in_words for step in steps[-_LAST_STEPS:])
        omitted = len(steps) - _LAST_STEPS
        terminal.say(f"{'Last steps' if omitted > 0 else 'Steps'}: {last}.")
    terminal.say(in_words(found.validation["expectations"]))
    for error in found.errors:
        terminal.say(Text(f"Error {error.code}: ", style="red"), error.message, to=terminal.err)
    notices = [*found.notices, *found.mistakes]
    for notice in notices:
        terminal.warn(notice)
    if not found.errors and not notices:
        terminal.say("Nothing to correct was found.")
    terminal.warn(_check_is_private())


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
