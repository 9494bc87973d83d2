"""``gramercy register``: allow runs that a Prefect server starts to publish by a contract."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gramercy.cli import terminal
from gramercy.cli.options import AsJson
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.request_files import register as register_contract


def register(
    contract: Annotated[
        Path, typer.Argument(metavar="CONTRACT", help="YAML file of the contract.")
    ],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace what is registered under the same id.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Allow scheduled runs to publish by this contract.

    Copies it into the home, so that later changes of the file have no effect until it is registered
    again. Runs that a Prefect server starts can name registered contracts only, by their id.

    Example: gramercy register contract.yaml
    """
    registered = register_contract(Context.default().home, contract, replace=replace)
    if json:
        terminal.print_json({"dataset": registered.stem, "contract": str(registered)})
    else:
        terminal.say("Registered: ", terminal.bold(registered.stem), f"\n{registered}")
