"""``gramercy plan``: what a release would do, from public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gramercy.cli import terminal
from gramercy.cli.options import (
    AsJson,
    PeriodOption,
    RequestPath,
    check_output_file,
    write_errors,
    write_page,
)
from gramercy.cli.plan_text import plan_facts, print_plan
from gramercy.pipeline.context import Context
from gramercy.pipeline.page_links import archive_links
from gramercy.pipeline.plan.budget_preview import preview_budget, reads_table
from gramercy.pipeline.plan.checking import check_table_header
from gramercy.pipeline.plan.forecast import (
    RankedMechanism,
    UnsuitableMechanism,
    plan_html,
    rank_mechanisms,
)
from gramercy.pipeline.plan.planning import (
    Plan,
    load_contract,
    make_plan,
    release_spec,
    utc_now,
    with_planned_scaling,
)
from gramercy.pipeline.plan.request_files import dated_request, read_request
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.plan.series import planned_series, withdrawn_constants
from gramercy.pipeline.validation.suite import save_suite


def plan(
    request: RequestPath,
    compare: Annotated[
        bool, typer.Option("--compare", help="Rank all mechanisms by their expected error.")
    ] = False,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Also write the plan as an HTML page.")
    ] = None,
    expectations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Also write the contract's rules for the table as a Great Expectations suite.",
        ),
    ] = None,
    no_table: Annotated[
        bool, typer.Option("--no-table", help="Do not look for the table, which may be elsewhere.")
    ] = False,
    period: PeriodOption = None,
    json: AsJson = False,
) -> None:
    """Show what a release would do, without reading a row.

    Shows the noise, the guarantee, the expected error and the effect on the budget. The names and
    types of the table's columns are compared with the contract.

    Example: gramercy plan request.yaml --compare --page plan.html
    """
    context, undated = Context.default(), read_request(request, period)
    if page is not None:
        check_output_file("--page", page)
    if expectations is not None:
        check_output_file("--expectations", expectations)
    # A comparison does not need the requested mechanism to be possible.
    planned = make_plan(context, undated) if page is not None or not compare else None
    # A header that contradicts the contract is refused, unless the release is published.
    if not no_table:
        if planned is None:
            check_table_header(load_contract(context, dated_request(context, undated, utc_now())))
        elif reads_table(planned, preview_budget(context, planned)):
            check_table_header(planned.contract)
    if page is not None and planned is not None:
        with terminal.progress("computing errors", json):
            links = archive_links(context, page)
            html = plan_html(planned, preview_budget(context, planned), links)
        write_page("--page", page, html)
    if compare:
        _compare(context, undated, json)
    elif planned is not None:
        _show(context, planned, json)
    if page is not None:
        terminal.say(f"Page: {page}", to=terminal.err if json else terminal.out)
    if expectations is not None:
        contract = load_contract(context, dated_request(context, undated, utc_now()))
        with write_errors("--expectations", expectations):
            save_suite(contract, expectations)
        terminal.say(f"Expectations: {expectations}", to=terminal.err if json else terminal.out)


def _show(context: Context, planned: Plan, json: bool) -> None:
    preview, series = preview_budget(context, planned), planned_series(context, planned)
    if json:
        terminal.print_json(plan_facts(planned, preview, series))
    else:
        print_plan(planned, preview, series)
    if (warning := withdrawn_constants(context, planned)) is not None:
        terminal.warn(warning)


def _compare(context: Context, undated: Request, json: bool) -> None:
    dated = dated_request(context, undated, utc_now())
    contract = load_contract(context, dated)
    spec = with_planned_scaling(context, contract, dated, release_spec(contract, dated))
    ranked, unsuitable = rank_mechanisms(spec, dated.mechanism)
    if json:
        terminal.print_json(_ranking_facts(ranked, unsuitable, dated.mechanism.delta))
    else:
        _print_ranking(dated, ranked, unsuitable)


def _ranking_facts(
    ranked: Sequence[RankedMechanism], unsuitable: Sequence[UnsuitableMechanism], delta: float
) -> dict[str, Any]:
    """A ranking of mechanisms as plain data."""
    return {
        "ranking": [
            {
                "mechanism": each.name,
                "publishes": each.publishes,
                "arithmetic": each.arithmetic,
                "matrix_error": each.error,
                "sd_off_diagonal": each.law.sd_off_diagonal,
                "mu": each.guarantee.mu,
                "delta0": each.guarantee.delta0,
                "epsilon": each.guarantee.epsilon(delta),
                "delta": delta,
            }
            for each in ranked
        ],
        "declined": {each.name: each.reason for each in unsuitable},
    }


def _print_ranking(
    request: Request, ranked: Sequence[RankedMechanism], unsuitable: Sequence[UnsuitableMechanism]
) -> None:
    """Print a ranking of mechanisms."""
    delta = request.mechanism.delta
    title = "Frobenius norm of the noise at this guarantee, before any repair"
    columns = ("mechanism", "error", "relative", "mu", f"epsilon at delta={delta:g}")
    table = Table(*columns, "arithmetic", "publishes", title=Text(title), title_justify="left")
    table.box = None
    for each in ranked:
        table.add_row(
            terminal.bold(each.name) if each.name == request.mechanism.name else each.name,
            f"{each.error:.3g}",
            f"{each.error / ranked[0].error:.3g}",
            f"{each.guarantee.mu:.4g}",
            f"{each.guarantee.epsilon(delta):.4g}",
            each.arithmetic,
            each.publishes,
        )
    terminal.out.print(table)
    for mechanism in unsuitable:
        terminal.say(Text(f"  not {mechanism.name}: ", style="dim"), mechanism.reason)
