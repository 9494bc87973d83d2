"""Publish a request: show its plan, ask, run the flows, and print the outcome."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.panel import Panel
from rich.text import Text

from gramercy.api.release import Release
from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.cli import flow_runner, terminal
from gramercy.cli.options import split_name
from gramercy.cli.plan_text import period_warning, print_plan
from gramercy.cli.prefect_server import start_ahead
from gramercy.cli.release_limits import limits_facts
from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.budget_preview import (
    budget_effect,
    check_preview,
    preview_budget,
    reads_table,
)
from gramercy.pipeline.plan.checking import (
    check_table_header,
    holds_nothing,
    quality_notices,
    recorded_quality,
)
from gramercy.pipeline.plan.planning import Plan, make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.plan.series import withdrawn_constants
from gramercy.pipeline.plan.verdict import useless
from gramercy.pipeline.progress import is_terminal
from gramercy.pipeline.publish.approval import verified
from gramercy.pipeline.publish.internal_record import page_path, read_record
from gramercy.pipeline.validation import worker_process
from gramercy.pipeline.validation.outcome import validation_notices
from gramercy.pipeline.validation.suite import steward_suite
from gramercy.schemas import families, wordings
from gramercy.schemas.problem import Notice

_LISTED_COLUMNS = 5


def publish_request(
    request: Path,
    reports: Sequence[str] | None = None,
    *,
    yes: bool,
    new_charge: bool,
    json: bool,
    period: str | None = None,
    asks_if_useless: bool = False,
    mechanism: str | None = None,
) -> None:
    """Publish a request, or the average of the reports in these folders.

    The other parameters are options of the commands; and the only mechanism that one accepts.
    """
    context = Context.default()
    undated = read_request(request, period)
    if mechanism is not None and undated.mechanism.name != mechanism:
        raise families.REPORTS(
            "{request} asks for the mechanism '{mechanism}'; 'gramercy randomize' is for 'local' "
            "only.",
            "Write 'name: local' in the request, or use 'gramercy release'.",
            request=str(request),
            mechanism=undated.mechanism.name,
        )
    planned = make_plan(context, undated, averaging=reports is not None)
    preview = preview_budget(context, planned)
    if new_charge:
        charge = preview.previous_charge
        interrupted = charge.release if charge and not charge.is_published else None
        planned = planned.with_new_charge(interrupted)
    if reads_table(planned, preview):  # before Prefect starts; the flow validates again
        check_table_header(planned.contract)
        steward_suite(context.home, planned.contract.id)
        worker_process.start_ahead()
    if not json:
        print_plan(planned, preview)
    elif (warning := period_warning(planned, preview)) is not None:
        terminal.warn(warning)
    if (withdrawn := withdrawn_constants(context, planned)) is not None:
        terminal.warn(withdrawn)
    check_preview(planned, preview)  # before Prefect starts
    effect = budget_effect(planned, preview).kind
    if effect in ("charged", "included"):
        verified(context, planned)  # no command waits for an approval
        start_ahead()  # while the steward reads
        if asks_if_useless and effect == "charged":
            _confirm_useless(planned)
    if not yes:
        terminal.confirm("Publish? A charge is never refunded.", "Pass --yes to confirm.")
    done = flow_runner.publish(context, planned, reports or ())
    for problem in done.problems:
        terminal.warn(wordings.later_step_failed("The release is published", problem))
    if json:
        release = Release(context.archive, *split_name(done.release))
        limits = limits_facts(read_release(release.path), release.warnings)
        terminal.print_json(asdict(done) | limits)
    else:
        _print_outcome(context, done, has_table=reports is None)
    record = record_of_run(context.home, [*done.earlier_steps, done.release])
    print_steward_notes(planned, done.release, record)  # last, so that they are seen


def record_of_run(home: Home, releases: Sequence[str]) -> dict[str, Any]:
    """The internal record of the last release, with the changes that the steps before it found.

    All of them are drawn from one reading of the table, which the first one compares with earlier
    readings.
    """
    *earlier, record = (read_record(home, *split_name(each)) for each in releases)
    changed = dict[str, Any]()
    for each in (*earlier, record):
        changed |= each.get("changed_steps", {})
    return record | ({"changed_steps": changed} if changed else {})


def _confirm_useless(planned: Plan) -> None:
    """Ask before a charge for a release that would be useless; a script is refused."""
    verdict = useless(planned)
    if verdict is None:
        return
    if not sys.stdin.isatty():
        raise families.USELESS(
            "{reason}",
            "Change the request; or pass --despite to publish it all the same.",
            reason=verdict.text,
        )
    terminal.confirm(f"{verdict.text} Publish it all the same?", "Pass --despite.")


def _print_outcome(context: Context, done: flow_runner.Published, *, has_table: bool) -> None:
    outcome = "Already published, nothing charged" if done.replayed else "Published"
    terminal.say(f"{outcome}: ", terminal.bold(done.release), f"\n{done.path}")
    terminal.say(f"Report: {done.report or 'none'}")
    if done.earlier_steps:
        terminal.say("Steps that were missing before it: ", ", ".join(done.earlier_steps))
    if has_table:
        internal = page_path(context.home, *split_name(done.release))
        terminal.say(f"Internal (do not publish): {internal}", to=terminal.err)


def print_steward_notes(plan: Plan, release: str, internal: Mapping[str, Any]) -> None:
    """Print the warnings in a release's internal record, if standard error is a terminal.

    They are exact facts about private cells. So they go nowhere else, and change no exit code.
    """
    if not is_terminal(terminal.err):
        return
    for notice in _notices(internal):
        terminal.warn(notice)
    loud, columns = list[Notice](), recorded_quality(internal, plan.contract)
    if columns:  # otherwise the release did not read a table
        if holds_nothing(columns) or internal.get("persons") == 0:
            loud.append(
                families.NOTHING_USED(
                    "{release} contains nothing but noise: not one cell of the table could be "
                    "used.",
                    "Withdraw it, and find the cause with 'gramercy check REQUEST'. The "
                    "corrected table needs a new version, which is a new charge.",
                    release=release,
                )
            )
        malformed = internal.get("malformed_rows", 0)
        loud += quality_notices(columns, internal.get("rows", 0), malformed)
    if loud:
        labelled = ((f"Warning {each.code}: ", each.message) for each in loud)
        text = Text("\n\n").join(Text.assemble((lab, "bold red"), say) for lab, say in labelled)
        said = "The table could not be read well (internal, do not publish)"
        title = Text(said, style="bold red")
        panel = Panel(text, title=title, title_align="left", border_style="red", padding=1)
        terminal.err.print(panel)


def _notices(internal: Mapping[str, Any]) -> Iterator[Notice]:
    if internal.get("table_changed_since"):
        yield wordings.files_changed()
    if changed := internal.get("changed_steps"):
        steps = tuple(f"{label} ({before} to {now})" for label, (before, now) in changed.items())
        yield wordings.steps_changed(steps)
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
            "Cells were out of bounds and were clamped: {columns}.", columns=columns
        )
    if lines := internal.get("malformed_rows"):
        yield families.UNUSABLE_LINES(
            "{lines} lines are blank, malformed or of the wrong width: none of their "
            "cells was used.",
            "Write the file again with one line for each row, and quotes around "
            "fields with commas.",
            lines=lines,
        )
    yield from validation_notices(internal)


def _worst(cells: Mapping[str, int]) -> str:
    """The columns with the highest counts of cells, with these counts."""
    counts = {name: count for name, count in cells.items() if count}
    worst = sorted(counts, key=counts.__getitem__, reverse=True)
    listed = ", ".join(f"{name} ({counts[name]})" for name in worst[:_LISTED_COLUMNS])
    others = len(worst) - _LISTED_COLUMNS
    return listed + (f" and {others} more columns" if others > 0 else "")
