"""``gramercy new``: draft a contract and a request."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from gramercy.cli.draft.drafting import draft, parse_names
from gramercy.cli.draft.files import write
from gramercy.cli.draft.questions import ask
from gramercy.cli.options import AsJson
from gramercy.cli.output import terminal
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import Model, Slug, parse
from gramercy.schemas.problems.command_line import table_url_has_secrets
from gramercy.schemas.url import has_secrets, without_secrets


class _DatasetId(Model):
    id: Slug


def new(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="Path, glob, folder or URL of CSV or Parquet files."),
    ],
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder to write to; default: the id.")
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", help="Id of the data set; default: the table's name.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns to publish; default: all that can be published."),
    ] = None,
    no_ask: Annotated[
        bool,
        typer.Option("--no-ask", help="Ask nothing; leave unknown values empty, to be filled in."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Draft a contract and a request for a table.

    It uses the names and types of the columns. No row is read, and no value is taken from the data:
    on a terminal it asks for bounds, levels and budget; elsewhere it leaves them empty.

    Example: gramercy new blood.csv --columns glucose,sodium
    """
    if has_secrets(table):
        raise table_url_has_secrets(without_secrets(table))
    if id_ is not None:
        parse(_DatasetId, {"id": id_}, "--id", RequestError)
    proposal = draft(table, id_, parse_names(columns) if columns is not None else None)
    interactive = not no_ask and sys.stdin.isatty()
    if interactive:
        proposal = ask(proposal)
    contract, request = write(proposal, folder if folder is not None else Path(proposal.id))
    next_command = f"gramercy plan {shlex.quote(str(request))}"
    if json:
        columns_of = {"columns": list(proposal.columns), "left_out": dict(proposal.left_out)}
        files = {"contract": str(contract), "request": str(request)}
        terminal.print_json({**files, **columns_of, "next": next_command})
        return
    left_out = f"; {len(proposal.left_out)} left out: see the file" if proposal.left_out else ""
    count = len(proposal.columns)
    counted = "1 column" if count == 1 else f"{count} columns"
    terminal.say("Written: ", terminal.bold(str(contract)), f" ({counted}{left_out})")
    terminal.say("         ", terminal.bold(str(request)))
    if not interactive:
        terminal.say("Fill in the empty values, and delete the columns that must stay private.")
    terminal.say(f"Then: {next_command}")
