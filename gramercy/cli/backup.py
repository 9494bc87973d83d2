"""``gramercy backup`` and ``gramercy restore``: the home without its archive and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gramercy.cli import terminal
from gramercy.cli.options import AsJson
from gramercy.pipeline.context import Context
from gramercy.pipeline.home_backup import back_up
from gramercy.pipeline.home_backup import restore as restore_home

_NEXT = (
    "The ledger is a copy, and charges nothing yet. If the original is no longer used, put the "
    "archive in its place, and run 'gramercy budget --moved --reason WHY': it brings the ledger up "
    "to date from the archive."
)


def backup(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the backup; must not exist.")
    ],
    json: AsJson = False,
) -> None:
    """Back up the home: ledger, keys, contracts and records, without the archive.

    The backup is private: it has the signing key and the internal records, as the home has them.
    Only its owner can read it.

    Example: gramercy backup /mnt/backup/2026-11-28
    """
    head = back_up(Context.default(), folder)
    if json:
        terminal.print_json({"folder": str(folder), "head": head.model_dump()})
        return
    terminal.say("Backed up: ", terminal.bold(str(folder)), f", until entry {head.seq}")
    terminal.say("It is private: it has the signing key. Copy the archive as well.")


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the backup.")],
    json: AsJson = False,
) -> None:
    """Restore the home from a backup.

    GRAMERCY_HOME must not exist, or be empty. The restored ledger charges nothing until it has been
    brought up to date.

    Example: gramercy restore /mnt/backup/2026-11-28
    """
    context = Context.default()
    head = restore_home(context, folder)
    if json:
        facts = {"home": str(context.home.root), "head": head.model_dump(), "next": _NEXT}
        terminal.print_json(facts)
        return
    terminal.say("Restored: ", terminal.bold(str(context.home.root)), f", until entry {head.seq}")
    terminal.say(_NEXT)
