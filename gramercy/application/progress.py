"""Progress for whoever sits at the terminal. Never logged: how long a step takes is private."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

SHOWN = "GRAMERCY_PROGRESS"


@contextlib.contextmanager
def announced(step: str) -> Iterator[None]:
    """Say when a step begins and ends, where a person asked for it."""
    if os.environ.get(SHOWN) != "1":
        yield
        return
    console = Console(stderr=True, highlight=False)
    start = time.monotonic()
    if console.is_terminal:
        console.print(f"  [dim]{step} ...[/dim]", end="\r")
    yield
    console.print(f"  [green]✓[/green] {step} [dim]{time.monotonic() - start:.1f} s[/dim]")


@contextlib.contextmanager
def rows_bar(doing: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar of rows, on a terminal; to be called with the number of rows of each batch.

    Parameters
    ----------
    doing
        What is done with the rows.
    total
        The declared number of rows, so that the bar tells nothing the contract does not.
    """
    with _bar(doing, "rows", stays=True, rate=_Rate()) as bar:
        job = bar.add_task("rows", total=total)
        yield lambda rows: bar.advance(job, rows)


@contextlib.contextmanager
def turns_bar(doing: str) -> Iterator[Callable[[int, int], None]]:
    """A bar of turns, on a terminal; to be called with how many are done, and of how many."""
    with _bar(doing, "turns", stays=False) as bar:
        job = bar.add_task("turns", total=None, visible=False)
        yield lambda done, of: bar.update(job, completed=done, total=of, visible=True)


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")


def _bar(doing: str, what: str, *, stays: bool, rate: ProgressColumn | None = None) -> Progress:
    columns = (
        TextColumn(f"  {doing}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(what),
        *(() if rate is None else (rate,)),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    quiet = not console.is_terminal
    return Progress(*columns, console=console, disable=quiet, transient=not stays)
