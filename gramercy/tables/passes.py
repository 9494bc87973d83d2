"""One pass over a table or a partition of it, by a thread, a process or a Dask worker.

A pass starts from public constants and file names and ends with exact integers, so the result does
not depend on where it runs or how the table is partitioned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

from gramercy.common.lattice import Lattice
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Clip, Unit, Whole
from gramercy.tables.csv_reader import MalformedLines
from gramercy.tables.folds import AssignFolds
from gramercy.tables.persons import MeasuringWorker, Persons, ScalingWorker
from gramercy.tables.reader import cell_batches
from gramercy.tables.repair import Repairs
from gramercy.tables.row_transform import RowTransform
from gramercy.tables.source import Source
from gramercy.tables.sums import Sum, SummingWorker
from gramercy.tables.threads import WorkerT, thread_count, worker_pool

EXCESS_ROWS = 1_000_000  # rows beyond the declared number, after which reading stops

OnRows = Callable[[int], None]


def ignore_progress(rows: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Job:
    """What a pass does, in public constants.

    Parameters
    ----------
    contract, normalisation, lattice
        The declared columns, the normalisation, and the lattice of the integer rows.
    keep_malformed
        Whether a malformed line of a CSV file becomes a row of missing cells.
    folds, assign
        Number of folds, and the function that draws the fold of each row.
    threads
        Maximal number of threads; None for as many as are useful.
    """

    contract: Contract
    normalisation: Unit | Clip | Whole
    lattice: Lattice
    keep_malformed: bool = False
    folds: int = 1
    assign: AssignFolds | None = None
    threads: int | None = None


@dataclass(frozen=True, repr=False)
class PartialSums:
    """The sums of one partition. Private.

    Parameters
    ----------
    fold_sums
        The sum of each fold, without dropped malformed lines.
    repairs, malformed
        Counts of repaired cells and of malformed lines.
    contributions
        For person-level privacy: the sum of squares of each person's scaled rows, and the number
        of rows without a person.
    """

    fold_sums: tuple[Sum, ...]
    repairs: Repairs
    malformed: MalformedLines
    contributions: Persons = field(default_factory=Persons)

    @property
    def rows(self) -> int:
        """Rows in all folds."""
        return sum(fold.rows for fold in self.fold_sums)

    def __add__(self, other: PartialSums) -> PartialSums:
        return PartialSums(
            tuple(a + b for a, b in zip(self.fold_sums, other.fold_sums, strict=True)),
            self.repairs + other.repairs,
            self.malformed + other.malformed,
            self.contributions + other.contributions,
        )


def run_locally(source: Source, job: Job, on_rows: OnRows) -> PartialSums:
    """Sum a whole table in this process."""
    persons = measure_persons(source, job, on_rows) if job.contract.person_column else None
    return sum_rows(source, job, persons, on_rows)


def measure_persons(source: Source, job: Job, on_rows: OnRows = ignore_progress) -> Persons:
    """The first pass of person-level privacy: each person's number of rows and sum of squares."""
    persons = Persons()
    _run(source, job, on_rows, lambda transform: MeasuringWorker(transform, persons), persons)
    return persons


def sum_rows(
    source: Source, job: Job, persons: Persons | None = None, on_rows: OnRows = ignore_progress
) -> PartialSums:
    """The summing pass; `persons` is the result of the first pass over the whole table."""
    contributions, workers = Persons(), list[SummingWorker]()
    if persons is None:
        malformed, workers = _run(
            source, job, on_rows, lambda transform: SummingWorker(transform, job.folds)
        )
    else:
        contributions = Persons(persons.names, closed=True)
        factors = persons.factors(job.lattice)
        malformed, workers = _run(
            source,
            job,
            on_rows,
            lambda transform: ScalingWorker(transform, factors, contributions),
            contributions,
        )
    return PartialSums(
        tuple(reduce(add, sums) for sums in zip(*(x.sums() for x in workers), strict=True)),
        reduce(add, (worker.repairs for worker in workers)),
        malformed,
        contributions,
    )


def _run(
    source: Source,
    job: Job,
    on_rows: OnRows,
    new_worker: Callable[[RowTransform], WorkerT],
    persons: Persons | None = None,
) -> tuple[MalformedLines, list[WorkerT]]:
    """Pass all batches to workers; the indices of persons, if any, are the first row of a batch."""
    contract, malformed, rows_read = job.contract, MalformedLines(), 0
    columns: dict[str, Any] = {name: contract.levels(name) for name in contract.names}
    if contract.person_column is not None:
        columns = {contract.person_column: persons, **columns}
    limit = contract.rows + EXCESS_ROWS if contract.checks_rows else math.inf
    transform = RowTransform.of(contract, job.normalisation, job.lattice)
    threads = (job.threads or thread_count()) if transform.kernel else 1
    workers = [new_worker(transform) for _ in range(threads)]
    with worker_pool(workers) as add_batch:
        for batch in cell_batches(source, columns, malformed, keep_malformed=job.keep_malformed):
            rows = batch.shape[1]
            add_batch(batch, *([] if job.assign is None else [job.assign(rows)]))
            rows_read += rows
            on_rows(rows)
            if rows_read + malformed.dropped > limit:  # the table may be endless
                break
    return malformed, workers
