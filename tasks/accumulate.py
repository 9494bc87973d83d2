"""One streaming pass over the private table, with progress on the steward's terminal."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from mechanisms.rowwise import RowWise
from tables import accumulate as room
from tables.read import open_source
from tasks.plan import Plan, in_force
from tasks.policy import private_task
from tasks.setting import normalised


@dataclass(frozen=True, repr=False)
class Collected:
    """The exact sums and the fingerprint of the files they came from. Private."""

    sums: room.Accumulated = field(repr=False)
    fingerprint: str = field(repr=False)


@private_task
def accumulate(plan: Plan) -> Collected:
    """Read, repair, normalise, round, and sum; the result never leaves this process."""
    source = open_source(plan.contract.source)
    fingerprint = source.fingerprint()
    columns = (
        TextColumn("  reading"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeRemainingColumn(),
    )
    # The total is the declared number of rows, so that the bar tells nothing the contract does not.
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        job = bar.add_task("rows", total=plan.contract.rows)
        sums = room.accumulate(
            source,
            in_force(plan.contract, plan.request),
            normalised(plan.asked),
            plan.mechanism.lattice,
            on_rows=lambda rows: bar.advance(job, rows),
            in_place=isinstance(plan.mechanism, RowWise),
        )
    return Collected(sums, fingerprint)
