"""The private table: its copy where it is not read in place, and streaming passes over it.

A database changes while it is read, so its table is read once, in one statement, into a file of the
home that only its owner may read. So is a Delta table, whose files may be removed at any time. The
copy is removed when the release is sealed or has failed. If the process was killed, the next
release or check of any data set removes it.

A pass shows a progress bar on the steward's terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.store.staging import StagingArea
from gramercy.common.home import Home
from gramercy.common.lattice import Lattice
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.plan.checking import (
    check_table_header,
    kind_of_dates,
    required_columns,
)
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.progress import rows_bar
from gramercy.scaling.chain import AnyGrid, ConstantsChain, lengths_of
from gramercy.schemas import wordings
from gramercy.schemas.contract import Contract
from gramercy.schemas.request_parts import DaskEngine, LocalEngine
from gramercy.schemas.source import original
from gramercy.tables.batches import KeptCells
from gramercy.tables.counts import counting
from gramercy.tables.formats.reader import column_types
from gramercy.tables.formats.source import (
    copy_rows,
    needs_copy,
    open_source,
    store_digest,
    verify_unchanged,
)
from gramercy.tables.formats.table_format import CopiedColumns
from gramercy.tables.sums import further_sums, streaming
from gramercy.tables.sums.cluster import Cluster
from gramercy.tables.sums.exact_sums import AssignFolds, Parts, Sum
from gramercy.tables.sums.passes import run_locally

_CELL = 8  # bytes
_ACTIVITIES = {"lost": "summing tails", "missing": "summing missing cells"}


@dataclass(frozen=True, repr=False)
class PrivateSums:
    """The exact sums, and the fingerprint and state of the files that were read. Private."""

    sums: streaming.Accumulated = field(repr=False)
    fingerprint: str = field(repr=False)
    state: str = field(repr=False)
    # the exact sums of the rows of every further matrix, for each group
    further: Mapping[str, tuple[Sum, ...]] = field(default_factory=dict, repr=False)
    dates: str = ""  # of a cumulative series, what gives the step of a row; see `type_of_dates`


@dataclass(frozen=True, repr=False)
class PrivateCounts:
    """Exact counts over the bins of the first histograms to publish; see `PrivateSums`. Private.

    The cells are kept for the next passes, where they fit into memory.
    """

    counts: counting.BinCounts = field(repr=False)
    fingerprint: str = field(repr=False)
    state: str = field(repr=False)
    kept: KeptCells = field(repr=False)


def accumulate(plan: Plan) -> PrivateSums | PrivateCounts:
    """The first pass over the table, before the charge; the result never leaves this process.

    It sums the rows. If noisy counts are published first, it counts the cells of every column
    instead, or the lengths of rows, and further passes follow the draws of `draw_counts`.
    """
    source = open_source(plan.contract.source)
    fingerprint, state = source.fingerprint(), store_digest(source)
    if plan.draws_counts:
        contract = plan.matrix_contract
        kept = KeptCells(_CELL * contract.rows * len(contract.names))
        if plan.spec.estimates_constants:
            noise = plan.calibration.noise_of_sum(plan.spec)
            counts = count_cells(plan, ConstantsChain.start(plan.spec, noise).grids, state, kept)
        else:
            counts = count_lengths(plan, lengths_of(plan.spec), state, kept)
        return PrivateCounts(counts, fingerprint, state, kept)
    return PrivateSums(sum_rows(plan, state), fingerprint, state, dates=type_of_dates(plan))


def type_of_dates(plan: Plan) -> str:
    """The type of the column whose dates give the step of a row, or that files do; a public fact.

    Empty without a series.
    """
    if plan.spec.cumulative is None:
        return ""
    files = open_source(original(plan.contract.source)).files
    return kind_of_dates(plan.contract, map(column_types, files))


def sums_of_step(plan: Plan, data: PrivateSums | PrivateCounts) -> PrivateSums:
    """What a reading for a later step of the same series shows of the rows up to that of a plan.

    Rows that were read and cells that were repaired are counted for the whole reading.
    """
    if isinstance(data, PrivateCounts):
        raise wordings.sums_not_as_planned()
    groups, steps = plan.spec.groups_count, plan.spec.slices
    read = len(data.sums.part_sums) // groups
    kept = [s for k in range(groups) for s in data.sums.part_sums[k * read : k * read + steps]]
    return replace(data, sums=replace(data.sums, part_sums=tuple(kept)))


def sum_rows(plan: Plan, state: str, kept: KeptCells | None = None) -> streaming.Accumulated:
    """Read, repair, normalise, round, and sum the rows."""
    with _pass("summing", plan, state) as on_rows:
        sums = streaming.accumulate(
            open_source(plan.contract.source),
            plan.scaled_contract,
            plan.row_normalisation,
            plan.mechanism.lattice,
            on_rows=on_rows,
            in_order=plan.mechanism.publishes.rows_file is not None,
            parts=_parts(plan, plan.spec.slices),
            assign=_assign(plan),
            draw_keys=sampler.random_keys,
            metric=plan.metric,
            engine=_engine(plan.request.engine, kept),
        )
    return sums


def _parts(plan: Plan, folds: int = 1) -> Parts:
    by = plan.spec.by
    return Parts(folds, by, None if by is None else plan.contract.columns[by.name].coding)


def sum_for_pilot(plan: Plan, lattice: Lattice, state: str, kept: KeptCells) -> Sum:
    """Sum the rows for the pilot matrix: all in one part; see `sum_rows`."""
    with _pass("looking for directions", plan, state) as on_rows:
        sums = streaming.accumulate(
            open_source(plan.contract.source),
            plan.scaled_contract,
            plan.row_normalisation,
            lattice,
            on_rows=on_rows,
            keep_malformed=plan.spec.parts > 1,
            engine=_engine(plan.request.engine, kept),
        )
    return sums.part_sums[0]


def sum_further_rows(
    plan: Plan, state: str, kept: KeptCells | None = None
) -> dict[str, tuple[Sum, ...]]:
    """Sum the rows of every further matrix, for each group."""
    scans = 1 if plan.contract.person_column is None else 3
    sums = {}
    for name, mechanism in plan.calibration.further.items():
        with _pass(_ACTIVITIES[name], plan, state, scans) as on_rows:
            sums[name] = further_sums.sum_further_rows(
                open_source(plan.contract.source),
                plan.scaled_contract,
                plan.spec.further_rows[name],
                mechanism.lattice,
                plan.mechanism.lattice,
                on_rows,
                groups=_parts(plan),
                keep_malformed=plan.spec.parts > 1,
                metric=plan.metric,
                engine=_engine(plan.request.engine, kept),
            )
    return sums


def count_cells(
    plan: Plan, grids: Sequence[AnyGrid], state: str, kept: KeptCells
) -> counting.BinCounts:
    """Count the cells of every column in bins; see `sum_rows`."""
    with _pass("counting", plan, state, scans=1) as on_rows:
        counts = counting.count_bins(
            open_source(plan.contract.source),
            plan.matrix_contract,
            grids,
            on_rows,
            draw_keys=sampler.random_keys,
            engine=_engine(plan.request.engine, kept),
        )
    return counts


def count_lengths(
    plan: Plan, edges: NDArray[np.float64], state: str, kept: KeptCells
) -> counting.BinCounts:
    """Count the lengths of scaled rows, or of persons' rows together, in bins; see `sum_rows`."""
    with _pass("measuring", plan, state, scans=1) as on_rows:
        counts = counting.count_lengths(
            open_source(plan.contract.source),
            plan.scaled_contract,
            edges,
            on_rows,
            metric=plan.metric,
            engine=_engine(plan.request.engine, kept),
        )
    return counts


