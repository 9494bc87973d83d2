"""``gramercy history``: what was spent over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gramercy.application.context import Context
from gramercy.cli.options import AsJson, OneDataset
from gramercy.cli.output import terminal
from gramercy.cli.output.exported import timelines_of
from gramercy.cli.output.page_file import check_page, write_page_of
from gramercy.cli.output.spending import timeline_text
from gramercy.reports.history_page import history_page
from gramercy.schemas.errors import RequestError
from gramercy.schemas.timeline import Timeline


def history(
    dataset: OneDataset = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML page as well.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show what was spent over time: every charge, and every change of a budget.

    Example: gramercy history clinic --page spent.html
    """
    if page is not None:
        check_page("--page", page)
    context = Context.default()
    ledger = context.known_ledger
    if ledger is None and dataset:
        raise RequestError(
            f"No data set '{dataset}': this home has no ledger.",
            "A first release makes one; $GRAMERCY_HOME or $GRAMERCY_LEDGER_URL names another.",
        )
    timelines: list[Timeline] = []
    if ledger is not None:
        datasets = [dataset] if dataset else ledger.datasets()
        timelines = timelines_of(ledger, context.archive, datasets)
    if page is not None:
        write_page_of("--page", page, history_page(timelines))
    if json:
        terminal.as_json([each.facts() for each in timelines])
        return
    for each in timelines:
        timeline_text(each)
    if not timelines:
        terminal.say("No data set is registered yet: a first release registers it.")
    if page is not None:
        terminal.say(f"Page: {page}")
