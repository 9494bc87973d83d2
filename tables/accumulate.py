"""One streaming pass over a private table: read, repair, normalise, integers, exact Gram."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.contract import Contract
from schemas.errors import TableError
from schemas.lattice import Lattice
from schemas.request import Clip, Unit, Whole
from tables.folds import Assign
from tables.persons import Measuring, Persons, Scaling, changed
from tables.read import Malformed, Source, cells
from tables.recipe import Recipe
from tables.repair import Repairs
from tables.sums import Sum, Summing
from tables.threads import SideBySide, available

_BEYOND = 1_000_000  # rows more than there should be, at which reading stops


@dataclass(frozen=True, repr=False)
class Accumulated:
    """What one pass leaves behind. Private: handed from step to step in memory, and only there.

    Parameters
    ----------
    parts
        One sum, or those of disjoint parts of the rows.
    repairs, malformed, read, nobodys
        For the steward: cells mended by column, CSV lines taken as rows with nothing in them, rows
        of the table, and those that were left out because they are nobody's.
    """

    parts: tuple[Sum, ...]
    repairs: Repairs
    malformed: int
    read: int
    nobodys: int = 0

    @property
    def rows(self) -> int:
        """Exact number of all rows; of persons, where they are protected."""
        return sum(part.rows for part in self.parts)

    @property
    def gram(self) -> NDArray[Any] | None:
        """Exact Gram matrix of all rows; see `Sum`."""
        return reduce(add, self.parts).gram


def accumulate(
    source: Source,
    contract: Contract,
    how: Unit | Clip | Whole,
    lattice: Lattice,
    on_rows: Callable[[int], None] = lambda rows: None,
    *,
    in_place: bool = False,
    folds: int = 1,
    assign: Assign | None = None,
) -> Accumulated:
    """Sum q q^T over the integer rows of a table.

    Parameters
    ----------
    source
        Where the raw rows lie.
    contract
        Columns and, under ``replace-one``, the public number of rows or persons.
    how
        Normalisation.
    lattice
        Lattice of the integer rows.
    on_rows
        Called with the number of rows of each batch.
    in_place
        See `integer_batches`.
    folds, assign
        How many disjoint parts to sum, and which rows belong to each; see `tables.folds`.

    Raises
    ------
    TableError
        If the table cannot be read, or does not have the public number of rows or persons; or if
        it is text and cells are protected.
    """
    if contract.protects == "cell" and "csv" in source.formats:
        raise TableError(
            f"{contract.source}: is CSV, where one broken cell breaks the whole line.",
            "Under 'unit: cell' write the table as Parquet.",
        )
    recipe = Recipe.of(contract, how, lattice)
    reading = _Pass(source, contract, on_rows, in_place or folds > 1)
    if contract.owner is not None:
        total = _by_person(reading, contract.owner, recipe)
    else:
        total = _by_row(reading, recipe, folds, assign)
    if contract.neighbours == "replace-one" and total.rows != contract.count:
        more = " or more" if total.rows > contract.count + _BEYOND else ""
        raise TableError(
            f"{contract.source}: has {total.rows} {contract.counted}{more}, and the contract's "
            f"'{contract.counted}' is {contract.count}.",
            "Under replace-one their number is public: correct it"
            + (" (blank lines count)" if contract.owner is None else "")
            + ", or declare add-remove.",
        )
    return total


@dataclass
class _Pass:
    """Readings of one table.

    Parameters
    ----------
    source, contract, on_rows, in_place
        See `accumulate`.
    """

    source: Source
    contract: Contract
    on_rows: Callable[[int], None]
    in_place: bool

    def over(
        self, add_to: Callable[[NDArray[np.float64]], None], owners: Mapping[str, Persons]
    ) -> Malformed:
        """Hand all batches on, the owners' places first; how many lines were none."""
        contract, malformed, seen = self.contract, Malformed(), 0
        columns = {**owners, **{name: contract.levels(name) for name in contract.names}}
        most = contract.rows + _BEYOND if contract.checks_rows else math.inf
        for batch in cells(self.source, columns, malformed, in_place=self.in_place):
            add_to(batch)
            seen += batch.shape[1]
            self.on_rows(batch.shape[1])
            if seen + malformed.rows > most:  # it may never end
                break
        return malformed


def _by_row(reading: _Pass, recipe: Recipe, folds: int, assign: Assign | None) -> Accumulated:
    with SideBySide(lambda: Summing(recipe, folds), _threads(recipe)) as summing:

        def add_to(batch: NDArray[np.float64]) -> None:
            summing.add(batch, assign(batch.shape[1]) if assign else None)

        malformed = reading.over(add_to, {})
    first, *others = (
        reduce(add, same) for same in zip(*(each.sums() for each in summing.workers), strict=True)
    )
    # A malformed line has nothing left to read: a zero row, and it counts.
    parts = (Sum(first.gram, first.rows + malformed.rows), *others)
    rows = sum(part.rows for part in parts)
    lost = malformed.rows + malformed.in_place
    return Accumulated(parts, _repairs(summing.workers), lost, rows)


def _by_person(reading: _Pass, owner: str, recipe: Recipe) -> Accumulated:
    """In two passes; a malformed line is nobody's, and adds nothing."""
    persons = Persons()
    with SideBySide(lambda: Measuring(recipe, persons), _threads(recipe)) as measuring:
        reading.over(measuring.add, {owner: persons})
    factors = persons.factors(recipe.lattice)
    spent = Persons(persons.names, closed=True)
    with SideBySide(lambda: Scaling(recipe, factors, spent), _threads(recipe)) as scaling:
        malformed = reading.over(scaling.add, {owner: spent})
    if not spent.within(recipe.lattice):
        raise changed()
    summed = reduce(add, (each.sums()[0] for each in scaling.workers))
    lost = malformed.rows + malformed.in_place
    return Accumulated(
        (Sum(summed.gram, len(persons)),),
        _repairs(scaling.workers),
        lost,
        summed.rows + lost,
        spent.nobodys,
    )


def _threads(recipe: Recipe) -> int:
    return available() if recipe.fused else 1


def _repairs(workers: Sequence[Summing]) -> Repairs:
    return reduce(add, (each.repairs for each in workers))


def integer_batches(
    source: Source,
    contract: Contract,
    how: Unit | Clip | Whole,
    lattice: Lattice,
    repairs: Repairs,
    malformed: Malformed,
    *,
    in_place: bool = False,
) -> Iterator[NDArray[np.float64]]:
    """Batches of integer rows, shape (p, rows), in the order of the table.

    Parameters
    ----------
    source, contract, how, lattice
        See `accumulate`.
    repairs, malformed
        Counts, added to in place.
    in_place
        Whether a malformed line of a CSV stands where it stood, as a row of missing cells, instead
        of being counted alone: where rows are published, none may move another.
    """
    recipe = Recipe.of(contract, how, lattice)
    levels = {name: contract.levels(name) for name in contract.names}
    for batch in cells(source, levels, malformed, in_place=in_place):
        yield recipe.integers(batch, repairs)
