"""Compiled code and threads give the same integers and counts as plain Python."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gramercy.tables.sums.row_transform
from gramercy.common.lattice import Lattice, UnscaledLattice
from gramercy.schemas import families, wordings
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Clip, Unit, Whole
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.exact_sums import Parts
from gramercy.tables.sums.row_transform import NormaliseKernel, Repairs, RowTransform
from gramercy.tables.sums.streaming import Accumulated, accumulate
from tests.support.factories import RoundRobin, contract_facts
from tests.support.problems import raises

NASTY = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        7.3,
        np.nan,
        np.inf,
        -np.inf,
        1e308,
        -1e308,
        5e-324,
        1e-170,
        1e200,
        1e-120,
        3e120,
    ]
)
COLUMNS = (
    Column(lower=-1.0, upper=1.0),
    Levels(levels=("a", "b", "c")),
    Column(lower=-1e308, upper=1e307, centre=0.0, scale=1e3),
    Column(lower=-1e-300, upper=5e-300, centre=0.0, scale=1.0),
    Column(lower=0.0, upper=10.0, centre=7.0, scale=0.25),
)
NUMBERS = tuple(column for column in COLUMNS if isinstance(column, Column))
NORMALISATIONS = [
    (Unit(), Lattice(9, 10)),
    (Unit(), Lattice(9, 20)),
    (Clip(kind="clip", radius=2.5), Lattice(9, 14)),
    (Clip(kind="clip", radius=1e-3), Lattice(9, 12)),
    (Clip(kind="clip", radius=1e300), Lattice(9, 12)),
    (Whole(kind="whole"), UnscaledLattice(9)),
]

ROOT = Path(__file__).parents[3]


def cells(columns: int, rows: int) -> np.ndarray:
    """Every combination of special numbers, and plain ones."""
    rng = np.random.default_rng(columns)
    result = rng.normal(size=(columns, rows)) * 10.0 ** rng.integers(-4, 4, size=(columns, rows))
    strange = rng.random((columns, rows)) < 0.3
    result[strange] = rng.choice(NASTY, size=int(strange.sum()))
    result[:, :10] = 0.0
    return result


@pytest.mark.parametrize(("normalisation", "lattice"), NORMALISATIONS[:-1])
@pytest.mark.parametrize("rows", [0, 1, 255, 256, 257, 3000])
def test_squares_are_those_of_the_rows(rows: int, normalisation: Any, lattice: Lattice) -> None:
    cells_ = cells(len(COLUMNS), rows)
    kernel = NormaliseKernel.of(COLUMNS, True, normalisation, lattice)
    for quick in (kernel, None):
        transform = RowTransform(COLUMNS, True, normalisation, lattice, quick)
        repairs, counted = Repairs.zeros(len(COLUMNS)), Repairs.zeros(len(COLUMNS))
        q = transform.integers(cells_, repairs)
        np.testing.assert_array_equal(transform.squares(cells_, counted), (q * q).sum(axis=0))
        np.testing.assert_array_equal(counted.filled, repairs.filled)
        np.testing.assert_array_equal(counted.clamped, repairs.clamped)


def test_squares_of_rows_that_are_clamped(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a smaller ball, because rounding seldom moves a row out of it."""
    cells_, lattice = cells(len(COLUMNS), 3000), Lattice(9, 10)
    radius = int(0.99 * lattice.unit_length**2)
    monkeypatch.setattr(Lattice, "squared_radius", property(lambda _: radius))
    repairs = Repairs.zeros(len(COLUMNS))
    kernel = NormaliseKernel.of(COLUMNS, True, Unit(), lattice)
    q = kernel(cells_, repairs)
    assert (kernel._fill(q.copy(), cells_, repairs) > radius).any()
    np.testing.assert_array_equal(kernel.squares(cells_, repairs), (q * q).sum(axis=0))
    assert (q * q).sum(axis=0).max() <= radius


@pytest.mark.slow
@pytest.mark.parametrize(("normalisation", "lattice"), NORMALISATIONS)
@pytest.mark.parametrize("columns", [COLUMNS, NUMBERS, NUMBERS[2:]], ids=len)
@pytest.mark.parametrize("intercept", [True, False])
def test_kernel_equals_reference_exactly(
    columns: Any, intercept: bool, normalisation: Any, lattice: Lattice
) -> None:
    width = sum(len(each.levels) if isinstance(each, Levels) else 1 for each in columns)
    lattice = replace(lattice, p=int(intercept) + width)
    plain, quick = Repairs.zeros(len(columns)), Repairs.zeros(len(columns))
    for rows in (0, 1, 255, 256, 3000):
        cells_ = cells(len(columns), rows)
        expected = RowTransform(columns, intercept, normalisation, lattice).integers(cells_, plain)
        result = NormaliseKernel.of(columns, intercept, normalisation, lattice)(cells_, quick)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(quick.filled, plain.filled)
        np.testing.assert_array_equal(quick.clamped, plain.clamped)


