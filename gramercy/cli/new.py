"""``gramercy new``: draft a contract and a request."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from gramercy.cli.draft.drafting import draft, named
from gramercy.cli.draft.files import write
from gramercy.cli.draft.questions import ask
from gramercy.cli.options import AsJson
from gramercy.cli.output import terminal
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import Model, Slug, parse
from gramercy.schemas.url import has_secrets, without_secrets


class _Named(Model):
    id: Slug


def new(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="Path, glob or folder of CSV or Parquet files.")
    ],
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the files go; default: the id.")
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", help="Of the data set; default: the table's name.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Those to publish; default: all that can be.")
    ] = None,
    no_ask: Annotated[
        bool, typer.Option("--no-ask", help="Leave what is not known empty, to be filled in.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Write a contract and a request for a table, from the names and types of its columns.

    No row is read, and nothing is read off the data: on a terminal it asks for bounds, levels and
    budget; elsewhere it leaves them empty.

    Example: gramercy new blood.csv --columns glucose,sodium
    """
    if has_secrets(table):
        raise RequestError(
            "TABLE: a contract is public, and this URL holds a user, a password or a query.",
            f"Name {without_secrets(table)}, and put credentials into the environment variables "
            "or configuration files of its driver.",
        )
    if id_ is not None:
        parse(_Named, {"id": id_}, "--id", RequestError)
    made = draft(table, id_, named(columns) if columns is not None else None)
    asked = not no_ask and sys.stdin.isatty()
    if asked:
        made = ask(made)
    contract, request = write(made, folder if folder is not None else Path(made.id))
    then = f"gramercy plan {shlex.quote(str(request))}"
    if json:
        kept = {"columns": list(made.columns), "left_out": dict(made.left_out)}
        files = {"contract": str(contract), "request": str(request)}
        terminal.as_json({**files, **kept, "next": then})
        return
    left_out = f"; {len(made.left_out)} left out, as it says" if made.left_out else ""
    columns_of = "1 column" if len(made.columns) == 1 else f"{len(made.columns)} columns"
    terminal.say("Written: ", terminal.bold(str(contract)), f" ({columns_of}{left_out})")
    terminal.say("         ", terminal.bold(str(request)))
    if not asked:
        terminal.say("Fill in what is empty there, and delete the columns that stay private.")
    terminal.say(f"Then: {then}")
