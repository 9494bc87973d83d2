"""Errors as the terminal and ``--json`` show them."""

from __future__ import annotations

import math
import sys
from typing import Any

from rich.text import Text

from gramercy.cli.output import terminal
from gramercy.schemas.errors import GramercyError, Interrupted, InvalidValue, Refused


def as_facts(error: GramercyError) -> dict[str, Any]:
    """An error as plain data: its code, message, hint, kind, facts and details."""
    return {
        "code": error.code,
        "error": error.message,
        "hint": error.hint,
        "kind": type(error).__name__,
        "facts": {name: _plain(value) for name, value in error.facts.items()},
        "details": [_detail(each) for each in error.details],
    }


def report_failure(error: GramercyError, *, json: bool) -> None:
    """Print an error to standard error and, on request, also as JSON to standard output."""
    label = "Refused" if isinstance(error, Refused) else "Error"
    label = "Interrupted" if isinstance(error, Interrupted) else label
    code = f" {error.code}" if error.code else ""
    terminal.say(Text(f"{label}{code}: ", style="red"), error.message, to=terminal.err)
    if json:
        terminal.print_json(as_facts(error) | {"exit_code": error.exit_code})
        sys.stdout.flush()


def _detail(error: InvalidValue) -> dict[str, Any]:
    return {"key": error.key, **as_facts(error)}


def _plain(value: Any) -> Any:
    """A fact as a JSON value; NaN and infinities, which JSON lacks, become text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
