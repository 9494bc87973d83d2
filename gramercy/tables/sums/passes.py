"""Passes over a table or a partition of it, by threads, a process or a Dask worker.

A pass starts from public constants and file names and ends with exact integers, so the result does
not depend on where it runs or how the table is partitioned.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from gramercy.common.metric import Metric
from gramercy.schemas.contract import Contract
from gramercy.schemas.periods import FILES
from gramercy.tables import batches
from gramercy.tables.batches import (
    EXCESS_ROWS,
    KeptCells,
    MalformedLines,
    WorkerT,
    thread_count,
    worker_pool,
)
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import Source
from gramercy.tables.persons.person_index import IndexedPersons, Persons
from gramercy.tables.sums.period_filter import PeriodFilter

OnRows = Callable[[int], None]


def ignore_progress(rows: int) -> None:
    """Report no progress."""


ResultT = TypeVar("ResultT")  # of a partition; results of two partitions are added


@dataclass(frozen=True)
class Job(ABC, Generic[ResultT]):
    """What to compute from a table, in public constants."""

    contract: Contract  # the declared columns
    # maximal number of threads; None for as many as are useful
    threads: int | None = field(default=None, kw_only=True)
    # the metric in which rows are measured, if it is not that of scaled rows
    metric: Metric | None = field(default=None, kw_only=True)

    @property
    def passes(self) -> int:
        """Number of passes over the table: all but the last one are of `measure`."""
        return 1

    def measure(
        self, source: Source, on_rows: OnRows = ignore_progress, persons: Persons | None = None
    ) -> Persons:
        """A pass before the last; the next one needs its total over all partitions.

        Parameters
        ----------
        persons
            The total of the pass before it; None in the first pass.
        """
        return Persons()

    @abstractmethod
    def run(
        self, source: Source, persons: Persons | None = None, on_rows: OnRows = ignore_progress
    ) -> ResultT:
        """The only or the last pass, over a table or a partition."""


def run_locally(
    source: Source, job: Job[ResultT], on_rows: OnRows, kept: KeptCells | None = None
) -> ResultT:
    """Do a job in this process, with the cells that an earlier job has kept."""
    source = replace(source, kept=kept)
    persons = None
    for _ in range(job.passes - 1):
        persons = job.measure(source, on_rows, persons)
    return job.run(source, persons, on_rows)


def worker_count(job: Job[Any], columns: int) -> int:
    """Number of threads of a pass over so many columns: one for a table of one batch."""
    several = job.contract.rows * columns > batches.BATCH_CELLS
    return (job.threads or thread_count()) if several else 1


def read_to_workers(
    job: Job[Any],
    source: Source,
    workers: list[WorkerT],
    on_rows: OnRows,
    *,
    persons: IndexedPersons | None = None,
    keep_malformed: bool = False,
    draw: Callable[[int], Any] | None = None,
    by: tuple[str, Any] | None = None,
) -> tuple[int, MalformedLines]:
    """Pass all batches of a table to workers.

    Parameters
    ----------
    persons
        Index of persons, if they are protected. Indices are then the first row of a batch.
    draw
        Draws randomness for a number of rows, which the worker receives after the batch. Without
        it, workers receive the step of each row, from 0, if the contract's period has steps.
    by
        The name and the coding of a column that is not in the contract, and becomes the last row of
        a batch.

    Returns
    -------
    rows
        Number of rows, without malformed lines that were dropped. Where dates decide the period,
        only the rows of the contract's period are passed on and counted.
    """
    contract, malformed, rows_read = job.contract, MalformedLines(), 0
    columns = contract.codings
    if contract.person_column is not None:
        columns = {contract.person_column: persons, **columns}
    if by is not None:
        columns |= dict([by])
    period = PeriodFilter.of(contract)
    if period is not None:  # a malformed line has no date but that of its file
        columns, keep_malformed = dict([period]) | columns, True
    limit = contract.rows + EXCESS_ROWS if contract.checks_rows else math.inf
    with worker_pool(workers) as add_batch:
        read = cell_batches(
            source,
            columns,
            malformed,
            keep_malformed=keep_malformed,
            missing_codes=contract.missing_codes,
        )
        if source.kept is not None and persons is None:  # whose indices depend on the pass
            form = (list(columns.items()), keep_malformed)
            read = source.kept.batches(form, malformed, read)
        for cells in read:
            batch, part = cells, list[Any]()
            if period is not None:
                within = cells[0] > 0
                batch = cells[1:, within]
                part = [cells[0, within].astype(np.int64) - 1] if period[1].starts else []
            rows = batch.shape[1]
            add_batch(batch, *(part if draw is None else [draw(rows)]))
            rows_read += rows
            on_rows(rows)
            if rows_read + malformed.dropped > limit:  # the table may be endless
                break
    in_cells = period is not None and period[0] != FILES.column
    return rows_read, MalformedLines() if in_cells else malformed
