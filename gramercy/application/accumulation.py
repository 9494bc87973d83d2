"""One streaming pass over the private table, with progress on the steward's terminal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

from gramercy.application.planning import Plan, in_force
from gramercy.application.progress import rows_bar
from gramercy.application.public_parameters import normalised
from gramercy.mechanisms.rowwise import RowWise
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.contract import Contract
from gramercy.schemas.engine import Dask, Here
from gramercy.tables import streaming as room
from gramercy.tables.cluster import Cluster
from gramercy.tables.folds import Assign
from gramercy.tables.passes import here
from gramercy.tables.source import open_source
from gramercy.tables.unchanged import hold_to, state


@dataclass(frozen=True, repr=False)
class Collected:
    """The exact sums, and fingerprint and state of the files they came from. Private."""

    sums: room.Accumulated = field(repr=False)
    fingerprint: str = field(repr=False)
    state: str = field(repr=False)


def accumulate(plan: Plan) -> Collected:
    """Read, repair, normalise, round, and sum; the result never leaves this process.

    Raises
    ------
    TableError
        If the table changed while it was read, or as `tables.streaming.accumulate`.
    """
    source = open_source(plan.contract.source)
    fingerprint, opened = source.fingerprint(), state(source)
    with _shown(plan.contract) as on_rows:
        sums = room.accumulate(
            source,
            in_force(plan.contract, plan.request),
            normalised(plan.asked),
            plan.mechanism.lattice,
            on_rows=on_rows,
            in_place=isinstance(plan.mechanism, RowWise),
            folds=plan.request.folds,
            assign=_assign(plan),
            engine=_engine(plan.request.engine),
        )
    hold_to(opened, plan.contract.source)
    return Collected(sums, fingerprint, opened)


def _shown(contract: Contract) -> AbstractContextManager[Callable[[int], None]]:
    """A bar on the terminal alone: how batches follow each other depends on what cells hold."""
    passes = 1 if contract.owner is None else 2
    return rows_bar("reading", passes * contract.rows)


def _engine(asked: Here | Dask) -> room.Engine:
    return here if isinstance(asked, Here) else Cluster(asked.scheduler)


def _assign(plan: Plan) -> Assign | None:
    """What draws the fold of each row, where there are several: see `tables.folds`."""
    folds = plan.request.folds
    return partial(sampler.parts, folds) if folds > 1 else None
