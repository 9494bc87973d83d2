"""``gramercy keys``: the keys that sign the bundles of this home."""

from __future__ import annotations

import datetime
from typing import Any

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


def _facts(key: PublicKey, signs: bool) -> dict[str, Any]:
    written = datetime.datetime.fromtimestamp(key.path.stat().st_mtime, datetime.UTC)
    made = f"{written:%Y-%m-%d}"
    return {"id": key.id, "signs": signs, "made": made, "path": str(key.path)}
