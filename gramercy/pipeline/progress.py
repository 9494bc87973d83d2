"""Progress on the terminal. Never logged: counts and durations depend on the private table."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

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

PROGRESS_VARIABLE = "GRAMERCY_PROGRESS"


def is_terminal(console: Console) -> bool:
    """Whether a console writes to a terminal, so that it may show private facts.

    Rich's own `is_terminal` is also true of files where FORCE_COLOR or TTY_COMPATIBLE is set.
    """
    return console.file.isatty()


_part: ContextVar[str] = ContextVar("_part", default="")


@contextlib.contextmanager
def part_of_run(name: str, number: int, count: int) -> Iterator[None]:
    """Announce in the block for which release a step is, and how many there are, if several."""
    token = _part.set(f"{name} ({number} of {count}): " if count > 1 else "")
    try:
        yield
    finally:
        _part.reset(token)


@contextlib.contextmanager
def announce_step(step: str) -> Iterator[None]:
    """Print when a step begins and ends, if ``GRAMERCY_PROGRESS`` is 1."""
    step = _part.get() + step
    if os.environ.get(PROGRESS_VARIABLE) != "1":
        yield
        return
    console = Console(stderr=True, highlight=False)
    if not is_terminal(console):
        yield
        console.print(f"  [green]✓[/green] {step}")
        return
    start = time.monotonic()
    console.print(f"  [dim]{step} ...[/dim]", end="\r")
    yield
    console.print(f"  [green]✓[/green] {step} [dim]{time.monotonic() - start:.1f} s[/dim]")


@contextlib.contextmanager
def rows_bar(activity: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar of rows; yields a function to call with the number of rows of each batch.

    Parameters
    ----------
    total
        The declared number of rows, so that the bar reveals no more than the contract.
    """
    with _bar(activity, "rows", transient=False, rate=_Rate()) as bar:
        job = bar.add_task("rows", total=total)
        yield lambda rows: bar.advance(job, rows)


@contextlib.contextmanager
def steps_bar(activity: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar of steps; yields a function to call with the steps done and their total."""
    with _bar(activity, "steps", transient=True) as bar:
        job = bar.add_task("steps", total=None, visible=False)
        yield lambda done, total: bar.update(job, completed=done, total=total, visible=True)


class _Rate(ProgressColumn):
    """Rows per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")


def _bar(
    activity: str, unit: str, *, transient: bool, rate: ProgressColumn | None = None
) -> Progress:
    columns = (
        TextColumn(f"  {activity}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        *(() if rate is None else (rate,)),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    return Progress(
        *columns, console=console, disable=not is_terminal(console), transient=transient
    )
