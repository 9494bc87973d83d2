"""Printing text, tables, JSON and errors; asking for confirmation; phrases of guarantees."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.prompt import Confirm
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError, Interrupted, Refused, printable

if TYPE_CHECKING:
    from gramercy.schemas.facts import GuaranteeFacts
    from gramercy.schemas.normalisation import AnyNormalisation
    from gramercy.schemas.problem import Notice


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
    for line in json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False).split("\n"):
        # Most lines are printable as a whole.
        escaped = (x if x.isprintable() else json.dumps(x)[1:-1] for x in line)
        yield line if line.isprintable() else "".join(escaped)


def say(*parts: str | Text, to: Console = out) -> None:
    """Print text literally: brackets in a name are not markup."""
    text = parts[0] if len(parts) == 1 and isinstance(parts[0], Text) else Text.assemble(*parts)
    if to.is_terminal:
        to.print(text, overflow="ignore", crop=False)  # a path is not broken: it will be copied
    else:  # the same without Rich, which takes longer than everything else for thousands of lines
        to.file.write("\n".join(map(printable, text.plain.split("\n"))) + "\n")


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


@contextlib.contextmanager
def progress(activity: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show progress on the terminal; yields a function to call with the name of each item."""
    if quiet or not err.is_terminal:
        yield lambda name: None
        return
    with err.status(f"{activity} ...") as status:
        yield lambda name: status.update(Text(f"{activity} {name} ..."))


def confirm(question: str, hint: str) -> None:
    """Ask before an irreversible step; any answer other than yes ends the command."""
    if not sys.stdin.isatty():
        raise families.NOT_A_TERMINAL(
            "Not a terminal, so no question can be asked.", "{remedy}", remedy=hint
        )
    if not Confirm.ask(Text(question), console=err, default=False):
        raise typer.Abort


def as_facts(error: GramercyError) -> dict[str, Any]:
    """An error as plain data: its code, message, hint, kind, facts and details."""
    return {
        "code": error.code,
        "error": error.message,
        "hint": error.hint,
        "kind": type(error).__name__,
        "facts": {name: _plain(value) for name, value in error.facts.items()},
        "details": [{"key": each.key, **as_facts(each)} for each in error.details],
    }


def report_failure(error: GramercyError, *, json: bool) -> None:
    """Print an error to standard error and, on request, also as JSON to standard output."""
    label = "Refused" if isinstance(error, Refused) else "Error"
    label = "Interrupted" if isinstance(error, Interrupted) else label
    code = f" {error.code}" if error.code else ""
    say(Text(f"{label}{code}: ", style="red"), error.message, to=err)
    if json:
        print_json(as_facts(error) | {"exit_code": error.exit_code})
        sys.stdout.flush()


def _plain(value: Any) -> Any:
    """A fact as a JSON value; NaN and infinities, which JSON lacks, become text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def privacy_loss_text(epsilon: float, delta: float, digits: int = 4) -> str:
    """Epsilon and delta as terminals show them."""
    return f"epsilon={epsilon:.{digits}g}, delta={delta:g}"


def guarantee_text(facts: GuaranteeFacts) -> str:
    """A guarantee in one line."""
    failing = f", except with probability {facts.delta0:.2g}" if facts.delta0 else ""
    return f"{privacy_loss_text(facts.epsilon, facts.delta, 6)}; {facts.mu:.6g}-GDP{failing}"


_COLOURS = {"green": "bold green", "orange": "bold yellow", "red": "bold red"}


def verdict_text(level: str, code: str, text: str) -> Text:
    """A verdict in its colour."""
    words = f"{code}: {text}" if code else text
    return Text.assemble((level, _COLOURS[level]), f"  {words}")


def attacker_text(power: float) -> str:
    """The true positive rate of the best test between neighbouring tables."""
    return f"{100 * power:.1f} % true positives at 5 % false positives"


def normalisation_text(normalisation: AnyNormalisation) -> str:
    """A normalisation in a few words."""
    if normalisation.kind == "clip":
        if normalisation.radius is None:
            return "rows clipped at a private radius"
        return f"rows clipped at {normalisation.radius:g}"
    names = {"unit": "unit rows", "box": "rows within their bounds"}
    return names.get(normalisation.kind, "whole numbers")
