"""``gramercy mechanisms``: what can be asked for."""

from __future__ import annotations

from rich.table import Table

from gramercy.cli.options import AsJson
from gramercy.cli.output import terminal
from gramercy.mechanisms import registry


def mechanisms(json: AsJson = False) -> None:
    """List the mechanisms, with one line each.

    Example: gramercy mechanisms
    """
    known = [each.about() for each in registry.values()]
    if json:
        terminal.as_json(known)
        return
    table = Table("mechanism", "what it is for", "publishes", "neighbours", "arithmetic", box=None)
    for each in known:
        table.add_row(
            terminal.bold(each["name"]),
            each["summary"],
            each["publishes"],
            ", ".join(each["neighbours"]),
            each["arithmetic"],
        )
    terminal.out.print(table)