def test_rows_rounded_out_of_the_ball_equal_reference() -> None:
    """More columns than the lattice was made for, so that rounding moves rows out of the ball."""
    columns = NUMBERS[:1] * 40
    rng = np.random.default_rng(0)
    cells_ = rng.choice([-0.9, 0.9], size=(40, 500))
    lattice = Lattice(1, 10)
    result = NormaliseKernel.of(columns, False, Unit(), lattice)(cells_, Repairs.zeros(40))
    plain = RowTransform(columns, False, Unit(), lattice).integers(cells_, Repairs.zeros(40))
    np.testing.assert_array_equal(result, plain)
    units = result.astype(np.int64)
    assert ((units * units).sum(axis=0) <= lattice.squared_radius).all()


def test_uncompiled_kernel_gives_same_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As plain Python, without a compiler."""
    cells_ = cells(len(COLUMNS), 60)
    expected = NormaliseKernel.of(COLUMNS, True, Unit(), Lattice(9, 12))(cells_, Repairs.zeros(5))
    monkeypatch.setattr("gramercy.tables.sums.row_transform.compiled", lambda function: function)
    with np.errstate(all="ignore"):
        result = NormaliseKernel.of(COLUMNS, True, Unit(), Lattice(9, 12))(cells_, Repairs.zeros(5))
    np.testing.assert_array_equal(result, expected)


def table(folder: Path, rows: int) -> tuple[str, Contract]:
    rng = np.random.default_rng(2)
    columns = {f"c{k}": rng.normal(size=rows) for k in range(6)}
    columns["c2"][::7] = np.nan
    path = folder / "t.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=1000)
    return str(path), Contract.model_validate(contract_facts(path, rows=rows, p=6))


@pytest.mark.slow
@pytest.mark.parametrize("folds", [1, 3])
def test_thread_count_does_not_change_sums(
    folds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, contract = table(tmp_path, 30_000)
    lattice = Lattice(6, 16)
    monkeypatch.setattr("gramercy.tables.batches.BATCH_CELLS", 6 * 700)

    def summed() -> Accumulated:
        assign = RoundRobin(folds) if folds > 1 else None
        return accumulate(
            open_source(path), contract, Unit(), lattice, parts=Parts(folds), assign=assign
        )

    reference = summed()
    for threads, large in product((1, 2, 5), (0, 1 << 60)):
        monkeypatch.setattr(gramercy.tables.sums.row_transform, "_LARGE", large)
        monkeypatch.setattr(
            "gramercy.tables.sums.passes.thread_count", lambda threads=threads: threads
        )
        threaded = summed()
        assert threaded.rows == reference.rows == 30_000
        for first, second in zip(threaded.part_sums, reference.part_sums, strict=True):
            assert first.gram is not None
            assert (first.gram == second.gram).all()
            assert first.rows == second.rows
        assert (threaded.repairs.filled == reference.repairs.filled).all()
        assert (threaded.repairs.clamped == reference.repairs.clamped).all()


def test_error_in_a_thread_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, contract = table(tmp_path, 5_000)
    monkeypatch.setattr("gramercy.tables.batches.BATCH_CELLS", 6 * 700)
    monkeypatch.setattr("gramercy.tables.sums.passes.thread_count", lambda: 3)

    def broken(*cells_: Any) -> Any:
        raise wordings.table_changed()

    monkeypatch.setattr(RowTransform, "integers", broken)
    with raises(families.CHANGED):
        accumulate(open_source(path), contract, Unit(), Lattice(6, 16))


_SMALL = """
import numpy as np
from gramercy.common.machine import is_loaded
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Unit
from gramercy.common.lattice import Lattice
from gramercy.tables.sums.row_transform import NormaliseKernel, normalise_kernel
from gramercy.tables.sums.row_transform import Repairs
from gramercy.tables.sums.row_transform import RowTransform
from tests.support.factories import contract_facts
contract = Contract.model_validate(contract_facts("t.csv", rows=40) | {"intercept": False})
lattice, cells = Lattice(3, 16), np.random.default_rng(1).normal(size=(3, 40))
before = RowTransform.of(contract, Unit(), lattice)
print(is_loaded(normalise_kernel), before.kernel is None)
NormaliseKernel.of(before.columns, False, Unit(), lattice)(cells, Repairs.zeros(3))
after = RowTransform.of(contract, Unit(), lattice)
print(is_loaded(normalise_kernel), after.kernel is None)
made = [each.integers(cells, Repairs.zeros(3)) for each in (before, after)]
print(np.array_equal(*made))
"""


@pytest.mark.slow
def test_small_tables_use_compiled_code_that_is_loaded() -> None:
    """It takes longer to load than it saves, but once it is there it costs nothing."""
    command = [sys.executable, "-c", _SMALL]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["False", "True", "True", "False", "True"]
