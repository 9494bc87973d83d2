"""``gramercy mechanisms``: the mechanisms that a request can name."""

from __future__ import annotations

from rich.table import Table

from gramercy.cli import terminal
from gramercy.cli.options import AsJson
from gramercy.mechanisms import registry


def mechanisms(json: AsJson = False) -> None:
    """List the mechanisms with one line each.

    Example: gramercy mechanisms
    """
    listed = [mechanism.description() for mechanism in registry.values()]
    if json:
        terminal.print_json(listed)
        return
    table = Table("mechanism", "use", "publishes", "neighbours", "arithmetic", box=None)
    for facts in listed:
        table.add_row(
            terminal.bold(facts["name"]),
            facts["summary"],
            facts["publishes"],
            ", ".join(facts["neighbours"]),
            facts["arithmetic"],
        )
    terminal.out.print(table)
