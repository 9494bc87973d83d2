"""Exact sums of the rows of a further matrix, in passes of their own over the table.

These are what clipping takes away from rows, or rows with the indicators of their missing cells. A
further row is an integer row of the unit ball, as in the released matrix: sums are as exact, and
one row changes them by as much. The further rows of a person follow from the person's factor in
the released matrix; they are then scaled together, as they are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.common.machine import compiled
from gramercy.common.metric import Metric
from gramercy.schemas import wordings
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Clip, FurtherRows
from gramercy.tables.batches import WorkerT
from gramercy.tables.formats.source import Source
from gramercy.tables.persons.name_table import Names
from gramercy.tables.persons.person_index import Persons, scale_rows
from gramercy.tables.sums.exact_sums import ONE_PART, WIDE, Parts, Sum, SummingWorker
from gramercy.tables.sums.passes import (
    Job,
    OnRows,
    ignore_progress,
    read_to_workers,
    run_locally,
    worker_count,
)
from gramercy.tables.sums.row_transform import Repairs, RowTransform
from gramercy.tables.sums.streaming import Engine, GramJob

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class FurtherSums:
    """The sums of further rows of one partition, or of a table. Private."""

    part_sums: tuple[Sum, ...]  # of each group; `rows` counts those that are not zero
    # the sum of squares of each person's scaled further rows
    contributions: Persons = field(default_factory=Persons)

    def __add__(self, other: FurtherSums) -> FurtherSums:
        pairs = zip(self.part_sums, other.part_sums, strict=True)
        return FurtherSums(
            tuple(first + second for first, second in pairs),
            self.contributions + other.contributions,
        )


class FurtherPersons(Persons):
    """Persons with the sum of squares of their further rows. Private.

    Parameters
    ----------
    known
        Names of all persons.
    row_factors
        The factor of each person's rows in the released matrix, shape (persons,).
    large
        See `IndexedPersons`.
    """

    def __init__(self, known: Names, row_factors: Array, *, large: bool) -> None:
        super().__init__(known, closed=True, large=large)
        self.row_factors = row_factors

    def __add__(self, other: Persons) -> FurtherPersons:
        """The same persons with the rows of both."""
        both = FurtherPersons(self.known, self.row_factors, large=self.large)
        both._take(self)
        both._take(other)
        return both


@dataclass(frozen=True)
class FurtherJob(Job[FurtherSums]):
    """Sum the Gram matrix of further rows; of persons, after two passes that measure their rows."""

    further: FurtherRows
    # lattice, row_lattice: of the further rows, and of the rows of the released matrix
    lattice: Lattice
    row_lattice: Lattice
    groups: Parts = ONE_PART  # the groups of rows; there are no folds
    # Whether a malformed line becomes a row of missing cells; as in the pass for the released
    # matrix, whose cells are then still in memory.
    keep_malformed: bool = False

    @property
    def passes(self) -> int:
        return 1 if self.contract.person_column is None else 3

    def measure(
        self, source: Source, on_rows: OnRows = ignore_progress, persons: Persons | None = None
    ) -> Persons:
        """Each person's sum of squares: of rows of the released matrix, then of further rows."""
        if persons is None:
            clip = Clip(radius=self.further.radius)
            rows = GramJob(
                self.contract,
                clip,
                self.row_lattice,
                self.keep_malformed,
                threads=self.threads,
                metric=self.metric,
            )
            return rows.measure(source, on_rows)
        factors = persons.factors(self.row_lattice)
        further = FurtherPersons(persons.known, factors, large=persons.large)
        self._read(source, on_rows, lambda rows: FurtherMeasuringWorker(rows, further), further)
        return further

    def run(
        self, source: Source, persons: Persons | None = None, on_rows: OnRows = ignore_progress
    ) -> FurtherSums:
        contributions, workers = Persons(), list[SummingWorker]()
        if isinstance(persons, FurtherPersons):
            contributions = Persons(persons.known, closed=True, large=persons.large)
            factors = persons.factors(self.lattice)
            workers += self._read(
                source,
                on_rows,
                lambda rows: FurtherScalingWorker(
                    rows, self.groups, persons.row_factors, factors, contributions
                ),
                contributions,
                grouped=True,
            )
        else:
            workers += self._read(
                source, on_rows, lambda rows: FurtherWorker(rows, self.groups), grouped=True
            )
        sums = zip(*(worker.sums() for worker in workers), strict=True)
        return FurtherSums(tuple(reduce(add, each) for each in sums), contributions)

    def _read(
        self,
        source: Source,
        on_rows: OnRows,
        new_worker: Callable[[RowTransform], WorkerT],
        persons: Persons | None = None,
        *,
        grouped: bool = False,
    ) -> list[WorkerT]:
        transform = RowTransform.of(self.contract, self.further, self.lattice, self.metric)
        threads = 1 if self.lattice.p >= WIDE else worker_count(self, self.lattice.p)
        workers = [new_worker(transform) for _ in range(threads)]
        read_to_workers(
            self,
            source,
            workers,
            on_rows,
            persons=persons,
            keep_malformed=self.keep_malformed,
            by=self.groups.column if grouped else None,
        )
        return workers


