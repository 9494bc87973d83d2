"""One streaming pass over a private table: read, repair, normalise, integers, exact Gram."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import TableError
from gramercy.schemas.normalisation import Clip, Unit, Whole
from gramercy.schemas.url import without_secrets
from gramercy.tables.csv_reader import Malformed
from gramercy.tables.folds import Assign
from gramercy.tables.passes import BEYOND, Job, OnRows, Partial, here, silent
from gramercy.tables.persons import changed
from gramercy.tables.read import cells
from gramercy.tables.recipe import Recipe
from gramercy.tables.repair import Repairs
from gramercy.tables.source import Source
from gramercy.tables.sums import Sum

Engine = Callable[[Source, Job, OnRows], Partial]


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
    on_rows: OnRows = silent,
    *,
    in_place: bool = False,
    folds: int = 1,
    assign: Assign | None = None,
    engine: Engine = here,
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
    engine
        Who reads and sums: this process, or the workers of `tables.cluster`.

    Raises
    ------
    TableError
        If the table cannot be read, or does not have the public number of rows; if it is text and
        cells are protected; or if rows are published and a declared column names the folders.
    """
    if contract.protects == "cell" and "csv" in source.formats:
        raise TableError(
            f"{without_secrets(contract.source)}: is CSV, where one broken cell breaks the "
            "whole line.",
            "Under 'unit: cell' write the table as Parquet.",
        )
    if in_place:
        _refuse_moving_rows(source, contract)
    job = Job(contract, how, lattice, in_place or folds > 1, folds, assign)
    done = engine(source, job, on_rows)
    return _checked(contract, _of_persons(done, lattice) if contract.owner else _of_rows(done))


def _refuse_moving_rows(source: Source, contract: Contract) -> None:
    """Refuse tables in which a cell decides in which file, and so at which place, its row is.

    Only names of columns and folders are looked at. A folder that the contract itself names is the
    same for all rows.
    """
    named = PurePosixPath(source.url).parts
    folders = {part for file in source.files for part in PurePosixPath(file.path).parts[:-1]}
    keys = {unquote(part.partition("=")[0]) for part in folders.difference(named) if "=" in part}
    known = {key.casefold() for key in keys}
    for name in contract.names:
        if name.casefold() in known:
            raise TableError(
                f"column '{name}': the folders of the table are named after its values "
                f"('{name}=...'). Published rows are in the order of the files, so that a change "
                "of this cell in one row would move other rows.",
                "Leave the column out of the contract, write the table as one file, or publish a "
                "second moment.",
            )


def _of_rows(done: Partial) -> Accumulated:
    """A malformed line has nothing left to read: a zero row, and it counts."""
    first, *others = done.parts
    parts = (Sum(first.gram, first.rows + done.malformed.rows), *others)
    lost = done.malformed.rows + done.malformed.in_place
    return Accumulated(parts, done.repairs, lost, done.rows + done.malformed.rows)


def _of_persons(done: Partial, lattice: Lattice) -> Accumulated:
    """A malformed line is nobody's, and adds nothing."""
    if not done.spent.within(lattice):
        raise changed()
    (sums,) = done.parts
    lost = done.malformed.rows + done.malformed.in_place
    parts = (Sum(sums.gram, len(done.spent)),)
    return Accumulated(parts, done.repairs, lost, done.rows + lost, done.spent.nobodys)


def _checked(contract: Contract, total: Accumulated) -> Accumulated:
    """It, if there are as many rows as the public was told.

    Persons are not counted here: one name that is misspelled or unreadable would decide.
    """
    if contract.checks_rows and total.rows != contract.rows:
        most = contract.rows + BEYOND
        found = f"more than {most}" if total.rows > most else str(total.rows)
        raise TableError(
            f"{without_secrets(contract.source)}: has {found} rows, and the contract's 'rows' is "
            f"{contract.rows}.",
            "Under replace-one their number is public: correct it (blank lines count), or declare "
            "add-remove.",
        )
    return total


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
