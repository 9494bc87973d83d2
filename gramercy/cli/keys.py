"""The keys that sign what this home publishes."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from gramercy.cli.options import AsJson
from gramercy.cli.output import view
from gramercy.common.home import Home
from gramercy.schemas.errors import RequestError

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def keys(context: typer.Context, json: AsJson = False) -> None:
    """Show the keys that sign bundles, or make a new one.

    Example: gramercy keys --json
    """
    context.obj = json
    if context.invoked_subcommand is None:
        list_(context)


@app.command("list")
def list_(context: typer.Context, json: AsJson = False) -> None:
    """List the public keys of this home: whose signatures it trusts, and which one signs.

    Example: gramercy keys list
    """
    from gramercy.archive.signing_keys import known_keys, signing_key

    folder = Home.default().keys
    signing = signing_key(folder)
    known = [_facts(each, each.public == signing) for each in known_keys(folder)]
    if json or context.obj:
        view.as_json(known)
        return
    for each in known:
        signs = "  signs" if each["signs"] else ""
        view.say(view.bold(each["id"]), f"  {each['made']}  {each['path']}{signs}")
    if not known:
        view.say("No key yet: the first release makes one, or 'gramercy keys new'.")


@app.command()
def new(
    context: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: AsJson = False,
) -> None:
    """Make a key that signs from now on. What others have signed stays known and trusted.

    Example: gramercy keys new --yes
    """
    from gramercy.archive.signing_keys import STEWARD, new_key

    folder = Home.default().keys
    if (folder / STEWARD).exists() and not yes:
        if not sys.stdin.isatty():
            raise RequestError("Nobody is there to be asked.", "Add --yes to make a new key.")
        words = "Make a new key? The old one is deleted, and analysts need the new public key."
        typer.confirm(words, abort=True, err=True)
    facts = _facts(new_key(folder), True)
    if json or context.obj:
        view.as_json(facts)
        return
    view.say("Bundles are signed from now on by ", view.bold(facts["id"]))
    view.say(f"Hand this file to analysts: {facts['path']}")


def _facts(key: Any, signs: bool) -> dict[str, Any]:
    return {"id": key.id, "signs": signs, "made": key.made, "path": str(key.path)}
