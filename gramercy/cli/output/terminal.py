"""Printing on a terminal, into a file or a pipe: text, tables, frames, JSON, and questions."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import typer
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from gramercy.schemas.errors import RequestError

# Into a file or a pipe there is no width to ask for.
out = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
err = Console(highlight=False, width=None if sys.stderr.isatty() else 110, stderr=True)


def as_json(facts: Any) -> None:
    """Print plain data as JSON."""
    print(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False))


def say(*parts: str | Text, to: Console = out) -> None:
    """Print text as it is: names may hold brackets, which are no markup."""
    to.print(Text.assemble(*parts), soft_wrap=not to.is_terminal)


def bold(text: str) -> Text:
    """Emphasised text."""
    return Text(text, style="bold")


def warn(label: str, text: str) -> None:
    """Print a warning, apart from what the command prints."""
    say(Text(label, style="yellow"), text, to=err)


def facts_table(title: str, facts: Mapping[str, str | Text]) -> None:
    """Print names and values."""
    table = Table(title=Text(title), title_justify="left", show_header=False, box=None)
    for name, value in facts.items():
        table.add_row(
            Text(f"  {name}", style="dim"), Text(value) if isinstance(value, str) else value
        )
    out.print(table)


def panel(title: str, facts: Mapping[str, str], *lines: str) -> None:
    """Print a framed message: facts by name, then lines."""
    text = Text()
    for name, value in facts.items():
        text.append(f"{name:<11}", style="bold").append(f"{value}\n")
    text.append("\n".join(lines))
    out.print(Panel(text, title=title, title_align="left", expand=False, padding=1))


@contextlib.contextmanager
def doing(what: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show on the terminal what is being done; to be called with the name of each item in turn."""
    if quiet or not err.is_terminal:
        yield lambda name: None
        return
    with err.status(f"{what} ...") as status:
        yield lambda name: status.update(Text(f"{what} {name} ..."))


def confirm(question: str, hint: str) -> None:
    """Ask before what cannot be undone; any answer but yes ends the command.

    Raises
    ------
    RequestError
        If this is not a terminal, with the hint.
    """
    if not sys.stdin.isatty():
        raise RequestError("Nobody is there to be asked.", hint)
    typer.confirm(question, abort=True, err=True)
