"""``gramercy plan``: what a release would do, from public facts alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gramercy.application.context import Context
from gramercy.application.expectations import save_suite
from gramercy.application.forecast import page_of
from gramercy.application.outlook import outlook
from gramercy.application.planning import Plan, asked, contract_of, make_plan, now
from gramercy.application.ranking import compare as ranking
from gramercy.application.request_model import Request
from gramercy.application.yaml_files import read_request
from gramercy.cli.options import AsJson, RequestPath
from gramercy.cli.output import terminal
from gramercy.cli.output.page_file import check_page, write_page_of, written
from gramercy.cli.output.plan_text import plan_facts, plan_text
from gramercy.cli.output.ranking_text import ranking_facts, ranking_text


def plan(
    request: RequestPath,
    compare: Annotated[
        bool, typer.Option("--compare", help="Rank all mechanisms by their expected error.")
    ] = False,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write all of it as a page, too.")
    ] = None,
    expectations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Write what the contract says of the table, as a Great Expectations suite.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show what a release would do: noise, guarantee, error, budget. Reads no data.

    Example: gramercy plan request.yaml --compare --page plan.html
    """
    context, given = Context.default(), read_request(request)
    if page is not None:
        check_page("--page", page)
    if expectations is not None:
        check_page("--expectations", expectations)
    # What is compared need not be had as it is asked for.
    planned = make_plan(context, given) if page is not None or not compare else None
    if page is not None and planned is not None:
        with terminal.doing("working out the errors", json):
            html = page_of(planned, outlook(context, planned))
        write_page_of("--page", page, html)
    if compare:
        _compare(context, given, json)
    elif planned is not None:
        _show(context, planned, json)
    if page is not None:
        terminal.say(f"Page: {page}", to=terminal.err if json else terminal.out)
    if expectations is not None:
        contract = contract_of(context, given.on(now()))
        with written("--expectations", expectations):
            save_suite(contract, expectations)
        terminal.say(f"Expectations: {expectations}", to=terminal.err if json else terminal.out)


def _compare(context: Context, given: Request, json: bool) -> None:
    dated = given.on(now())
    offers, declined = ranking(asked(contract_of(context, dated), dated), dated.mechanism)
    if json:
        terminal.as_json(ranking_facts(offers, declined, dated.mechanism.delta))
    else:
        ranking_text(dated, offers, declined)


def _show(context: Context, planned: Plan, json: bool) -> None:
    seen = outlook(context, planned)
    if json:
        terminal.as_json(plan_facts(planned, seen))
    else:
        plan_text(planned, seen)
