"""The ``gramercy`` command. Exit codes: 0 done, 2 refused or invalid, 1 failure."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from gramercy import __version__
from gramercy.cli import terminal
from gramercy.cli.commands import LazyGroup
from gramercy.cli.interruption import catch_signals, release_signals
from gramercy.cli.terminal import report_failure
from gramercy.common.extras import publishing
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.url import without_secrets

app = typer.Typer(cls=LazyGroup, pretty_exceptions_enable=False, rich_markup_mode=None)

_INTERRUPTED = 130
_OBJECTS_PER_COLLECTION = 200_000  # imports make almost a million


@app.callback(invoke_without_command=True)
def global_options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Publish second-moment matrices with an exact differential-privacy guarantee.

    Example: gramercy demo
    """
    if version:
        print(__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def run() -> None:
    """The entry point of the command: `main`; a signal while the process exits ends it at once."""
    atexit.register(gc.freeze)  # the interpreter would look through all objects as it ends
    catch_signals()
    try:
        main()
    finally:
        release_signals()


def main() -> None:
    """Run the command; turn errors into messages and exit codes."""
    # Collections of garbage would take a fifth of the time of a command that lists thousands.
    gc.set_threshold(_OBJECTS_PER_COLLECTION, 20, 20)
    # No telemetry about a steward's work. Prefect reads these variables when it is imported.
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.umask(os.umask(0o022) | 0o022)  # nothing that is written may be changed by others
    failure: GramercyError
    try:
        code = _run()
        sys.stdout.flush()
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code)
    except KeyboardInterrupt:
        terminal.say("Interrupted.", to=terminal.err)
        sys.exit(_INTERRUPTED)
    except GramercyError as error:
        failure = error
    except BrokenPipeError:
        _discard_output()
        sys.exit(1)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        failure = families.OPERATING_SYSTEM(
            "{path}: {reason}.", path=without_secrets(str(error.filename)), reason=reason
        )
    try:
        report_failure(failure, json="--json" in sys.argv)
    except BrokenPipeError:
        _discard_output()
    sys.exit(failure.exit_code)


def _discard_output() -> None:
    """Discard what is still to be written, because its reader, such as ``head``, has ended."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _taken_by_options(error: TyperException) -> str:
    """Where an argument is missing, what options took that may have been meant as the argument."""
    missing, context = getattr(error, "param", None), getattr(error, "ctx", None)
    if context is None or getattr(missing, "param_type_name", "") != "argument":
        return ""
    values = {each: context.params.get(each.name) for each in context.command.params}
    return " ".join(
        f"{option.opts[0]} took '{without_secrets(value)}' as {option.metavar}: {option.help}"
        for option, value in values.items()
        if option.metavar and isinstance(value, str) and option is not missing
    )


def _run() -> int:
    """Run the command; a usage error is a `GramercyError` like all others."""
    try:  # bytes that are not text could be neither printed nor stored
        "".join(sys.argv[1:]).encode()
    except UnicodeEncodeError:
        raise families.USAGE("An argument is not UTF-8 text.", "Type it again.") from None
    try:
        with publishing():  # a command may need packages of the extra
            return app(standalone_mode=False, prog_name="gramercy") or 0
    except typer.Abort:
        terminal.say("Aborted.", to=terminal.err)
        return 1
    except TyperException as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "gramercy")
        reason = f"{error.format_message().strip()} {_taken_by_options(error)}".strip()
        misuse = families.USAGE(
            "Usage error: {reason}",
            "Run '{command} --help'.",
            reason=reason if reason.endswith((".", "?", "!")) else f"{reason}.",
            command=command,
        )
    raise misuse
