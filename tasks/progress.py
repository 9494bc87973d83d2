"""Progress for whoever sits at the terminal. Never logged: how long a step takes is private."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from rich.console import Console

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
