"""Cells become rows and exact sums: values, levels, repair, normalisation, lattice, counts."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.common.lattice import Lattice
from gramercy.schemas import families
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.contract import Contract
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.normalisation import Clip, Unit
from gramercy.tables.batches import Array, KeptCells, MalformedLines
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import open_source
from gramercy.tables.formats.values import coding_of
from gramercy.tables.sums.exact_sums import Sum
from gramercy.tables.sums.row_transform import Repairs, normalise, repair
from gramercy.tables.sums.streaming import Accumulated, accumulate
from tests.support.factories import contract_facts
from tests.support.problems import raises

NAN = float("nan")


@pytest.mark.slow
def test_many_levels_in_bounded_memory(tmp_path: Path) -> None:
    """A narrow column that becomes a wide matrix is expanded in small batches."""
    (tmp_path / "t.csv").write_text("k\n" + "7\n" * 300_000)
    facts = contract_facts(tmp_path / "t.csv", rows=300_000)
    facts |= {"columns": {"k": {"levels": list(range(100))}}}
    contract = Contract.model_validate(facts | {"budget": {"epsilon": 1.0, "delta": 1e-9}})
    tracemalloc.start()
    sums = accumulate(open_source(contract.source), contract, Unit(), Lattice(100, 12))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sums.rows == 300_000
    assert abs(sums.gram[7, 7] / Lattice(100, 12).divisor - 300_000) < 300
    assert peak < 120 << 20  # all rows at once would be 240 MB, several times over


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_row_count_is_checked_only_under_replace_one(tmp_path: Path, rows: int) -> None:
    file = tmp_path / "t.csv"
    file.write_text("c0,c1,c2\n" + "1,2,3\n" * rows)
    facts = contract_facts(file, rows=1) | {"budget": {"epsilon": 1.0, "delta": 1e-6}}
    contract = Contract.model_validate(facts)
    lattice = Lattice(3, 10)
    source = open_source(str(file))
    if rows == 1:
        assert accumulate(source, contract, Unit(), lattice).rows == 1
    else:
        with raises(families.ROW_COUNT, source=str(file), rows=rows, declared=1):
            accumulate(source, contract, Unit(), lattice)
    hidden = contract.model_copy(update={"neighbours": Neighbours.ADD_REMOVE})
    assert accumulate(source, hidden, Unit(), lattice).rows == rows


def test_reading_stops_far_beyond_the_declared_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "t.csv"
    file.write_text("c0,c1,c2\n" + "1,2,3\n" * 100)
    for module in ("passes", "streaming"):
        monkeypatch.setattr(f"gramercy.tables.sums.{module}.EXCESS_ROWS", 10)
    contract = Contract.model_validate(contract_facts(file, rows=7))
    with raises(families.ROW_COUNT, source=str(file), limit=17, declared=7):
        accumulate(open_source(str(file)), contract, Unit(), Lattice(3, 10))


def test_malformed_rows_count_as_zero_rows(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("c0,c1,c2\n1,2,3\n4,5\n")
    contract = Contract.model_validate(contract_facts(file, rows=2))
    sums = accumulate(open_source(str(file)), contract, Unit(), Lattice(3, 10))
    assert (sums.rows, sums.malformed) == (2, 1)
    assert abs(np.trace(sums.gram) / Lattice(3, 10).divisor - 1) < 0.01


def test_sums_of_parts_are_exact_beyond_64_bits() -> None:
    big = Sum(np.array([[1 << 61]], dtype=np.int64), 1)
    beyond = Sum(np.array([[1 << 70]], dtype=object), 1)
    for parts, expected in (((big, big), 1 << 62), ((big, beyond), (1 << 61) + (1 << 70))):
        sums = Accumulated(parts, Repairs.zeros(1), 0, 2)
        assert int(sums.gram[0, 0]) == expected
    small = Sum(np.array([[5]], dtype=np.int64), 2)
    assert Accumulated((small, small), Repairs.zeros(1), 0, 4).gram.dtype == np.int64


def test_repair_uses_public_constants() -> None:
    columns = [Column(lower=0, upper=10, centre=4, scale=2), Column(lower=-1, upper=3)]
    repairs = Repairs.zeros(2)
    cells_ = np.array([[1.0, NAN, np.inf, 99.0], [-5.0, 1.0, 3.0, -np.inf]])
    scaled = repair(cells_, columns, repairs)
    np.testing.assert_array_equal(scaled, [[-1.5, 0, 0, 3], [-1, 0, 1, 0]])
    assert repairs.filled.tolist() == [2, 1]
    assert repairs.clamped.tolist() == [1, 1]


@pytest.mark.slow
@given(st.text(alphabet="0123456789+-.eEinfatyNxX_() ", max_size=8))
def test_cell_is_parsed_independently_of_other_cells(cell: str) -> None:
    read = coding_of(None).floats
    np.testing.assert_array_equal(read(pa.array([cell])), read(pa.array([cell, "junk"]))[:1])


def test_levels_and_intercept_become_columns(tmp_path: Path) -> None:
    columns = [Levels(levels=("M", "F")), Column(lower=0, upper=4, scale=1), Levels(levels=(0, 2))]
    repairs = Repairs.zeros(3)
    cells_ = np.array([[1.0, NAN, 0.0], [4.0, 2.0, 0.0], [0.0, 1.0, NAN]])
    spread = repair(cells_, columns, repairs, intercept=True)
    expected = [[1, 1, 1], [0, 0, 1], [1, 0, 0], [2, 0, -2], [1, 0, 0], [0, 1, 0]]
    np.testing.assert_array_equal(spread, expected)
    assert repairs.filled.tolist() == [1, 0, 1]


TEXT_LEVELS = {"s": ("M", "F"), "k": None}


NUMBER_LEVELS = {"s": (0.0, 2.5), "k": None}


@pytest.mark.parametrize(
    ("values", "levels", "indices"),
    [
        (["F", " M ", "f", "", None, "M"], TEXT_LEVELS, [1, 0, NAN, NAN, NAN, 0]),
        (pa.array(["F", "M", "x"]).dictionary_encode(), TEXT_LEVELS, [1, 0, NAN]),
        (pa.array(["F", "M"], pa.large_string()), TEXT_LEVELS, [1, 0]),
        ([0, 2, None], NUMBER_LEVELS, [0, NAN, NAN]),
        ([2.5, NAN, 0.0], NUMBER_LEVELS, [1, NAN, 0]),
        ([True, False], NUMBER_LEVELS, [NAN, 0]),
        (["2.50", "0", "zero"], NUMBER_LEVELS, [1, 0, NAN]),
    ],
    ids=str,
)
def test_level_cells_become_level_indices(
    tmp_path: Path, values: Any, levels: Any, indices: list[float]
) -> None:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    table = pa.table({"k": pa.nulls(len(array), pa.float64()), "s": array})
    pq.write_table(table, tmp_path / "t.parquet")
    table.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.parquet", "t.csv"):
        if name == "t.csv" and array.type == pa.bool_():
            continue  # CSV writes it as True, which is not a number
        batches = list(cell_batches(open_source(str(tmp_path / name)), levels, MalformedLines()))
        np.testing.assert_array_equal(np.concatenate(batches, axis=1)[0], indices)


@pytest.mark.parametrize("size", [5e-324, 1e-170, 1.0, 1e200, 1e308])
def test_normalisation_is_accurate_at_every_magnitude(size: float) -> None:
    x = np.array([[1.0], [-1.0], [0.0], [1.0]]) * size
    unit = normalise(x, Unit())
    np.testing.assert_allclose(unit[:, 0], np.array([1, -1, 0, 1]) / np.sqrt(3), rtol=1e-15)
    clipped = normalise(x, Clip(kind="clip", radius=2.0))
    expected = unit if size * np.sqrt(3) > 2 else x / 2
    np.testing.assert_allclose(clipped, expected, rtol=1e-15)


def test_zero_rows_stay_zero() -> None:
    for how in (Unit(), Clip(kind="clip", radius=1.0)):
        assert (normalise(np.zeros((3, 2)), how) == 0).all()
        assert normalise(np.zeros((3, 0)), how).shape == (3, 0)


@pytest.mark.parametrize("rows", [1, 10**4, 10**9, 10**12])
@pytest.mark.parametrize("p", [1, 30, 5000])
@pytest.mark.parametrize("scale", [0.05, 6.0, 1e5])
def test_fitted_lattice_adds_little_error_and_cannot_overflow(
    rows: int, p: int, scale: float
) -> None:
    lattice = Lattice.fitting(p, rows, scale)
    assert 10 <= lattice.bits <= 20
    assert rows * lattice.squared_radius < 1 << 62
    assert scale * lattice.squared_radius < 2.0**56
    finest = lattice.bits == 20 or rows * lattice.squared_radius * 4 >= 1 << 62
    assert finest or rows / 12 / lattice.squared_radius <= scale / 1000
    slow = scale * lattice.squared_radius * 4 >= 2.0**32
    assert finest or slow or 1 / lattice.shrinkage**2 - 1 <= 1.1e-3
    assert (
        1 / lattice.shrinkage**2 - 1 <= 5e-3
        or rows * lattice.squared_radius * 4 >= 1 << 62
        or scale > 1e3
    )
    # Rounding moves a row of length c 2^K by sqrt(p)/2 at most: it stays in the ball.
    assert lattice.unit_length + np.sqrt(p) / 2 <= 2.0**lattice.bits


FORM = (["x", "y"], False)
BATCHES = [np.full((2, 10), 1.0), np.full((2, 5), 2.0)]  # 240 bytes


class Table:
    """Counts how often it is read, and has one malformed line."""

    def __init__(self) -> None:
        self.reads, self.malformed = 0, MalformedLines()

    def read(self, malformed: MalformedLines) -> Iterator[Array]:
        self.reads += 1
        yield from BATCHES
        malformed.dropped += 1

    def passed(self, kept: KeptCells, form: object = FORM) -> list[Array]:
        self.malformed = MalformedLines()
        return list(kept.batches(form, self.malformed, self.read(self.malformed)))


@pytest.mark.parametrize(("limit", "reads"), [(None, 1), (240, 1), (239, 3), (0, 3)])
def test_every_pass_has_the_same_batches(limit: int | None, reads: int) -> None:
    table, kept = Table(), KeptCells(0, limit)
    for _ in range(3):
        found = table.passed(kept)
        assert all(np.array_equal(a, b) for a, b in zip(found, BATCHES, strict=True))
        assert table.malformed == MalformedLines(dropped=1)
    assert table.reads == reads


@pytest.mark.parametrize(("expected", "reads"), [(240, 1), (241, 2)])
def test_a_table_that_will_not_fit_is_not_kept_at_all(expected: int, reads: int) -> None:
    table, kept = Table(), KeptCells(expected, 240)
    for _ in range(2):
        table.passed(kept)
    assert table.reads == reads


def test_another_form_is_read_from_the_table() -> None:
    table, kept = Table(), KeptCells(0)
    for form, reads in ((FORM, 1), ((["x"], False), 2), ((["x"], False), 2), (FORM, 3)):
        table.passed(kept, form)
        assert table.reads == reads


def test_cells_of_one_form_are_forgotten_before_those_of_another_are_kept() -> None:
    table, kept = Table(), KeptCells(0)
    table.passed(kept)
    passing = kept.batches((["x"], False), MalformedLines(), table.read(MalformedLines()))
    next(passing)
    passing.close()
    table.passed(kept)
    assert table.reads == 3


def test_an_interrupted_pass_is_not_kept() -> None:
    table, kept = Table(), KeptCells(0)
    passing = kept.batches(FORM, MalformedLines(), table.read(MalformedLines()))
    next(passing)
    passing.close()
    assert len(table.passed(kept)) == 2
    assert table.reads == 2


def test_nothing_is_left_after_the_last_pass() -> None:
    table, kept = Table(), KeptCells(0)
    table.passed(kept)
    kept.close()
    table.passed(kept)
    assert table.reads == 2


def test_private_cells_are_not_pickled() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(KeptCells(0))
