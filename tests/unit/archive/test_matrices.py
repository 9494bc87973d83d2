"""Formats of matrices: all of them for small ones, Parquet alone for large compact ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.number_files import SMALL, matrix_files, read_matrix, write_matrix
from gramercy.schemas import families
from tests.support.problems import raises

NAMES = [f"c{k}" for k in range(SMALL + 1)]


def symmetric(p: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    drawn = np.random.default_rng(p).normal(size=(p, p))
    return drawn + drawn.T


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize(
    ("p", "suffixes"), [(3, {"parquet", "npy", "csv"}), (SMALL + 1, {"parquet", "npy"})]
)
def test_matrix_is_read_from_its_formats(
    tmp_path: Path, p: int, suffixes: set[str], compact: bool
) -> None:
    matrix, names = symmetric(p), NAMES[:p]
    write_matrix(tmp_path, "m", matrix, names, compact=compact)
    files = {path.name for path in tmp_path.iterdir()}
    assert files == set(matrix_files("m", p, compact=compact))
    expected = {"parquet"} if compact and p > SMALL else suffixes
    assert files == {f"m.{suffix}" for suffix in expected}
    assert np.array_equal(read_matrix(tmp_path, "m", names, compact=compact), matrix)


@pytest.mark.parametrize("p", [3, SMALL + 1])
def test_matrix_is_symmetric_in_all_formats_after_rounding(tmp_path: Path, p: int) -> None:
    matrix = symmetric(p)
    rounded = matrix.copy()
    rounded[1, 0] = np.nextafter(rounded[1, 0], np.inf)
    write_matrix(tmp_path, "m", rounded, NAMES[:p])
    assert np.array_equal(read_matrix(tmp_path, "m", NAMES[:p]), matrix)


@pytest.mark.parametrize("damage", ["value", "order", "missing"])
def test_damaged_compact_matrix_is_refused(tmp_path: Path, damage: str) -> None:
    write_matrix(tmp_path, "m", symmetric(len(NAMES)), NAMES, compact=True)
    path = tmp_path / "m.parquet"
    table = pd.read_parquet(path)
    if damage == "value":
        table.loc[5, "value"] = np.inf
    elif damage == "order":
        table.loc[[5, 6], "col"] = table.loc[[6, 5], "col"].to_numpy()
    else:
        table = table.iloc[1:]
    table.to_parquet(path, index=False)
    with raises(families.CONTENT, path=str(path)):
        read_matrix(tmp_path, "m", NAMES, compact=True)
