"""One streaming pass over the private table, with progress on the steward's terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from mechanisms import sampler
from mechanisms.rowwise import RowWise
from schemas.contract import Contract
from schemas.request import Dask, Here
from tables import accumulate as room
from tables.folds import Assign, ByPlace
from tables.passes import here
from tables.source import open_source
from tasks.plan import Plan, in_force
from tasks.policy import private_task
from tasks.progress import percent_of_run, rows_bar
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
    return Collected(sums, fingerprint)


@contextlib.contextmanager
def _shown(contract: Contract) -> Iterator[Callable[[int], None]]:
    """On the terminal; and in the run, which others see, where the number of rows is public."""
    passes = 1 if contract.owner is None else 2
    with rows_bar("reading", passes * contract.rows) as on_bar:
        if not contract.checks_rows:
            yield on_bar
            return
        with percent_of_run(contract.id, contract.rows) as on_run:

            def on_rows(rows: int) -> None:
                on_bar(rows)
                on_run(rows)

            yield on_rows


def _engine(asked: Here | Dask) -> room.Engine:
    if isinstance(asked, Here):
        return here
    from tables.cluster import Cluster

    return Cluster(asked.scheduler)


def _assign(plan: Plan) -> Assign | None:
    """Which fold a row belongs to, where there are several: no other row's change may move it."""
    folds = plan.request.folds
    if folds == 1:
        return None
    by_itself = plan.contract.neighbours == "add-remove"
    return partial(sampler.parts, folds) if by_itself else ByPlace(folds)
