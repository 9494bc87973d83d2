"""``gramercy status``: whether a home and its service need a person, in one screen."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from gramercy.cli import terminal
from gramercy.cli.options import AsJson
from gramercy.common.disk import write_atomically
from gramercy.pipeline.context import Context
from gramercy.pipeline.status.facts import Fact, metrics
from gramercy.pipeline.status.facts import status as facts_of

_LISTED_IN_FULL = 24  # lines; of more, those of data sets that are well are only counted
_NEEDS_A_PERSON = 1


def status(
    metrics_file: Annotated[
        Path | None,
        typer.Option(
            "--metrics", metavar="FILE", help="Also write the facts for Prometheus to this file."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show whether anything needs a person: releases, budgets, audit, worker, disk and witness.

    Reads no table and changes nothing. The exit code is 1 if something needs a person.

    Example: gramercy status --metrics /var/lib/prometheus/node-exporter/gramercy.prom
    """
    now = datetime.datetime.now(datetime.UTC)
    facts = facts_of(Context.default(), now)
    if metrics_file is not None:
        write_atomically(metrics_file, metrics(facts, now).encode())
    if json:
        terminal.print_json([each.facts() for each in facts])
    else:
        _print(facts)
    if not all(each.well for each in facts):
        sys.exit(_NEEDS_A_PERSON)


def _print(facts: Sequence[Fact]) -> None:
    in_full = len(facts) <= _LISTED_IN_FULL
    shown = [each for each in facts if in_full or not (each.dataset and each.well)]
    shown.sort(key=lambda each: each.well)
    width = max(len(f"{each.subject} {each.dataset}") for each in shown)
    for each in shown:
        sign = Text("✓ ", style="green") if each.well else Text("✗ ", style="red")
        name = terminal.bold(f"{f'{each.subject} {each.dataset}':<{width}}")
        terminal.say(sign, name, f"  {each.text}")
    if hidden := len(facts) - len(shown):
        terminal.say(Text(f"and {hidden} lines of data sets that are well", style="dim"))
    people = sum(not each.well for each in facts)
    terminal.say("All is well." if not people else f"{people} of {len(facts)} need a person.")
