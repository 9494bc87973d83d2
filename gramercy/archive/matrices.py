"""Matrices on disk: Parquet in long form (canonical), .npy, and CSV for small matrices."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.schemas.problems.bundle import formats_differ, not_a_matrix

CSV_UP_TO = 500  # columns; a matrix with more has no CSV file


def matrix_files(stem: str, p: int) -> list[str]:
    """The files of a matrix of p columns, the canonical one first."""
    files = [f"{stem}.parquet", f"{stem}.npy"]
    return [*files, f"{stem}.csv"] if p <= CSV_UP_TO else files


def write_matrix(
    folder: Path, stem: str, matrix: NDArray[np.float64], names: Sequence[str]
) -> None:
    """Write a symmetric matrix in every format.

    Parameters
    ----------
    folder, stem
        The folder, and the common name of the files.
    matrix
        Shape (p, p), symmetric.
    names
        The p row and column names.
    """
    i, j = np.triu_indices(len(names))
    labels = pa.array(list(names), pa.string())
    rows, cols = (pa.DictionaryArray.from_arrays(pa.array(k, pa.int32()), labels) for k in (i, j))
    table = pa.table({"row": rows, "col": cols, "value": pa.array(matrix[i, j])})
    pq.write_table(table, folder / f"{stem}.parquet", store_schema=False, compression="zstd")
    np.save(folder / f"{stem}.npy", matrix, allow_pickle=False)
    if len(names) <= CSV_UP_TO:
        # With 17 digits, every double is read back exactly.
        frame = pd.DataFrame(matrix, index=pd.Index(names, name="column"), columns=list(names))
        frame.to_csv(folder / f"{stem}.csv", float_format="%.17g", lineterminator="\n")


def read_matrix(folder: Path, stem: str, names: Sequence[str]) -> NDArray[np.float64]:
    """Read a matrix from its .npy file, and check that all formats contain the same numbers.

    Raises
    ------
    BundleError
        Naming the file that differs.
    """
    matrix = _read_npy(folder / f"{stem}.npy", len(names))
    comparisons = {".parquet": _same_parquet, ".npy": None, ".csv": _same_csv}
    for file in matrix_files(stem, len(names)):
        compare = comparisons[Path(file).suffix]
        try:
            same = compare is None or compare(folder / file, matrix, list(names))
        except Exception:  # a file that was tampered with may make a parser raise anything
            same = False
        if not same:
            raise formats_differ(str(folder / file), f"{stem}.npy")
    return matrix


def _same_parquet(path: Path, matrix: NDArray[np.float64], names: list[str]) -> bool:
    i, j = np.triu_indices(len(names))
    # Without Arrow's threads, because a process that ends while they start is aborted.
    table = pq.read_table(io.BytesIO(path.read_bytes()), use_threads=False, pre_buffer=False)
    labels = np.array(names, dtype=object)
    return (
        table.column_names == ["row", "col", "value"]
        and table["row"].to_pylist() == labels[i].tolist()
        and table["col"].to_pylist() == labels[j].tolist()
        and np.array_equal(table["value"].to_numpy(), matrix[i, j])
    )


def _same_csv(path: Path, matrix: NDArray[np.float64], names: list[str]) -> bool:
    with path.open(encoding="utf-8", newline="") as stream:
        header, *lines = csv.reader(stream)
    cells = np.array([[float(cell) for cell in line[1:]] for line in lines])
    labelled = header[1:] == names == [line[0] for line in lines]
    return labelled and np.array_equal(cells, matrix)


def _read_npy(path: Path, p: int) -> NDArray[np.float64]:
    try:
        matrix: NDArray[np.float64] = np.load(path, allow_pickle=False)
        valid = matrix.dtype == np.float64 and matrix.shape == (p, p)
        valid = valid and bool(np.isfinite(matrix).all() and (matrix == matrix.T).all())
    except Exception:  # a file that was tampered with may make NumPy raise anything
        valid = False
    if not valid:
        raise not_a_matrix(str(path), p)
    return matrix
