"""``gramercy release``, ``randomize`` and ``aggregate``: charge and publish."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from gramercy.application.budget_preview import (
    BudgetPreview,
    budget_effect,
    check_preview,
    preview_budget,
    reads_table,
)
from gramercy.application.context import Context
from gramercy.application.internal_record import page_path, read_record
from gramercy.application.planning import Plan, make_plan
from gramercy.application.table_header import check_table_header
from gramercy.application.verdict import useless
from gramercy.application.yaml_files import read_request
from gramercy.cli import flow_runner
from gramercy.cli.options import AsJson, PeriodOption, RequestPath, Yes, split_name
from gramercy.cli.output import terminal
from gramercy.cli.output.plan_text import period_warning, print_plan
from gramercy.cli.output.steward_notes import print_steward_notes
from gramercy.schemas.problems.command_line import not_the_local_mechanism, useless_release
from gramercy.schemas.problems.warnings import later_step_failed

NewCharge = Annotated[
    bool, typer.Option("--new-charge", help="Charge again after an interrupted release.")
]


Despite = Annotated[
    bool,
    typer.Option("--despite", help="Publish even if the plan says that it would be useless."),
]


def release(
    request: RequestPath,
    yes: Yes = False,
    despite: Despite = False,
    new_charge: NewCharge = False,
    period: PeriodOption = None,
    json: AsJson = False,
) -> None:
    """Publish a release, or return the one published before.

    A request is charged once: the same request again returns the same release, without a charge.
    If the plan's verdict is red, the command asks about that as well; --yes does not answer it.

    Example: gramercy release request.yaml --yes
    """
    _publish(request, yes, new_charge, json, period=period, asks_if_useless=not despite)


def randomize(
    request: RequestPath, yes: Yes = False, new_charge: NewCharge = False, json: AsJson = False
) -> None:
    """Publish one noisy report per row, for the mechanism 'local'.

    Run it where the rows are; 'gramercy aggregate' averages the reports of several sources.

    Example: gramercy randomize request.yaml --yes
    """
    if (name := read_request(request).mechanism.name) != "local":
        raise not_the_local_mechanism(str(request), name)
    _publish(request, yes, new_charge, json)


def aggregate(
    request: RequestPath,
    reports: Annotated[
        list[Path],
        typer.Argument(
            metavar="REPORTS...", help="Release folders that 'gramercy randomize' published."
        ),
    ],
    yes: Yes = False,
    new_charge: NewCharge = False,
    json: AsJson = False,
) -> None:
    """Publish the average of noisy reports from one or more sources.

    Example: gramercy aggregate request.yaml north/release south/release
    """
    _publish(request, yes, new_charge, json, [str(path.absolute()) for path in reports])


def _publish(
    request: Path,
    yes: bool,
    new_charge: bool,
    json: bool,
    reports: Sequence[str] | None = None,
    *,
    period: str | None = None,
    asks_if_useless: bool = False,
) -> None:
    context = Context.default()
    planned = make_plan(context, read_request(request, period), averaging=reports is not None)
    preview = preview_budget(context, planned)
    if new_charge:
        planned = planned.with_new_charge(_interrupted_release(preview))
    if reads_table(planned, preview):  # before Prefect starts; the flow validates again
        check_table_header(planned.contract)
    if not json:
        print_plan(planned, preview)
    elif (warning := period_warning(planned, preview)) is not None:
        terminal.warn(warning)
    check_preview(planned, preview)  # before Prefect starts
    if asks_if_useless and budget_effect(planned, preview).kind == "charged":
        _confirm_useless(planned)
    if not yes:
        terminal.confirm("Publish? A charge is never refunded.", "Pass --yes to confirm.")
    done = flow_runner.publish(context, planned, reports or ())
    for problem in done.problems:
        terminal.warn(later_step_failed("The release is published", problem))
    if json:
        terminal.print_json(asdict(done))
    else:
        _print_outcome(context, done, has_table=reports is None)
    record = read_record(context.home, *split_name(done.release))
    print_steward_notes(planned, done.release, record)  # last, so that they are seen


def _confirm_useless(planned: Plan) -> None:
    """Ask before a charge for a release that would be useless; a script is refused."""
    verdict = useless(planned)
    if verdict is None:
        return
    if not sys.stdin.isatty():
        raise useless_release(verdict.text)
    terminal.confirm(f"{verdict.text} Publish it all the same?", "Pass --despite.")


def _print_outcome(context: Context, done: flow_runner.Published, *, has_table: bool) -> None:
    outcome = "Already published, nothing charged" if done.replayed else "Published"
    terminal.say(f"{outcome}: ", terminal.bold(done.release), f"\n{done.path}")
    terminal.say(f"Report: {done.report or 'none'}")
    if has_table:
        internal = page_path(context.home, *split_name(done.release))
        terminal.say(f"Internal (do not publish): {internal}", to=terminal.err)


def _interrupted_release(preview: BudgetPreview) -> str | None:
    """The release that was charged for this request but not published."""
    charge = preview.previous_charge
    return charge.release if charge is not None and charge.state != "published" else None
