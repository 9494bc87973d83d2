"""Sum the private table in a streaming pass, with a progress bar on the steward's terminal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

from gramercy.application.planning import Plan, effective_contract
from gramercy.application.progress import rows_bar
from gramercy.application.public_parameters import row_normalisation
from gramercy.mechanisms.rowwise import RowWise
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.contract import Contract
from gramercy.schemas.engine import DaskEngine, LocalEngine
from gramercy.tables import streaming
from gramercy.tables.change_detection import store_digest, verify_unchanged
from gramercy.tables.cluster import Cluster
from gramercy.tables.folds import AssignFolds
from gramercy.tables.passes import run_locally
from gramercy.tables.source import open_source


@dataclass(frozen=True, repr=False)
class PrivateSums:
    """The exact sums, and the fingerprint and state of the files that were read. Private."""

    sums: streaming.Accumulated = field(repr=False)
    fingerprint: str = field(repr=False)
    state: str = field(repr=False)


def accumulate(plan: Plan) -> PrivateSums:
    """Read, repair, normalise, round, and sum the rows; the result never leaves this process.

    Raises
    ------
    TableError
        If the table changed while it was read; otherwise as in `tables.streaming.accumulate`.
    """
    source = open_source(plan.contract.source)
    fingerprint, state = source.fingerprint(), store_digest(source)
    with _progress_bar(plan.contract) as on_rows:
        sums = streaming.accumulate(
            source,
            effective_contract(plan.contract, plan.request),
            row_normalisation(plan.spec),
            plan.mechanism.lattice,
            on_rows=on_rows,
            keep_malformed=isinstance(plan.mechanism, RowWise),
            folds=plan.request.folds,
            assign=_assign(plan),
            engine=_engine(plan.request.engine),
        )
    verify_unchanged(state, plan.contract.source)
    return PrivateSums(sums, fingerprint, state)


def _progress_bar(contract: Contract) -> AbstractContextManager[Callable[[int], None]]:
    """A progress bar on the terminal, never in a log: batch times depend on private cells."""
    passes = 1 if contract.person_column is None else 2
    return rows_bar("reading", passes * contract.rows)


def _engine(engine: LocalEngine | DaskEngine) -> streaming.Engine:
    return run_locally if isinstance(engine, LocalEngine) else Cluster(engine.scheduler)


def _assign(plan: Plan) -> AssignFolds | None:
    """The function that draws a fold for each row, or None without folds; see `tables.folds`."""
    folds = plan.request.folds
    return partial(sampler.uniform_integers, folds) if folds > 1 else None
