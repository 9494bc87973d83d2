"""The ``gramercy`` command. Exit codes: 0 done, 2 refused or invalid, 1 failure."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.text import Text

from gramercy import __version__
from gramercy.cli.commands import LazyGroup
from gramercy.cli.output import terminal
from gramercy.common.extras import publishing
from gramercy.schemas.errors import GramercyError, Refused, RequestError
from gramercy.schemas.url import without_secrets

app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_INTERRUPTED = 130


@app.callback(invoke_without_command=True)
def front(version: Annotated[bool, typer.Option("--version", help="Print it.")] = False) -> None:
    """Publish second-moment matrices with an exact differential-privacy guarantee.

    Example: gramercy demo
    """
    if version:
        print(__version__)


def main() -> None:
    """Run the command; turn errors into words and exit codes."""
    # Before Prefect is imported: nothing of a steward's work is told to anyone.
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    code, label, words = 1, "Error: ", ""
    try:
        _check_letters(sys.argv[1:])
        with publishing():  # packages that a command turns out to need
            app()
    except SystemExit as done:
        if done.code == _INTERRUPTED:
            words = "Interrupted. The same command tells what became of the release."
            terminal.say(words, to=terminal.err)
        raise
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except GramercyError as error:
        code, words = error.exit_code, str(error)
        label = "Refused: " if isinstance(error, Refused) else label
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        words = f"{without_secrets(str(error.filename))}: {reason}."
    if "--json" in sys.argv:
        terminal.as_json({"error": words, "exit_code": code})
    terminal.say(Text(label, style="red"), words, to=terminal.err)
    sys.exit(code)


def _check_letters(words: list[str]) -> None:
    """Refuse bytes that are no text: they could neither be printed nor stored."""
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        raise RequestError("An argument is not UTF-8 text.", "Write it anew.") from None
