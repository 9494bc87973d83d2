"""``gramercy keys``: the keys that sign what this home publishes."""

from __future__ import annotations

from typing import Any

import typer

from gramercy.archive.signing_keys import STEWARD, PublicKey, known_keys, new_key, signing_key
from gramercy.cli.options import AsJson, Yes
from gramercy.cli.output import terminal
from gramercy.common.home import Home

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def keys(context: typer.Context, json: AsJson = False) -> None:
    """Show the keys that sign bundles, or make a new one.

    Example: gramercy keys --json
    """
    context.obj = json
    if context.invoked_subcommand is None:
        list_keys(context)


@app.command("list")
def list_keys(context: typer.Context, json: AsJson = False) -> None:
    """List the public keys of this home: whose signatures it trusts, and which one signs.

    Example: gramercy keys list
    """
    folder = Home.default().keys
    signing = signing_key(folder)
    known = [_facts(each, each.public == signing) for each in known_keys(folder)]
    if json or context.obj:
        terminal.as_json(known)
        return
    for each in known:
        signs = "  signs" if each["signs"] else ""
        terminal.say(terminal.bold(each["id"]), f"  {each['made']}  {each['path']}{signs}")
    if not known:
        terminal.say("No key yet: the first release makes one, or 'gramercy keys new'.")


@app.command()
def new(context: typer.Context, yes: Yes = False, json: AsJson = False) -> None:
    """Make a key that signs from now on. What others have signed stays known and trusted.

    Example: gramercy keys new --yes
    """
    folder = Home.default().keys
    if (folder / STEWARD).exists() and not yes:
        question = "Make a new key? The old one is deleted, and analysts need the new public key."
        terminal.confirm(question, "Add --yes to make a new key.")
    facts = _facts(new_key(folder), True)
    if json or context.obj:
        terminal.as_json(facts)
        return
    terminal.say("Bundles are signed from now on by ", terminal.bold(facts["id"]))
    terminal.say(f"Hand this file to analysts: {facts['path']}")


def _facts(key: PublicKey, signs: bool) -> dict[str, Any]:
    return {"id": key.id, "signs": signs, "made": key.made, "path": str(key.path)}
