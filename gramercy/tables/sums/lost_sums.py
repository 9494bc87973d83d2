"""Exact sums of what clipping takes away from rows, in one more pass over the table.

A row that loses something becomes an integer row of the same ball as in the matrix itself, so that
its sums are as exact, and one row changes them by as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Lost
from gramercy.tables.formats.source import Source
from gramercy.tables.persons.person_index import Persons
from gramercy.tables.sums.exact_sums import ONE_PART, WIDE, Parts, Sum, SummingWorker
from gramercy.tables.sums.passes import (
    Job,
    OnRows,
    ignore_progress,
    read_to_workers,
    run_locally,
    worker_count,
)
from gramercy.tables.sums.row_transform import RowTransform
from gramercy.tables.sums.streaming import Engine

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class LostSums:
    """The sums of lost rows of one partition, or of a table. Private."""

    part_sums: tuple[Sum, ...]  # of each group; `rows` counts those that lose something

    def __add__(self, other: LostSums) -> LostSums:
        pairs = zip(self.part_sums, other.part_sums, strict=True)
        return LostSums(tuple(first + second for first, second in pairs))


@dataclass(frozen=True)
class LostJob(Job[LostSums]):
    """Sum the Gram matrix of lost rows."""

    lost: Lost
    lattice: Lattice  # of the integer rows
    groups: Parts = ONE_PART  # the groups of rows; there are no folds
    # Whether a malformed line becomes a row of missing cells; as in the pass for the matrix, whose
    # cells are then still in memory.
    keep_malformed: bool = False

    def run(
        self, source: Source, persons: Persons | None = None, on_rows: OnRows = ignore_progress
    ) -> LostSums:
        transform = RowTransform.of(self.contract, self.lost, self.lattice)
        threads = 1 if self.lattice.p >= WIDE else worker_count(self, self.lattice.p)
        workers = [LostWorker(transform, self.groups) for _ in range(threads)]
        read_to_workers(
            self,
            source,
            workers,
            on_rows,
            keep_malformed=self.keep_malformed,
            by=self.groups.by,
        )
        sums = zip(*(worker.sums() for worker in workers), strict=True)
        return LostSums(tuple(reduce(add, each) for each in sums))


class LostWorker(SummingWorker):
    """Sums the lost rows that one thread receives; most rows lose nothing, and are left out."""

    def _integers(self, cells: Array) -> Array:
        q = super()._integers(cells)
        return q[:, q.any(axis=0)]


def sum_lost_rows(
    source: Source,
    contract: Contract,
    lost: Lost,
    lattice: Lattice,
    on_rows: OnRows = ignore_progress,
    *,
    groups: Parts = ONE_PART,
    keep_malformed: bool = False,
    engine: Engine = run_locally,
) -> tuple[Sum, ...]:
    """Sum q q^T over the integer lost rows of every group of a table."""
    job = LostJob(contract, lost, lattice, groups, keep_malformed)
    return engine(source, job, on_rows).part_sums