class FurtherWorker(SummingWorker):
    """Sums the further rows that one thread receives; zeros are left out."""

    def _integers(self, cells: Array) -> Array:
        q = super()._integers(cells)
        return q[:, q.any(axis=0)]


class FurtherMeasuringWorker:
    """Adds the squares of further rows that one thread receives to those of their persons.

    Parameters
    ----------
    transform
        Turns cells into integer further rows.
    persons
        Index to which the squares are added.
    """

    def __init__(self, transform: RowTransform, persons: FurtherPersons) -> None:
        self._transform, self._persons = transform, persons
        self._factors = np.append(persons.row_factors, 1.0)
        self._repairs = Repairs.zeros(len(transform.columns))  # the pass for the matrix has counted

    def add(self, cells: Array) -> None:
        """Add rows; `cells` are the indices of persons, then cells; shape (1 + columns, rows)."""
        own = self._factors[places(cells[0], self._factors)]
        self._persons.add(cells[0], self._transform.squares(cells[1:], self._repairs, own))


class FurtherScalingWorker(SummingWorker):
    """Sums the further rows of persons that one thread receives.

    Parameters
    ----------
    transform
        Turns cells into integer further rows.
    parts
        The groups of rows.
    row_factors
        The factor of each person's rows in the released matrix.
    factors
        The factor of each person's further rows.
    contributions
        Index to which the squares of scaled further rows are added, for verification.
    """

    def __init__(
        self,
        transform: RowTransform,
        parts: Parts,
        row_factors: Array,
        factors: Array,
        contributions: Persons,
    ) -> None:
        super().__init__(transform, parts)
        # A row without a person is left out: its last factor is zero.
        self._row_factors, self._factors = np.append(row_factors, 1.0), np.append(factors, 0.0)
        self._contributions = contributions

    def _integers(self, cells: Array) -> Array:
        indices = cells[0]
        own = places(indices, self._factors)
        q = self._transform.integers(cells[1:], self.repairs, self._row_factors[own])
        if self._contributions.large:
            squares = compiled(scale_rows)(q, indices, self._factors)
        else:
            q = np.rint(q * self._factors[own])
            squares = (q * q).sum(axis=0)
        self._contributions.add(indices, squares)
        return q[:, squares > 0]


def places(indices: Array, factors: Array) -> NDArray[np.int64]:
    """The place of each row's person among factors; the last one for a row without a person."""
    return np.where(np.isnan(indices), len(factors) - 1, indices).astype(np.int64)


def sum_further_rows(
    source: Source,
    contract: Contract,
    further: FurtherRows,
    lattice: Lattice,
    row_lattice: Lattice,
    on_rows: OnRows = ignore_progress,
    *,
    groups: Parts = ONE_PART,
    keep_malformed: bool = False,
    metric: Metric | None = None,
    engine: Engine = run_locally,
) -> tuple[Sum, ...]:
    """Sum q q^T over the integer further rows of every group of a table; see `FurtherJob`."""
    job = FurtherJob(contract, further, lattice, row_lattice, groups, keep_malformed, metric=metric)
    sums = engine(source, job, on_rows)
    if not sums.contributions.are_in_ball(lattice):
        raise wordings.table_changed()
    return sums.part_sums
