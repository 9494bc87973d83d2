"""Printing text, tables, panels and JSON, and asking for confirmation."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.panel import Panel
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from gramercy.schemas import families
from gramercy.schemas.errors import printable
from gramercy.schemas.problem import Notice

_LEAST_WIDTH = 20
_YES_OR_NO = " [y/N]: "


class EscapingConsole(Console):
    """A console that prints no character that a terminal would execute or hide.

    Texts come from archives, tables and paths that may be hostile.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as Rich does, with such characters as escape sequences of Python."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or text.isprintable() or text == "\n":
                yield segment
            else:
                yield Segment("\n".join(map(printable, text.split("\n"))), segment.style)


for _name in ("stdout", "stderr"):
    if getattr(sys, _name) is None:  # closed by the shell, as with `>&-`
        setattr(sys, _name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115

# A file or a pipe has no width of its own: use a fixed one.
out = EscapingConsole(highlight=False, width=None if sys.stdout.isatty() else 110)
err = EscapingConsole(highlight=False, width=None if sys.stderr.isatty() else 110, stderr=True)


def print_json(facts: Any) -> None:
    """Print plain data as JSON, with escapes for characters that a terminal would execute."""
    print("\n".join(_json_lines(facts)))


def print_json_list(items: Iterable[Any]) -> None:
    """Print a list as `print_json` does; only its text is in memory as a whole.

    Nothing is printed if an item raises an error.
    """
    texts = ["\n".join(f"  {line}" for line in _json_lines(item)) for item in items]
    print("[\n" + ",\n".join(texts) + "\n]" if texts else "[]")


def _json_lines(facts: Any) -> Iterator[str]:
    text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
    return map(_json_escaped, text.split("\n"))


def _json_escaped(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(x if x.isprintable() else json.dumps(x)[1:-1] for x in line)


def say(*parts: str | Text, to: Console = out) -> None:
    """Print text literally: brackets in a name are not markup."""
    text = parts[0] if len(parts) == 1 and isinstance(parts[0], Text) else Text.assemble(*parts)
    if to.is_terminal:
        to.print(text, overflow="ignore", crop=False)  # a path is not broken: it will be copied
    else:  # the same without Rich, which takes longer than everything else for thousands of lines
        to.file.write("\n".join(map(printable, text.plain.split("\n"))) + "\n")


def plain(text: str) -> Text:
    """Text whose brackets are printed literally."""
    return Text(text)


def bold(text: str) -> Text:
    """Emphasised text."""
    return Text(text, style="bold")


def warn(notice: Notice) -> None:
    """Print a warning to standard error."""
    say(Text(f"Warning {notice.code}: ", style="yellow"), notice.message, to=err)


def facts_table(title: str, facts: Mapping[str, str | Text]) -> None:
    """Print names and values."""
    columns = Column(), Column(overflow="fold")
    table = Table(*columns, title=Text(title), title_justify="left", show_header=False, box=None)
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
def progress(activity: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show progress on the terminal; yields a function to call with the name of each item."""
    if quiet or not err.is_terminal:
        yield lambda name: None
        return
    with err.status(f"{activity} ...") as status:
        yield lambda name: status.update(Text(f"{activity} {name} ..."))


def wrapped(text: str, room: int = 0) -> str:
    """Text in lines of the terminal's width, broken between words, with its indentation.

    Parameters
    ----------
    text
        Of any number of lines.
    room
        Characters that will follow the last line.
    """
    width = max(shutil.get_terminal_size().columns - 1 - room, _LEAST_WIDTH)
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        words = textwrap.wrap(
            line.strip(),
            width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += words or [""]
    return "\n".join(lines)


def confirm(question: str, hint: str) -> None:
    """Ask before an irreversible step; any answer other than yes ends the command.

    Raises
    ------
    RequestError
        If standard input is not a terminal; the error has this hint.
    """
    if not sys.stdin.isatty():
        raise families.NOT_A_TERMINAL(
            "Not a terminal, so no question can be asked.",
            "{remedy}",
            remedy=hint,
        )
    typer.confirm(wrapped(question, room=len(_YES_OR_NO)), abort=True, err=True)
