"""``gramercy explain``: what a code means, and what to do about it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from gramercy.cli import terminal
from gramercy.cli.options import AsJson, completed
from gramercy.schemas import families
from gramercy.schemas.families import catalogue


def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE]",
            help="Code such as GRM-017 or 17; default: list all.",
            autocompletion=completed(catalogue),
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Explain a code such as GRM-101: its cause and its remedy.

    Example: gramercy explain GRM-001
    """
    listed = catalogue()
    if code is None:
        described = [each.described() for each in listed.values()]
        if json:
            terminal.print_json(described)
            return
        table = Table("code", "cause", box=None)
        for each in described:
            table.add_row(terminal.bold(each["code"]), Text(each["cause"]))
        terminal.out.print(table)
        return
    digits = code.upper().removeprefix("GRM-")
    family = listed.get(f"GRM-{digits:>03}")
    if family is None:
        raise families.USAGE(
            "'{code}' is not a Gramercy code.", "'gramercy explain' lists all codes.", code=code
        )
    facts = family.described()
    if json:
        terminal.print_json(facts)
        return
    terminal.facts_table(
        f"{facts['code']} ({facts['kind']})",
        {"cause": facts["cause"], "remedy": facts["remedy"], "exit code": str(facts["exit_code"])},
    )
