"""The passes that sum the Gram matrix of integer rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

from gramercy.common.lattice import Lattice
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.normalisation import Clip, Unit, Whole
from gramercy.tables.formats.csv_reader import MalformedLines
from gramercy.tables.formats.source import Source
from gramercy.tables.persons.person_sample import DrawKeys, PersonSample
from gramercy.tables.persons.persons import MeasuringWorker, Persons, ScalingWorker
from gramercy.tables.sums.gram import WIDE
from gramercy.tables.sums.parts import ONE_PART, AssignFolds, Parts
from gramercy.tables.sums.passes import (
    Job,
    OnRows,
    ignore_progress,
    read_to_workers,
    worker_count,
)
from gramercy.tables.sums.repair import Repairs
from gramercy.tables.sums.row_transform import RowTransform, is_large
from gramercy.tables.sums.sums import Sum, SummingWorker
from gramercy.tables.sums.threads import WorkerT


@dataclass(frozen=True, repr=False)
class PartialSums:
    """The sums of one partition of the table. Private.

    Parameters
    ----------
    part_sums
        The sum of each part of the rows, without dropped malformed lines.
    repairs, malformed
        Counts of repaired cells and of malformed lines.
    contributions
        For person-level privacy: the sum of squares of each person's scaled rows, and the number
        of rows without a person.
    sample
        For groups of persons: the group of one row of each person.
    """

    part_sums: tuple[Sum, ...]
    repairs: Repairs
    malformed: MalformedLines
    contributions: Persons = field(default_factory=Persons)
    sample: PersonSample | None = None

    @property
    def rows(self) -> int:
        """Rows in all parts."""
        return sum(part.rows for part in self.part_sums)

    def __add__(self, other: PartialSums) -> PartialSums:
        samples = [each for each in (self.sample, other.sample) if each is not None]
        return PartialSums(
            tuple(a + b for a, b in zip(self.part_sums, other.part_sums, strict=True)),
            self.repairs + other.repairs,
            self.malformed + other.malformed,
            self.contributions + other.contributions,
            reduce(add, samples) if samples else None,
        )


@dataclass(frozen=True)
class GramJob(Job[PartialSums]):
    """Sum the Gram matrix; of persons, after a pass that measures their rows.

    Parameters
    ----------
    normalisation, lattice
        The normalisation, and the lattice of the integer rows.
    keep_malformed
        Whether a malformed line of a CSV file becomes a row of missing cells.
    parts, assign
        The parts of the rows, and the function that draws the fold of each row.
    draw_keys
        Draws the random keys that choose the row by which a person counts in a group.
    """

    normalisation: Unit | Clip | Whole
    lattice: Lattice
    keep_malformed: bool = False
    parts: Parts = ONE_PART
    assign: AssignFolds | None = None
    draw_keys: DrawKeys | None = None

    @property
    def passes(self) -> int:
        return 1 if self.contract.person_column is None else 2

    def measure(self, source: Source, on_rows: OnRows = ignore_progress) -> Persons:
        """Each person's number of rows and sum of squares."""
        persons = Persons(large=is_large(self.contract.rows, self.lattice.p))
        self._read(source, on_rows, lambda transform: MeasuringWorker(transform, persons), persons)
        return persons

    def run(
        self, source: Source, persons: Persons | None = None, on_rows: OnRows = ignore_progress
    ) -> PartialSums:
        by = self.parts.by
        contributions, workers = Persons(), list[SummingWorker]()
        sample: PersonSample | None = None
        if persons is None:
            malformed, workers = self._read(
                source,
                on_rows,
                lambda transform: SummingWorker(transform, self.parts),
                draw=self.assign,
                by=by,
            )
        else:
            contributions = Persons(persons.known, closed=True, large=persons.large)
            factors = persons.factors(self.lattice)
            if by is not None:
                sample = PersonSample(
                    [self.parts.groups], persons.known, closed=True, large=persons.large
                )
            malformed, workers = self._read(
                source,
                on_rows,
                lambda transform: ScalingWorker(
                    transform, self.parts, factors, contributions, sample
                ),
                contributions,
                draw=None if by is None else self.draw_keys,
                by=by,
            )
        return PartialSums(
            tuple(reduce(add, sums) for sums in zip(*(x.sums() for x in workers), strict=True)),
            reduce(add, (worker.repairs for worker in workers)),
            malformed,
            contributions,
            sample,
        )

    def _read(
        self,
        source: Source,
        on_rows: OnRows,
        new_worker: Callable[[RowTransform], WorkerT],
        persons: Persons | None = None,
        *,
        draw: Callable[[int], Any] | None = None,
        by: LevelsFacts | None = None,
    ) -> tuple[MalformedLines, list[WorkerT]]:
        transform = RowTransform.of(self.contract, self.normalisation, self.lattice)
        threads = 1 if self.lattice.p >= WIDE else worker_count(self, self.lattice.p)
        workers = [new_worker(transform) for _ in range(threads)]
        _, malformed = read_to_workers(
            self,
            source,
            workers,
            on_rows,
            persons=persons,
            keep_malformed=self.keep_malformed,
            draw=draw,
            by=by,
        )
        return malformed, workers
