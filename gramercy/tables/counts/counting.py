"""Stream a private table into exact histograms: of the cells of every column, or of row lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.contract import Contract
from gramercy.tables.counts.binning import LevelGrid, NumberGrid, bin_edges
from gramercy.tables.counts.count_passes import BinJob, LengthJob, PartialCounts
from gramercy.tables.formats.source import Source
from gramercy.tables.persons.person_sample import DrawKeys
from gramercy.tables.sums.passes import Job, OnRows, ignore_progress, run_locally
from gramercy.tables.sums.streaming import Engine, check_row_count


@dataclass(frozen=True, repr=False)
class BinCounts:
    """The exact histograms of a table. Private: passed in memory, and never stored.

    Parameters
    ----------
    counts
        One histogram for each column, or one of lengths; shapes (bins,). Each sums to `units`.
    units
        Exact number of rows; under person-level privacy, of persons.
    malformed
        Number of malformed CSV lines, which count as rows without values, and belong to no person.
    rows_read
        Number of rows of the table.
    rows_without_person
        Number of rows that were left out because they belong to no person.
    """

    counts: tuple[NDArray[np.int64], ...]
    units: int
    malformed: int
    rows_read: int
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
    source
        The table.
    contract
        Names of the columns, levels and, under ``replace-one``, the public number of rows. Bounds
        and constants are not used.
    grids
        The bins of each column, in the order of the contract: a `LevelGrid` for a column of levels.
    on_rows
        Called with the number of rows of each batch.
    draw_keys
        Draws random keys (`mechanisms.sampling.sampler.random_keys`), if persons are protected.
    engine
        See `Engine`.

    Raises
    ------
    TableError
        If the table cannot be read, or its number of rows is not the public one.
    """
    edges = tuple(bin_edges(grid) for _, grid in zip(contract.names, grids, strict=True))
    return _count(source, BinJob(contract, edges, draw_keys), on_rows, engine)


def count_lengths(
    source: Source,
    contract: Contract,
    edges: NDArray[np.float64],
    on_rows: OnRows = ignore_progress,
    *,
    engine: Engine = run_locally,
) -> BinCounts:
    """Count the lengths of scaled rows, before they are clipped.

    A row's length is that of the row that `repair` returns, intercept included. If
    persons are protected, it is the square root of the sum of squares over all rows of a person.

    Parameters
    ----------
    source, on_rows, engine
        See `count_bins`.
    contract
        As for `count_bins`, but with the bounds, centres and scales in use.
    edges
        Lower edges of the bins, increasing and below 2^13; shape (K,). Bin k is
        [edges[k], edges[k + 1]). The last bin has no upper edge, and lengths below the first edge
        are in bin 0, such as the zero of a malformed line.

    Raises
    ------
    TableError
        See `count_bins`.
    """
    return _count(source, LengthJob(contract, edges), on_rows, engine)


def _count(source: Source, job: Job[PartialCounts], on_rows: OnRows, engine: Engine) -> BinCounts:
    counts = engine(source, job, on_rows)
    units, contract = counts.units, job.contract
    if contract.person_column is None:
        check_row_count(contract, len(units))
    return BinCounts(
        units.histograms(), len(units), counts.malformed, counts.rows, units.rows_without_person
    )
