"""``gramercy history``: spending of budgets over time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from gramercy.cli.options import AsJson, DatasetName
from gramercy.cli.output import terminal
from gramercy.cli.output.output_files import check_output_file, write_page
from gramercy.cli.output.spending import print_timeline
from gramercy.cli.output.timelines import timelines_of
from gramercy.pipeline.context import Context
from gramercy.pipeline.page_links import archive_links
from gramercy.schemas import families
from gramercy.schemas.ledger_history import Timeline

_DRAWN = 20  # budgets; more are listed without charts


def history(
    dataset: DatasetName = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Also write an HTML page.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show every charge and every change of a budget.

    Example: gramercy history clinic --page spent.html
    """
    if page is not None:
        check_output_file("--page", page)
    context = Context.default()
    ledger = context.existing_ledger
    if ledger is None and dataset:
        raise families.NO_LEDGER(
            "No data set '{dataset}': this home has no ledger.",
            "The first release creates one; $GRAMERCY_HOME or $GRAMERCY_LEDGER_URL selects "
            "another.",
            dataset=dataset,
        )
    timelines: Iterator[Timeline] = iter(())
    if ledger is not None:
        datasets = [dataset] if dataset else ledger.datasets()
        timelines = timelines_of(ledger, context.archive, datasets)
    if page is not None:
        from gramercy.reports.history_page import history_page  # draws: imported only if needed

        on_page = list(timelines)
        write_page("--page", page, history_page(on_page, archive_links(context, page)))
        timelines = iter(on_page)
    if json:
        terminal.print_json_list(each.facts() for each in timelines)
        return
    first = list(itertools.islice(timelines, _DRAWN + 1))
    for each in itertools.chain(first, timelines):
        print_timeline(each, with_chart=len(first) <= _DRAWN)
    if not first:
        terminal.say("No data set is registered yet; its first release registers it.")
    if page is not None:
        terminal.say(f"Page: {page}")
