"""Compiled code scales and adds the rows of persons exactly as numpy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gramercy.common.lattice import Lattice
from gramercy.schemas.column import Column
from gramercy.schemas.normalisation import Clip, Unit
from gramercy.tables.persons.person_index import MAX_ROW_SQUARES, Persons
from gramercy.tables.sums.exact_sums import ONE_PART
from gramercy.tables.sums.row_transform import RowTransform
from gramercy.tables.sums.streaming import MeasuringWorker, ScalingWorker

COLUMNS = tuple(Column(lower=-2.0 - k, upper=3.0) for k in range(4))
LATTICE = Lattice(4, 18)
FACTS = ("squares", "rows", "rows_without_person")


def persons_of(count: int, *, large: bool) -> Persons:
    persons = Persons(large=large)
    persons.indices(pa.array([f"person {k}" for k in range(count)]))
    return persons


def cells(rows: int, count: int) -> Any:
    """The indices of persons, NaN for some, and cells."""
    rng = np.random.default_rng(rows)
    indices = rng.integers(0, count, rows).astype(float)
    indices[rng.random(rows) < 0.1] = np.nan
    numbers = rng.normal(size=(4, rows))
    numbers[rng.random((4, rows)) < 0.1] = np.nan
    return np.vstack([indices, numbers])


@pytest.mark.parametrize("rows", [0, 1, 255, 256, 257, 5000])
@pytest.mark.parametrize("normalisation", [Unit(), Clip(kind="clip", radius=0.5)])
def test_both_passes_equal_those_of_numpy(rows: int, normalisation: Any) -> None:
    transform = RowTransform(COLUMNS, False, normalisation, LATTICE)
    table, sums = cells(rows, 20), []
    for large in (False, True):
        persons = persons_of(20, large=large)
        assert persons.large == large
        MeasuringWorker(transform, persons).add(table)
        contributions = Persons(persons.known, closed=True, large=large)
        worker = ScalingWorker(transform, ONE_PART, persons.factors(LATTICE), contributions)
        q = worker._integers(table)
        assert contributions.are_in_ball(LATTICE)
        sums.append([q, *(getattr(x, y) for x in (persons, contributions) for y in FACTS)])
    for plain, quick in zip(*sums, strict=True):
        np.testing.assert_array_equal(plain, quick)
        np.testing.assert_array_equal(np.signbit(plain), np.signbit(quick))


@pytest.mark.parametrize("dtype", [np.float64, np.uint64])
def test_sums_of_squares_saturate_in_any_order(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    indices = np.repeat([0.0, 1.0, np.nan], [1 << 17, 5, 3])
    squares = np.where(indices == 1, 7, MAX_ROW_SQUARES).astype(dtype)
    for large in (False, True):
        order = rng.permutation(indices.size)
        persons = persons_of(2, large=large)
        for part in np.array_split(order, 3):
            persons.add(indices[part], squares[part])
        assert persons.squares.tolist() == [1 << 62, 35]
        assert persons.rows.tolist() == [1 << 17, 5]
        assert persons.rows_without_person == 3
        assert persons.factors(LATTICE).tolist() == [0.0, 1.0]
