"""``gramercy check``: a look at the table for its steward, without a charge."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gramercy.cli.options import AsJson, PeriodOption, RequestPath
from gramercy.cli.output import terminal
from gramercy.cli.output.check_text import check_facts, print_check
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.checking import check_table
from gramercy.pipeline.plan.dated_requests import dated_request
from gramercy.pipeline.plan.planning import load_contract, utc_now
from gramercy.pipeline.plan.yaml_files import read_request
from gramercy.pipeline.progress import is_terminal, rows_bar
from gramercy.pipeline.publish.private_table import (
    copied_contract,
    copy_folder,
    remove_abandoned_copies,
)
from gramercy.schemas import families
from gramercy.schemas.errors import TableError


def check(
    request: RequestPath,
    rows: Annotated[
        int | None,
        typer.Option("--rows", min=1, metavar="N", help="Read only the first N rows."),
    ] = None,
    period: PeriodOption = None,
    json: AsJson = False,
) -> None:
    """Show the steward what a release could not use of the table, without a charge.

    Counts missing, unreadable and out-of-bounds cells, unknown levels and malformed lines. The
    output is private: it is printed on a terminal (or with --json), and stored nowhere. The exit
    code is 2 if the table cannot be used. A release never depends on a check.

    Example: gramercy check request.yaml
    """
    if not json and not (is_terminal(terminal.out) and is_terminal(terminal.err)):
        raise families.NOT_A_TERMINAL(
            "'gramercy check' prints exact facts about private cells, so standard output and "
            "standard error must be terminals.",
            "Run it in a terminal, or pass --json if a program must read the result.",
        )
    context = Context.default()
    remove_abandoned_copies(context.home)
    dated = dated_request(context, read_request(request, period), utc_now())
    contract = load_contract(context, dated)
    total = contract.rows if rows is None else min(rows, contract.rows)
    with copy_folder(context.home, contract) as folder:
        if folder is not None:
            contract = copied_contract(contract, folder)
        with rows_bar("checking", total) as on_rows:
            result = check_table(contract, rows, on_rows)
    if json:
        terminal.print_json(check_facts(result, dated.version))
    else:
        print_check(result, dated.version)
    if result.errors:
        sys.exit(TableError.exit_code)
