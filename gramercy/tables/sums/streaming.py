"""Stream a private table into exact sums: read, repair, normalise, round, add."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from pathlib import PurePosixPath
from typing import Any, Protocol
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.common.machine import compiled
from gramercy.common.metric import Metric
from gramercy.schemas import families, wordings
from gramercy.schemas.contract import Contract
from gramercy.schemas.derived import Derivation
from gramercy.schemas.errors import TableError
from gramercy.schemas.normalisation import Clip, Unit, Whole
from gramercy.schemas.source import display_name
from gramercy.tables.batches import EXCESS_ROWS, MalformedLines, WorkerT
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import Source
from gramercy.tables.persons.person_index import DrawKeys, Keys, Persons, PersonSample, scale_rows
from gramercy.tables.sums.exact_sums import ONE_PART, WIDE, AssignFolds, Parts, Sum, SummingWorker
from gramercy.tables.sums.passes import (
    Job,
    OnRows,
    ResultT,
    ignore_progress,
    read_to_workers,
    run_locally,
    worker_count,
)
from gramercy.tables.sums.row_transform import Repairs, RowTransform, is_large

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class PartialSums:
    """The sums of one partition of the table. Private."""

    part_sums: tuple[Sum, ...]  # the sum of each part of the rows, without dropped malformed lines
    # repairs, malformed: counts of repaired cells and of malformed lines
    repairs: Repairs
    malformed: MalformedLines
    # for person-level privacy: the sum of squares of each person's scaled rows, and the number of
    # rows without a person
    contributions: Persons = field(default_factory=Persons)
    sample: PersonSample | None = None  # for groups of persons: the group of one row of each person

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
    """Sum the Gram matrix; of persons, after a pass that measures their rows."""

    # normalisation, lattice: the normalisation, and the lattice of the integer rows
    normalisation: Unit | Clip | Whole
    lattice: Lattice
    # whether a malformed line of a CSV file becomes a row of missing cells
    keep_malformed: bool = False
    # parts, assign: the parts of the rows, and the function that draws the fold of each row
    parts: Parts = ONE_PART
    assign: AssignFolds | None = None
    # draws the random keys that choose the row by which a person counts in a group
    draw_keys: DrawKeys | None = None

    @property
    def passes(self) -> int:
        return 1 if self.contract.person_column is None else 2

    def measure(
        self, source: Source, on_rows: OnRows = ignore_progress, persons: Persons | None = None
    ) -> Persons:
        """Each person's number of rows and sum of squares."""
        measured = Persons(large=is_large(self.contract.rows, self.lattice.p))
        self._read(
            source, on_rows, lambda transform: MeasuringWorker(transform, measured), measured
        )
        return measured

    def run(
        self, source: Source, persons: Persons | None = None, on_rows: OnRows = ignore_progress
    ) -> PartialSums:
        by = self.parts.column
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
        by: tuple[str, Any] | None = None,
    ) -> tuple[MalformedLines, list[WorkerT]]:
        transform = RowTransform.of(self.contract, self.normalisation, self.lattice, self.metric)
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


class MeasuringWorker:
    """The first pass, over the rows that one thread receives: adds their squares to persons."""

    def __init__(self, transform: RowTransform, persons: Persons) -> None:
        self._transform, self._persons = transform, persons
        self._repairs = Repairs.zeros(len(transform.columns))  # the second pass counts repairs

    def add(self, cells: Array) -> None:
        """Add rows; `cells` are the indices of persons, then cells; shape (1 + columns, rows)."""
        self._persons.add(cells[0], self._transform.squares(cells[1:], self._repairs))