@contextmanager
def _pass(
    activity: str, plan: Plan, state: str, scans: int | None = None
) -> Iterator[Callable[[int], None]]:
    """A pass over a table that must not have changed, with a progress bar on the terminal.

    The bar is never in a log: batch times depend on private cells.
    """
    verify_unchanged(state, plan.contract.source)
    scans = scans or (1 if plan.contract.person_column is None else 2)
    with rows_bar(activity, scans * plan.contract.rows) as on_rows:
        yield on_rows
    verify_unchanged(state, plan.contract.source)


def _engine(engine: LocalEngine | DaskEngine, kept: KeptCells | None) -> streaming.Engine:
    if isinstance(engine, LocalEngine):
        return partial(run_locally, kept=kept)
    return Cluster(engine.scheduler)


def _assign(plan: Plan) -> AssignFolds | None:
    """The function that draws a fold for each row, or None without folds."""
    folds = plan.request.folds
    return partial(sampler.uniform_integers, folds) if folds > 1 else None


_OWNER = "copy"
_COPY = "table"


def remove_abandoned_copies(home: Home) -> None:
    """Remove the copies of processes that were killed; copies in use stay."""
    StagingArea(home.tables).sweep(_OWNER)


@contextmanager
def copy_folder(home: Home, contract: Contract) -> Iterator[Path | None]:
    """A private folder for the copy, removed after the block; None if the table is not copied."""
    if not needs_copy(contract.source):
        yield None
        return
    with StagingArea(home.tables).new(_OWNER) as folder:
        yield folder


def copy_table(plan: Plan, folder: Path) -> Plan:
    """Copy the table of a plan; the result is the same plan, which reads the copy."""
    return replace(plan, contract=copied_contract(plan.contract, folder))


def copied_contract(contract: Contract, folder: Path) -> Contract:
    """The contract with a private copy of its table as its source; see `copy_table`."""
    if not needs_copy(contract.source):
        return contract
    check_table_header(contract)
    period = None if contract.period is None else contract.period.column
    columns = {name: x for name, x in contract.table_columns.items() if name != period}
    others = [name for name in required_columns(contract) if name not in columns]
    # The bar is never in a log: batch times depend on private cells.
    with rows_bar("copying", contract.rows) as on_rows:
        copied = copy_rows(
            contract.source,
            CopiedColumns(
                {name: column.coding for name, column in columns.items()},
                others,
                rows=contract.rows if contract.checks_rows else None,
            ),
            folder / _COPY,
            on_rows=on_rows,
        )
    return contract.model_copy(update={"source": copied})
