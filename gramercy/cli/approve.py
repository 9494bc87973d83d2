"""``gramercy approve``: sign what somebody else's run is going to charge."""

from __future__ import annotations

import json as json_format
import os
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from gramercy.archive.seal.signing import APPROVAL, sign, signing_key
from gramercy.cli import terminal
from gramercy.cli.options import AsJson, Yes
from gramercy.pipeline.context import Context
from gramercy.schemas import families

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def approve(
    run: Annotated[
        UUID | None,
        typer.Argument(metavar="[RUN-ID]", help="Id of a run that waits; default: list them."),
    ] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Approve the charge of a run that waits for a second person.

    Signs with the key of your own home. The steward has to register your public key first: see
    'gramercy keys new' and 'gramercy keys approver'. Uses the server at PREFECT_API_URL, with the
    login in PREFECT_API_AUTH_STRING.

    Example: gramercy approve
    """
    if not os.environ.get("PREFECT_API_URL"):
        raise families.SETTING(
            "PREFECT_API_URL is not set.",
            "Set it to the server of the runs, and PREFECT_API_AUTH_STRING to its login.",
        )
    if run is None:
        _list_waiting(json=json)
        return
    from gramercy.tasks.approval import resume, statements_of  # Prefect

    statements = statements_of(run)
    if not statements:
        raise families.USAGE(
            "The run {run} does not wait for an approval.",
            "Run 'gramercy approve' to list those that do.",
            run=str(run),
        )
    facts = [*statements.values()]
    key = _own_key(Context.default(), {each.get("ledger") for each in facts})
    if not json:
        for each in facts:  # in ASCII: others may write to the server
            shown = {name: json_format.dumps(value) for name, value in each.items()}
            terminal.facts_table("To be approved", shown)
    if not yes:
        terminal.confirm("Approve? A charge is never refunded.", "Pass --yes to confirm.")
    resume(run, [sign(key, each.encode(), APPROVAL).decode() for each in statements])
    if json:
        terminal.print_json({"run": str(run), "approved": facts})
    else:
        terminal.say("Approved. The run goes on.")


def _list_waiting(*, json: bool) -> None:
    from gramercy.tasks.approval import waiting  # Prefect

    found = waiting()
    if json:
        terminal.print_json(found)
        return
    for run, name in found.items():
        terminal.say(terminal.bold(run), f"  {name}")
    if not found:
        terminal.say("No run waits for an approval.")


def _own_key(context: Context, charged: set[object]) -> Ed25519PrivateKey:
    """The key to sign with, which must not be of a home whose ledger is charged."""
    key, ledger = signing_key(context.home.keys), context.existing_ledger
    if key is None:
        raise families.PRIVATE_KEY(
            "{path}: there is no key to sign with.",
            "Run 'gramercy keys new', and give the public key to the steward.",
            path=str(context.home.keys),
        )
    if ledger is not None and ledger.head().ledger in charged:
        raise families.NOT_REGISTERED(
            "{home} is the home that charges: its key cannot approve as well.",
            "Approve from your own account, or set GRAMERCY_HOME to your own home.",
            home=str(context.home.root),
        )
    return key
