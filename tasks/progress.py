"""Progress for whoever sits at the terminal. Never logged: how long a step takes is private."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

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
_SELDOM = 5.0  # seconds between what the run is told


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
def percent_of_run(dataset: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress artifact of the run, for long ones; to be called as what `rows_bar` gives.

    It stays with the run, and ends at 100 %. Only where the number of rows is public;
    outside of a run there is nobody to tell.

    Parameters
    ----------
    dataset
        Names the artifact.
    total
        The public number of rows.
    """
    from prefect.artifacts import create_progress_artifact, update_progress_artifact
    from prefect.context import FlowRunContext, TaskRunContext

    if FlowRunContext.get() is None and TaskRunContext.get() is None:
        yield lambda rows: None
        return
    artifact: Any = None  # its id, which Prefect's types do not know for one
    done, told = 0, time.monotonic()

    def on_rows(rows: int) -> None:
        nonlocal artifact, done, told
        done += rows
        if time.monotonic() - told < _SELDOM:
            return
        # In steps, so that lines which were left out do not show.
        told, percent = time.monotonic(), min(100.0, 5.0 * (20 * done // total))
        if artifact is None:
            artifact = create_progress_artifact(
                percent, key=f"rows-{dataset}", description=f"Rows read of {dataset}"
            )
        else:
            update_progress_artifact(artifact, percent)

    yield on_rows
    if artifact is not None:
        update_progress_artifact(artifact, 100.0)


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
