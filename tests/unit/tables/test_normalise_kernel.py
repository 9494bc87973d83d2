"""Machine code and threads give the same integers and counts."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gramercy.tables.recipe
from gramercy.common.lattice import Lattice, WholeNumbers
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import TableError
from gramercy.schemas.normalisation import Clip, Unit, Whole
from gramercy.tables.normalise_kernel import Fused
from gramercy.tables.recipe import Recipe
from gramercy.tables.repair import Repairs
from gramercy.tables.source import open_source
from gramercy.tables.streaming import Accumulated, accumulate
from tests.support.factories import RoundRobin, contract_facts

NASTY = np.array(
    [0.0, -0.0, 1.0, -1.0, 2.0, 7.3, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-170, 1e200]
)
COLUMNS = (
    Column(lower=-1.0, upper=1.0),
    Levels(levels=("a", "b", "c")),
    Column(lower=-1e308, upper=1e307, centre=0.0, scale=1e3),
    Column(lower=-1e-300, upper=5e-300, centre=0.0, scale=1.0),
    Column(lower=0.0, upper=10.0, centre=7.0, scale=0.25),
)
NUMBERS = tuple(column for column in COLUMNS if isinstance(column, Column))
HOWS = [
    (Unit(), Lattice(9, 10)),
    (Unit(), Lattice(9, 20)),
    (Clip(kind="clip", radius=2.5), Lattice(9, 14)),
    (Clip(kind="clip", radius=1e-3), Lattice(9, 12)),
    (Clip(kind="clip", radius=1e300), Lattice(9, 12)),
    (Whole(kind="whole"), WholeNumbers(9)),
]


def cells(columns: int, rows: int) -> np.ndarray:
    """Every combination of special numbers, and plain ones."""
    rng = np.random.default_rng(columns)
    found = rng.normal(size=(columns, rows)) * 10.0 ** rng.integers(-4, 4, size=(columns, rows))
    strange = rng.random((columns, rows)) < 0.3
    found[strange] = rng.choice(NASTY, size=int(strange.sum()))
    found[:, :10] = 0.0
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("how", "lattice"), HOWS)
@pytest.mark.parametrize("columns", [COLUMNS, NUMBERS, NUMBERS[2:]], ids=len)
@pytest.mark.parametrize("intercept", [True, False])
def test_kernel_equals_reference_exactly(
    columns: Any, intercept: bool, how: Any, lattice: Lattice
) -> None:
    plain, quick = Repairs.none(len(columns)), Repairs.none(len(columns))
    for rows in (0, 1, 255, 256, 3000):
        given = cells(len(columns), rows)
        expected = Recipe(columns, intercept, how, lattice).integers(given, plain)
        found = Fused(columns, intercept, how, lattice)(given, quick)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(quick.filled, plain.filled)
        np.testing.assert_array_equal(quick.clamped, plain.clamped)


def test_rows_rounded_out_of_the_ball_equal_reference() -> None:
    """Rows that round out of the ball, with more columns than the lattice was made for."""
    columns = NUMBERS[:1] * 40
    rng = np.random.default_rng(0)
    given = rng.choice([-0.9, 0.9], size=(40, 500))
    lattice = Lattice(1, 10)
    found = Fused(columns, False, Unit(), lattice)(given, Repairs.none(40))
    plain = Recipe(columns, False, Unit(), lattice).integers(given, Repairs.none(40))
    np.testing.assert_array_equal(found, plain)
    units = found.astype(np.int64)
    assert ((units * units).sum(axis=0) <= lattice.ball).all()


def test_uncompiled_kernel_gives_same_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As plain Python, without a compiler."""
    given = cells(len(COLUMNS), 60)
    expected = Fused(COLUMNS, True, Unit(), Lattice(9, 12))(given, Repairs.none(5))
    monkeypatch.setattr("gramercy.tables.normalise_kernel.compiled", lambda function: function)
    with np.errstate(all="ignore"):
        found = Fused(COLUMNS, True, Unit(), Lattice(9, 12))(given, Repairs.none(5))
    np.testing.assert_array_equal(found, expected)


def table(folder: Path, rows: int) -> tuple[str, Contract]:
    rng = np.random.default_rng(2)
    columns = {f"c{k}": rng.normal(size=rows) for k in range(6)}
    columns["c2"][::7] = np.nan
    path = folder / "t.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=1000)
    return str(path), Contract.model_validate(contract_facts(path, rows=rows, p=6))


@pytest.mark.parametrize("folds", [1, 3])
def test_thread_count_does_not_change_sums(
    folds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, contract = table(tmp_path, 30_000)
    lattice = Lattice(6, 16)
    monkeypatch.setattr("gramercy.tables.parquet.BATCH_CELLS", 6 * 700)

    def summed() -> Accumulated:
        assign = RoundRobin(folds) if folds > 1 else None
        return accumulate(open_source(path), contract, Unit(), lattice, folds=folds, assign=assign)

    plainly = summed()
    monkeypatch.setattr(gramercy.tables.recipe, "_LARGE", 0)
    for threads, _ in product((1, 2, 5), range(2)):
        monkeypatch.setattr("gramercy.tables.passes.available", lambda threads=threads: threads)
        quickly = summed()
        assert quickly.rows == plainly.rows == 30_000
        for one, other in zip(quickly.parts, plainly.parts, strict=True):
            assert one.gram is not None
            assert (one.gram == other.gram).all()
            assert one.rows == other.rows
        assert (quickly.repairs.filled == plainly.repairs.filled).all()
        assert (quickly.repairs.clamped == plainly.repairs.clamped).all()


def test_error_in_a_thread_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, contract = table(tmp_path, 5_000)
    monkeypatch.setattr(gramercy.tables.recipe, "_LARGE", 0)
    monkeypatch.setattr("gramercy.tables.passes.available", lambda: 3)

    def broken(*given: Any) -> Any:
        raise TableError("no", "none")

    monkeypatch.setattr(Recipe, "integers", broken)
    with pytest.raises(TableError, match="no"):
        accumulate(open_source(path), contract, Unit(), Lattice(6, 16))
