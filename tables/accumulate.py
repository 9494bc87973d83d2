"""One streaming pass over a private table: read, repair, normalise, integers, exact Gram."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.contract import Contract
from schemas.errors import TableError
from schemas.lattice import Lattice, WholeNumbers
from schemas.request import Clip, Unit, Whole
from tables.folds import Assign
from tables.gram import ExactGram
from tables.integers import integer_rows
from tables.normalise import normalise
from tables.read import Malformed, Source, cells
from tables.repair import Repairs, repair

_BEYOND = 1_000_000  # rows more than there should be, at which reading stops


@dataclass(frozen=True, repr=False)
class Sum:
    """Rows of a table, or of one part of it, summed. Private.

    Parameters
    ----------
    gram
        Exact Gram matrix of the integer rows, shape (p, p). None of whole numbers, whose squares
        have no bound that fits: only their rows are counted.
    rows
        Exact number of rows.
    """

    gram: NDArray[Any] | None
    rows: int


@dataclass(frozen=True, repr=False)
class Accumulated:
    """What one pass leaves behind. Private: handed from step to step in memory, and only there.

    Parameters
    ----------
    parts
        One sum, or those of disjoint parts of the rows.
    repairs, malformed
        For the steward: cells mended by column, and CSV lines taken as rows with nothing in them.
    """

    parts: tuple[Sum, ...]
    repairs: Repairs
    malformed: int

    @property
    def rows(self) -> int:
        """Exact number of all rows."""
        return sum(part.rows for part in self.parts)

    @property
    def gram(self) -> NDArray[Any] | None:
        """Exact Gram matrix of all rows; see `Sum`."""
        total: NDArray[Any] | None = None
        for part in self.parts:
            if part.gram is None:
                return None
            total = part.gram if total is None else _added(total, part.gram)
        return total


def _added(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """The exact sum: in 64 bits where it fits, which the diagonals bound; in Python's integers."""
    fits = int(np.diag(one).max()) + int(np.diag(other).max()) < 1 << 62
    total: NDArray[Any] = one + other if fits else one.astype(object) + other
    return total


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
        Columns and, under ``replace-one``, the public number of rows.
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
        If the table cannot be read, or does not have the public number of rows; or if it is text
        and cells are protected.
    """
    if contract.unit == "cell" and "csv" in source.formats:
        raise TableError(
            f"{contract.source}: is CSV, where one broken cell breaks the whole line.",
            "Under 'unit: cell' write the table as Parquet.",
        )
    whole = isinstance(lattice, WholeNumbers)
    grams = [] if isinstance(lattice, WholeNumbers) else [ExactGram(lattice) for _ in range(folds)]
    counts = np.zeros(folds, dtype=np.int64)
    repairs, malformed = Repairs.none(len(contract.columns)), Malformed()
    in_place = in_place or folds > 1  # a malformed line leaves every other in its part
    for q in integer_batches(source, contract, how, lattice, repairs, malformed, in_place=in_place):
        part = assign(q.shape[1]) if assign else np.zeros(q.shape[1], dtype=np.int64)
        for k, gram in enumerate(grams):
            gram.add(q[:, part == k] if assign else q)
        counts += np.bincount(part, minlength=folds)
        on_rows(q.shape[1])
        endless = int(counts.sum()) + malformed.rows > contract.rows + _BEYOND
        if contract.neighbours == "replace-one" and endless:
            break
    # A malformed line has nothing left to read: a zero row, and it counts.
    counts[0] += malformed.rows
    rows = int(counts.sum())
    if contract.neighbours == "replace-one" and rows != contract.rows:
        more = " or more" if rows > contract.rows + _BEYOND else ""
        raise TableError(
            f"{contract.source}: has {rows} rows{more}, and the contract's 'rows' is "
            f"{contract.rows}.",
            "Under replace-one the number of rows is public: correct it (blank lines count), or "
            "declare add-remove.",
        )
    exact = [None] * folds if whole else [gram.matrix() for gram in grams]
    sums = (Sum(gram, int(count)) for gram, count in zip(exact, counts, strict=True))
    return Accumulated(tuple(sums), repairs, malformed.rows + malformed.in_place)


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
    columns = list(contract.columns.values())
    levels = {name: contract.levels(name) for name in contract.names}
    for batch in cells(source, levels, malformed, in_place=in_place):
        scaled = repair(batch, columns, repairs, intercept=contract.intercept)
        yield integer_rows(normalise(scaled, how), lattice)
