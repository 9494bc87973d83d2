"""The passes that count units in histograms: of the cells of every column, and of row lengths.

Every protected unit adds one to exactly one bin of each histogram, for any cells: a row, or a
person with all rows. Squared lengths are rounded to multiples of 2^-20. So the squares of a
person's rows have the same sum in any order, and comparing a length with an edge is a comparison of
integers, whose result does not depend on a row's position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import compiled
from gramercy.common.metric import Metric
from gramercy.schemas.column import ColumnKind
from gramercy.schemas.contract import Contract
from gramercy.tables.batches import MalformedLines, cache_slices
from gramercy.tables.counts.binning import Binning, LevelGrid, NumberGrid, bin_edges
from gramercy.tables.formats.source import Source
from gramercy.tables.persons.person_index import (
    MAX_ROW_SQUARES,
    DrawKeys,
    Keys,
    Persons,
    PersonSample,
)
from gramercy.tables.sums.passes import (
    Job,
    OnRows,
    ignore_progress,
    read_to_workers,
    run_locally,
    worker_count,
)
from gramercy.tables.sums.row_transform import (
    MetricRows,
    Repairs,
    is_large,
    repair,
    repair_constants,
)
from gramercy.tables.sums.streaming import Engine, check_row_count

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


class Units(Protocol):
    """Protected units, and the histograms in which each of them counts once. Private."""

    @property
    def rows_without_person(self) -> int: ...

    def __len__(self) -> int: ...

    def __add__(self, other: Any, /) -> Any: ...

    def histograms(self) -> tuple[Counts, ...]: ...


@dataclass(frozen=True, repr=False)
class RowHistograms:
    """Histograms of rows. Private."""

    counts: tuple[Counts, ...]  # the histograms, shapes (bins,)
    rows_without_person: int = 0

    def __len__(self) -> int:
        return int(self.counts[0].sum())

    def __add__(self, other: RowHistograms) -> RowHistograms:
        pairs = zip(self.counts, other.counts, strict=True)
        return RowHistograms(tuple(first + second for first, second in pairs))

    def histograms(self) -> tuple[Counts, ...]:
        """The histograms."""
        return self.counts


@dataclass(frozen=True, repr=False)
class PersonLengths:
    """The lengths of persons, known only when all of their rows are added. Private."""

    persons: Persons  # persons with the sum of squares of each
    thresholds: NDArray[np.uint64]  # see `tables.counts.counting.length_thresholds`

    @property
    def rows_without_person(self) -> int:
        """Number of rows that belong to no person."""
        return self.persons.rows_without_person

    def __len__(self) -> int:
        return len(self.persons)

    def __add__(self, other: PersonLengths) -> PersonLengths:
        return PersonLengths(self.persons + other.persons, self.thresholds)

    def histograms(self) -> tuple[Counts, ...]:
        """The histogram of lengths."""
        return (length_histogram(self.persons.squares, self.thresholds),)


@dataclass(frozen=True, repr=False)
class PartialCounts:
    """The counts of one partition. Private."""

    units: Units  # rows or persons
    rows: int  # number of rows, dropped malformed lines included
    malformed: int  # number of malformed lines

    def __add__(self, other: PartialCounts) -> PartialCounts:
        return PartialCounts(
            self.units + other.units, self.rows + other.rows, self.malformed + other.malformed
        )


@dataclass(frozen=True)
class _Worker:
    """Counts or measures the rows that one thread receives."""

    # of cells, shape (columns, rows), the indices of persons first if they are protected
    add: Callable[..., None]


@dataclass(frozen=True)
class BinJob(Job[PartialCounts]):
    """Count the bins of the cells of every column."""

    edges: tuple[Array, ...]  # see `tables.counts.binning.Binning`
    draw_keys: DrawKeys  # draws the random keys that choose one row of each person

    def run(
        self, source: Source, persons: Persons | None = None, on_rows: OnRows = ignore_progress
    ) -> PartialCounts:
        large = is_large(self.contract.rows, len(self.edges))
        binning = Binning(self.edges, large=large)
        threads = range(worker_count(self, len(self.edges)))
        if self.contract.person_column is not None:
            sample = PersonSample(binning.sizes, large=large)

            def add_to_sample(cells: Array, keys: Keys) -> None:
                sample.add(cells[0], binning.bins(cells[1:]), keys)

            sampling = [_Worker(add_to_sample) for _ in threads]
            read = read_to_workers(
                self, source, sampling, on_rows, persons=sample, draw=self.draw_keys
            )
            return _partial_counts(sample, *read)

        def count(counts: Counts, cells: Array) -> None:
            for rows in cache_slices(len(cells), cells.shape[1]):
                binning.count(binning.bins(cells[:, rows]), counts)

        counts = [binning.zeros() for _ in threads]  # of each thread
        counting = [_Worker(partial(count, own)) for own in counts]
        rows, malformed = read_to_workers(self, source, counting, on_rows)
        histograms = binning.split(reduce(add, counts))
        for histogram in histograms:
            histogram[-1] += malformed.dropped
        return _partial_counts(RowHistograms(histograms), rows, malformed)


@dataclass(frozen=True)
class LengthJob(Job[PartialCounts]):
    """Count the lengths of scaled rows; of a person, the square root of the sum of squares."""

    edges: Array  # see `tables.counts.counting.length_thresholds`

    def run(
        self, source: Source, persons: Persons | None = None, on_rows: OnRows = ignore_progress
    ) -> PartialCounts:
        lengths = RowLengths.of(self.contract, self.metric)
        thresholds = length_thresholds(self.edges)
        threads = range(worker_count(self, lengths.width))
        if self.contract.person_column is not None:
            measured = Persons(large=lengths.large)

            def measure(cells: Array) -> None:
                for rows in cache_slices(lengths.width, cells.shape[1]):
                    measured.add(cells[0, rows], lengths.squares(cells[1:, rows]))

            adding = [_Worker(measure) for _ in threads]
            read = read_to_workers(self, source, adding, on_rows, persons=measured)
            return _partial_counts(PersonLengths(measured, thresholds), *read)

        def count(counts: Counts, cells: Array) -> None:
            for rows in cache_slices(lengths.width, cells.shape[1]):
                counts += length_histogram(lengths.squares(cells[:, rows]), thresholds)

        counts = [np.zeros(thresholds.size, np.int64) for _ in threads]  # of each thread
        counting = [_Worker(partial(count, own)) for own in counts]
        rows, malformed = read_to_workers(self, source, counting, on_rows)
        histogram = reduce(add, counts)
        histogram[0] += malformed.dropped
        return _partial_counts(RowHistograms((histogram,)), rows, malformed)


def _partial_counts(units: Units, rows: int, malformed: MalformedLines) -> PartialCounts:
    return PartialCounts(units, rows + malformed.dropped, malformed.dropped + malformed.kept)


@dataclass(frozen=True, repr=False)
class BinCounts:
    """The exact histograms of a table. Private: passed in memory, and never stored."""

    # One histogram for each column, or one of lengths; shapes (bins,). Each sums to `units`.
    counts: tuple[NDArray[np.int64], ...]
    units: int  # exact number of rows; under person-level privacy, of persons
    # number of malformed CSV lines, which count as rows without values, and belong to no person
    malformed: int
    rows_read: int  # number of rows of the table
    # number of rows that were left out because they belong to no person
    rows_without_person: int = 0


def count_bins(
    source: Source,
    contract: Contract,
    grids: Sequence[NumberGrid | LevelGrid],
    on_rows: OnRows = ignore_progress,
    *,
    draw_keys: DrawKeys,
    engine: Engine = run_locally,
) -> BinCounts:
    """Count the cells of every column in bins.

    Every row adds one to one bin of each column. If persons are protected, every person does, with
    one of their rows that is chosen uniformly at random; rows without a person are left out.

    Parameters
    ----------
    contract
        Names of the columns, levels and, under ``replace-one``, the public number of rows. Bounds
        and constants are not used.
    grids
        The bins of each column, in the order of the contract: a `LevelGrid` for a column of levels.
    draw_keys
        Draws random keys (`mechanisms.sampling.sampler.random_keys`), if persons are protected.
    """
    edges = tuple(bin_edges(grid) for _, grid in zip(contract.names, grids, strict=True))
    return _count(source, BinJob(contract, edges, draw_keys), on_rows, engine)


def count_lengths(
    source: Source,
    contract: Contract,
    edges: NDArray[np.float64],
    on_rows: OnRows = ignore_progress,
    *,
    metric: Metric | None = None,
    engine: Engine = run_locally,
) -> BinCounts:
    """Count the lengths of scaled rows, before they are clipped.

    A row's length is that of the row that `repair` returns, intercept included, in the metric. If
    persons are protected, it is the square root of the sum of squares over all rows of a person.

    Parameters
    ----------
    edges
        Lower edges of the bins, increasing and below 2^13; shape (K,). Bin k is
        [edges[k], edges[k + 1]). The last bin has no upper edge, and lengths below the first edge
        are in bin 0, such as the zero of a malformed line.
    """
    return _count(source, LengthJob(contract, edges, metric=metric), on_rows, engine)


def _count(source: Source, job: Job[PartialCounts], on_rows: OnRows, engine: Engine) -> BinCounts:
    counts = engine(source, job, on_rows)
    units, contract = counts.units, job.contract
    if contract.person_column is None:
        check_row_count(contract, len(units))
    return BinCounts(
        units.histograms(), len(units), counts.malformed, counts.rows, units.rows_without_person
    )


_UNITS = 1 << 20  # of a squared length of one


class RowLengths:
    """Computes the squared lengths of scaled rows, without clipping."""

    def __init__(
        self,
        columns: Sequence[ColumnKind],
        intercept: bool,
        width: int,
        metric: Metric | None = None,
        *,
        large: bool,
    ) -> None:
        self._columns, self._intercept, self._metric = tuple(columns), intercept, metric
        # The number of matrix columns, and whether compiled code pays off: it computes the same.
        self.width, self.large = width, large
        self._are_levels = np.array([column.categories is not None for column in columns])
        self._constants = repair_constants(columns)
        # The same compiled, in a metric.
        self._rows = MetricRows(columns, intercept, metric) if metric and large else None

    @classmethod
    def of(cls, contract: Contract, metric: Metric | None = None) -> RowLengths:
        """The lengths of a contract's rows."""
        width = contract.intercept + sum(column.width for column in contract.columns.values())
        large = is_large(contract.rows, width)
        columns = tuple(contract.columns.values())
        return cls(columns, contract.intercept, width, metric, large=large)

    def squares(self, cells: Array) -> NDArray[np.uint64]:
        """Squared length of every row in units of 2^-20, shape (rows,).

        Squared lengths above 2^26 become 2^26.

        Notes
        -----
        Squares are summed in a fixed loop over columns; see `tables.sums.row_transform.normalise`.
        """
        if self.large and self._metric is None:
            squares = compiled(squares_kernel)(
                np.ascontiguousarray(cells), self._are_levels, self._constants, self._intercept
            )
        else:
            squares = np.zeros(cells.shape[1])
            with np.errstate(over="ignore"):
                for column in self._measured(cells):
                    squares += column * column
        with np.errstate(over="ignore"):
            return np.rint(np.minimum(squares * _UNITS, MAX_ROW_SQUARES)).astype(np.uint64)

    def _measured(self, cells: Array) -> Array:
        """The rows whose lengths are measured, shape (width, rows)."""
        repairs = Repairs.zeros(len(self._columns))  # the pass for the matrix counts repairs
        if self._rows is not None:
            return self._rows(cells, repairs)
        scaled = repair(
            cells, self._columns, repairs, intercept=self._intercept, constants=self._constants
        )
        return scaled if self._metric is None else self._metric.rows(scaled)


