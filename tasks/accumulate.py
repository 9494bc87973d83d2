"""One streaming pass over the private table, with progress on the steward's terminal."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from mechanisms import sampler
from mechanisms.rowwise import RowWise
from schemas.request import Dask, Here
from tables import accumulate as room
from tables.folds import Assign, ByPlace
from tables.read import open_source
from tasks.plan import Plan, in_force
from tasks.policy import private_task
from tasks.progress import rows_bar
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
    passes = 1 if plan.contract.owner is None else 2
    with rows_bar("reading", passes * plan.contract.rows) as on_rows:
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


def _engine(asked: Here | Dask) -> room.Engine | None:
    if isinstance(asked, Here):
        return None
    from tables.cluster import Cluster

    return Cluster(asked.scheduler)


def _assign(plan: Plan) -> Assign | None:
    """Which fold a row belongs to, where there are several: no other row's change may move it."""
    folds = plan.request.folds
    if folds == 1:
        return None
    by_itself = plan.contract.neighbours == "add-remove"
    return partial(sampler.parts, folds) if by_itself else ByPlace(folds)
