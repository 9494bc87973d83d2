"""``gramercy explain``: what a code means, and what to do about it."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from gramercy.cli.options import AsJson, completed
from gramercy.cli.output import terminal
from gramercy.schemas.problem import Problem
from gramercy.schemas.problems import catalogue
from gramercy.schemas.problems.command_line import unknown_code


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
    problems = catalogue()
    if code is None:
        _print_all([problem.described() for problem in problems.values()], json)
        return
    digits = code.upper().removeprefix("GRM-")
    problem = problems.get(f"GRM-{digits:>03}")
    if problem is None:
        raise unknown_code(code)
    _print(problem, json)


def _print_all(listed: list[dict[str, Any]], json: bool) -> None:
    if json:
        terminal.print_json(listed)
        return
    table = Table("code", "message", box=None)
    for facts in listed:
        table.add_row(terminal.bold(facts["code"]), terminal.plain(facts["message"]))
    terminal.out.print(table)


def _print(problem: Problem[..., Any], json: bool) -> None:
    facts = problem.described()
    if json:
        terminal.print_json(facts)
        return
    terminal.facts_table(
        f"{facts['code']} ({facts['kind']})",
        {
            "message": facts["message"],
            "cause": facts["cause"],
            "remedy": facts["hint"] or "The message says what to change.",
            "facts": ", ".join(facts["facts"]) or "none",
            "exit code": str(facts["exit_code"]),
        },
    )