class ScalingWorker(SummingWorker):
    """The second pass, over the rows that one thread receives.

    Parameters
    ----------
    transform
        Turns cells into integer rows.
    parts
        The groups of rows, which are summed separately; there are no folds of persons.
    factors
        Factor of every person; see `Persons.factors`. It is that of all rows of a person, in
        whichever group.
    contributions
        Index to which the squares of scaled rows are added, for verification.
    sample
        Index of persons that keeps the group of one row of each, if rows are grouped.
    """

    def __init__(
        self,
        transform: RowTransform,
        parts: Parts,
        factors: Array,
        contributions: Persons,
        sample: PersonSample | None = None,
    ) -> None:
        super().__init__(transform, parts)
        self._factors, self._contributions = np.append(factors, 0.0), contributions
        self._sample = sample

    def add(self, cells: Array, keys: Keys | None = None) -> None:  # type: ignore[override]
        """Add rows.

        Parameters
        ----------
        cells
            The indices of persons, then cells, and last the levels of groups if there are any;
            shape (columns, rows).
        """
        if self._sample is not None and keys is not None:
            groups = self._parts.group_numbers(cells[-1])
            self._sample.add(cells[0], groups[None].astype(np.uint16), keys)
        super().add(cells)

    def _integers(self, cells: Array) -> Array:
        q, indices = super()._integers(cells[1:]), cells[0]
        if self._contributions.large:
            self._contributions.add(indices, compiled(scale_rows)(q, indices, self._factors))
            return q
        own = np.where(np.isnan(indices), len(self._factors) - 1, indices).astype(np.int64)
        scaled: Array = np.rint(q * self._factors[own])
        self._contributions.add(indices, (scaled * scaled).sum(axis=0))
        return scaled


class Engine(Protocol):
    """Does a job over a table: in this process, or on a cluster (`tables.sums.cluster`)."""

    def __call__(self, source: Source, job: Job[ResultT], on_rows: OnRows) -> ResultT: ...


@dataclass(frozen=True, repr=False)
class Accumulated:
    """The exact sums of a table. Private: passed between steps in memory, and never stored."""

    part_sums: tuple[Sum, ...]  # the sum of each part of the rows; see `tables.sums.exact_sums`
    # numbers of repaired cells, without those of malformed lines; for the steward, as are the
    # following counts
    repairs: Repairs
    malformed: int  # number of malformed CSV lines, which count as rows without values
    rows_read: int  # number of rows of the table
    # number of rows that were left out because they belong to no person, without malformed lines
    rows_without_person: int = 0

    @property
    def rows(self) -> int:
        """Exact number of rows in the sums; under person-level privacy, of persons."""
        return sum(part.rows for part in self.part_sums)

    @property
    def gram(self) -> NDArray[Any] | None:
        """Exact Gram matrix of all rows; see `Sum`."""
        return reduce(add, self.part_sums).gram


def accumulate(
    source: Source,
    contract: Contract,
    normalisation: Unit | Clip | Whole,
    lattice: Lattice,
    on_rows: OnRows = ignore_progress,
    *,
    in_order: bool = False,
    keep_malformed: bool = False,
    parts: Parts = ONE_PART,
    assign: AssignFolds | None = None,
    draw_keys: DrawKeys | None = None,
    metric: Metric | None = None,
    engine: Engine = run_locally,
) -> Accumulated:
    """Sum q q^T over the integer rows of a table.

    Parameters
    ----------
    in_order
        Whether rows are published in their order, which no cell may decide.
    keep_malformed
        See `GramJob`; rows in order and parts of rows need it.
    """
    if contract.protected_unit == "cell" and not source.keeps_cells_apart:
        raise families.SOURCE(
            "{source}: cell-level privacy ('privacy_unit: cell') needs Parquet, and this is CSV.",
            "Write the table as Parquet.",
            source=display_name(contract.source),
        )
    if in_order:
        _check_row_order(source, contract)
    keep_malformed = keep_malformed or in_order or parts.count > 1
    job = GramJob(
        contract, normalisation, lattice, keep_malformed, parts, assign, draw_keys, metric=metric
    )
    sums = engine(source, job, on_rows)
    if contract.person_column is None:
        # A dropped malformed line counts as a zero row.
        first, *others = sums.part_sums
        dropped, kept = sums.malformed.dropped, sums.malformed.kept
        all_parts = (Sum(first.gram, first.rows + dropped), *others)
        total = Accumulated(all_parts, sums.repairs, dropped + kept, sums.rows + dropped)
    else:
        total = _total_of_persons(sums, lattice)
    check_row_count(contract, total.rows)
    return _without_placeholders(total, sums.malformed.kept, source, contract)


