"""``gramercy keys``: the keys that sign the bundles of this home."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from gramercy.archive.seal.signing import (
    STEWARD,
    PublicKey,
    create_signing_key,
    public_keys,
    signing_public_key,
)
from gramercy.cli import terminal
from gramercy.cli.options import AsJson, Yes
from gramercy.common.home import Home
from gramercy.pipeline.publish.approval import register_approver

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def keys(context: typer.Context, json: AsJson = False) -> None:
    """List the keys that sign bundles, or create a new one.

    Example: gramercy keys --json
    """
    context.obj = json
    if context.invoked_subcommand is None:
        list_keys(context)


@app.command("list")
def list_keys(context: typer.Context, json: AsJson = False) -> None:
    """List the public keys that this home trusts, and which of them signs.

    Example: gramercy keys list
    """
    folder = Home.default().keys
    signing = signing_public_key(folder)
    listed = [_facts(key, key.public == signing) for key in public_keys(folder)]
    if json or context.obj:
        terminal.print_json(listed)
        return
    for facts in listed:
        signs = "  signs" if facts["signs"] else ""
        terminal.say(terminal.bold(facts["id"]), f"  {facts['made']}  {facts['path']}{signs}")
    if not listed:
        terminal.say("No key yet: the first release or 'gramercy keys new' creates one.")


@app.command()
def new(context: typer.Context, yes: Yes = False, json: AsJson = False) -> None:
    """Create a key that signs from now on. Earlier signatures stay valid and trusted.

    Example: gramercy keys new --yes
    """
    folder = Home.default().keys
    if (folder / STEWARD).exists() and not yes:
        question = (
            "Create a new key? It replaces the private key; analysts need the new public key."
        )
        terminal.confirm(question, "Pass --yes to confirm.")
    facts = _facts(create_signing_key(folder), True)
    if json or context.obj:
        terminal.print_json(facts)
        return
    terminal.say("New bundles are signed by ", terminal.bold(facts["id"]))
    terminal.say(f"Give this file to analysts: {facts['path']}")


@app.command()
def approver(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The account of the approver.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The approver's public key.")],
    json: AsJson = False,
) -> None:
    """Allow somebody to approve charges of contracts with 'approval: required'.

    The approver creates a key with 'gramercy keys new' in a home of their own, and gives you the
    public key. To take the right away, delete the file that this command names.

    Example: gramercy keys approver anna anna.pub
    """
    key = register_approver(Home.default(), name, file)
    if json or context.obj:
        terminal.print_json(_facts(key, False) | {"approver": name})
        return
    terminal.say(terminal.bold(name), f" may approve charges, with the key {key.id}:\n{key.path}")


def _facts(key: PublicKey, signs: bool) -> dict[str, Any]:
    written = datetime.datetime.fromtimestamp(key.path.stat().st_mtime, datetime.UTC)
    made = f"{written:%Y-%m-%d}"
    return {"id": key.id, "signs": signs, "made": made, "path": str(key.path)}