def length_thresholds(edges: Array) -> NDArray[np.uint64]:
    """Squares of lower edges of bins of lengths, in units of 2^-20, as those of rows; shape (K,).

    Edges increase, are not negative, and are below 2^13.
    """
    return np.rint(edges * edges * _UNITS).astype(np.uint64)


def length_histogram(
    squares: NDArray[np.uint64], thresholds: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Count squared lengths, shape (units,), in bins between thresholds; shape (K,).

    Bin k counts lengths in [edges[k], edges[k + 1]). The last bin has no upper edge, and lengths
    below the first edge are in bin 0.
    """
    bins = np.searchsorted(thresholds, squares, side="right") - 1
    return np.bincount(bins.clip(0), minlength=thresholds.size)


def squares_kernel(
    cells: Array, are_levels: NDArray[np.bool_], constants: Array, intercept: bool
) -> Array:
    """Sum of squares of every scaled row, the arithmetic of `repair`; for numba."""
    columns, rows = cells.shape
    squares = np.full(rows, 1.0 if intercept else 0.0)
    for i in range(columns):
        if are_levels[i]:
            for k in range(rows):
                squares[k] += 1.0 if math.isfinite(cells[i, k]) else 0.0
            continue
        lower, upper, centre, scale = constants[i, :4]
        for k in range(rows):
            value = cells[i, k] if math.isfinite(cells[i, k]) else centre
            x = (min(max(value, lower), upper) - centre) / scale
            squares[k] += x * x
    return squares