def _check_row_order(source: Source, contract: Contract) -> None:
    """Refuse tables in which a cell decides the file, and so the position, of its row.

    Only names of columns and folders are compared. A folder that the contract itself names is the
    same for all rows.
    """
    in_contract = PurePosixPath(source.url).parts
    folders = {part for file in source.files for part in PurePosixPath(file.path).parts[:-1]}
    partitions = (part for part in folders.difference(in_contract) if "=" in part)
    keys = {unquote(part.partition("=")[0]).casefold() for part in partitions}
    for name in contract.names:
        if name.casefold() in keys:
            raise families.TABLE_COLUMNS(
                "column '{column}': the folders of the table are named after its values "
                "('{column}=...').",
                "Remove the column from the contract, write the table as one file, or publish a "
                "second moment.",
                column=name,
            )


def _total_of_persons(sums: PartialSums, lattice: Lattice) -> Accumulated:
    """The total over persons. A malformed line belongs to no person, and adds nothing."""
    persons = sums.contributions
    if not persons.are_in_ball(lattice):
        raise wordings.table_changed()
    counts = [len(persons)] if sums.sample is None else sums.sample.histograms()[0].tolist()
    parts = zip(sums.part_sums, counts, strict=True)
    malformed = sums.malformed.dropped + sums.malformed.kept
    return Accumulated(
        tuple(Sum(part.gram, count) for part, count in parts),
        sums.repairs,
        malformed,
        sums.rows + sums.malformed.dropped,
        persons.rows_without_person,
    )


def _without_placeholders(
    total: Accumulated, kept: int, source: Source, contract: Contract
) -> Accumulated:
    """The total without the missing cells and persons of malformed lines that were kept.

    These rows have no cells, except in the columns that the folders of a file state.
    """
    in_folders = {name for file in source.files for name in file.partition_values}

    def placeholders(column: str | None) -> int:
        return 0 if column is None or column in in_folders else kept

    def of_column(name: str, coding: Any) -> int:
        if not isinstance(coding, Derivation):
            return placeholders(name)
        return max(placeholders(x.name) for x in coding.inputs) if coding.needs_cells else 0

    added = np.array([of_column(*each) for each in contract.codings.items()], np.int64)
    return replace(
        total,
        repairs=replace(total.repairs, filled=total.repairs.filled - added),
        rows_without_person=total.rows_without_person - placeholders(contract.person_column),
    )


def check_row_count(contract: Contract, rows: int) -> None:
    """Refuse a table whose number of rows is not the public one.

    The number of persons is not checked: a single misspelled name would decide on the refusal.
    """
    if (problem := row_count_problem(contract, rows)) is not None:
        raise problem


def row_count_problem(contract: Contract, rows: int) -> TableError | None:
    """The error for a table whose number of rows is not the public one.

    It says no more than this number, also not how many lines are malformed: that depends on cells.
    """
    if not contract.checks_rows or rows == contract.rows:
        return None
    source, limit = display_name(contract.source), contract.rows + EXCESS_ROWS
    if rows > limit:
        return wordings.row_limit_exceeded(source, limit, contract.rows)
    wording = wordings.row_count_differs if rows else wordings.no_rows
    return wording(source, rows, contract.rows)


def integer_batches(
    source: Source,
    contract: Contract,
    normalisation: Unit | Clip | Whole,
    lattice: Lattice,
    repairs: Repairs,
    malformed: MalformedLines,
    *,
    keep_malformed: bool = False,
) -> Iterator[NDArray[np.float64]]:
    """Batches of integer rows, shape (p, rows), in the order of the table.

    Parameters
    ----------
    keep_malformed
        Whether a malformed line of a CSV file becomes a row of missing cells. Required where rows
        are published, because dropping a row would move others.
    """
    transform = RowTransform.of(contract, normalisation, lattice)
    for batch in cell_batches(
        source,
        contract.codings,
        malformed,
        keep_malformed=keep_malformed,
        missing_codes=contract.missing_codes,
    ):
        yield transform.integers(batch, repairs)
