"""One pass over a table, or over a piece of it: what a thread, a process or a worker comes to.

Everything here is made of public constants and file names when it begins, and of exact integers
when it ends, so that it does not matter where it runs, nor how a table is cut into pieces.
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
from gramercy.tables.csv_reader import Malformed
from gramercy.tables.folds import Assign
from gramercy.tables.persons import Measuring, Persons, Scaling
from gramercy.tables.read import cells
from gramercy.tables.recipe import Recipe
from gramercy.tables.repair import Repairs
from gramercy.tables.source import Source
from gramercy.tables.sums import Sum, Summing
from gramercy.tables.threads import WorkerT, available, side_by_side

BEYOND = 1_000_000  # rows more than there should be, at which reading stops

OnRows = Callable[[int], None]


def silent(rows: int) -> None:
    """For those who want to hear of no rows."""


@dataclass(frozen=True)
class Job:
    """What is to be done, from public constants.

    Parameters
    ----------
    contract, how, lattice
        Columns, normalisation, and the lattice of the integer rows.
    in_place
        Whether a malformed line of a CSV stands where it stood.
    folds, assign
        How many disjoint parts to sum, and what draws the part of each row.
    threads
        At most; None for as many as can run at once.
    """

    contract: Contract
    how: Unit | Clip | Whole
    lattice: Lattice
    in_place: bool = False
    folds: int = 1
    assign: Assign | None = None
    threads: int | None = None


@dataclass(frozen=True, repr=False)
class Partial:
    """What a piece adds up to. Private.

    Parameters
    ----------
    parts
        The sums of its folds; without a malformed line that was left out.
    repairs, malformed
        Counts.
    spent
        Of all persons of the table: what their rows came to, and how many were nobody's.
    """

    parts: tuple[Sum, ...]
    repairs: Repairs
    malformed: Malformed
    spent: Persons = field(default_factory=Persons)

    @property
    def rows(self) -> int:
        """Rows in the parts."""
        return sum(part.rows for part in self.parts)

    def __add__(self, other: Partial) -> Partial:
        """With another piece."""
        return Partial(
            tuple(one + two for one, two in zip(self.parts, other.parts, strict=True)),
            self.repairs + other.repairs,
            self.malformed + other.malformed,
            self.spent + other.spent,
        )


def here(source: Source, job: Job, on_rows: OnRows) -> Partial:
    """All of a table, by this process."""
    persons = measured(source, job, on_rows) if job.contract.owner else None
    return summed(source, job, persons, on_rows)


def measured(source: Source, job: Job, on_rows: OnRows = silent) -> Persons:
    """The first pass, where persons are protected: whose the rows are, and how long together."""
    persons = Persons()
    _run(source, job, on_rows, lambda recipe: Measuring(recipe, persons), persons)
    return persons


def summed(
    source: Source, job: Job, persons: Persons | None = None, on_rows: OnRows = silent
) -> Partial:
    """The pass that sums; `persons` are those that the first one found in all pieces."""
    spent, workers = Persons(), list[Summing]()
    if persons is None:
        malformed, workers = _run(source, job, on_rows, lambda recipe: Summing(recipe, job.folds))
    else:
        spent, factors = Persons(persons.names, closed=True), persons.factors(job.lattice)
        malformed, workers = _run(
            source, job, on_rows, lambda recipe: Scaling(recipe, factors, spent), spent
        )
    return Partial(
        tuple(reduce(add, same) for same in zip(*(x.sums() for x in workers), strict=True)),
        reduce(add, (each.repairs for each in workers)),
        malformed,
        spent,
    )


def _run(
    source: Source,
    job: Job,
    on_rows: OnRows,
    make: Callable[[Recipe], WorkerT],
    owners: Persons | None = None,
) -> tuple[Malformed, list[WorkerT]]:
    """Hand all batches on, the owners' places first."""
    contract, malformed, seen = job.contract, Malformed(), 0
    columns: dict[str, Any] = {name: contract.levels(name) for name in contract.names}
    if contract.owner is not None:
        columns = {contract.owner: owners, **columns}
    most = contract.rows + BEYOND if contract.checks_rows else math.inf
    recipe = Recipe.of(contract, job.how, job.lattice)
    threads = (job.threads or available()) if recipe.fused else 1
    workers = [make(recipe) for _ in range(threads)]
    with side_by_side(workers) as hand_on:
        for batch in cells(source, columns, malformed, in_place=job.in_place):
            rows = batch.shape[1]
            hand_on(batch, *([] if job.assign is None else [job.assign(rows)]))
            seen += rows
            on_rows(rows)
            if seen + malformed.rows > most:  # it may never end
                break
    return malformed, workers
