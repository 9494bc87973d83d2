"""Matrices on disk: long Parquet (canonical), .npy beside it, and CSV where people may look."""

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

from schemas.errors import BundleError

CSV_UP_TO = 500  # columns


def write_matrix(
    folder: Path, stem: str, matrix: NDArray[np.float64], names: Sequence[str]
) -> list[str]:
    """Write a symmetric matrix in every format; returns the file names, the canonical one first.

    Parameters
    ----------
    folder, stem
        Where, and the files' common name.
    matrix
        Shape (p, p), symmetric.
    names
        The p row and column names.
    """
    i, j = np.triu_indices(len(names))
    labels = pa.array(list(names), pa.string())
    rows, cols = (pa.DictionaryArray.from_arrays(pa.array(k, pa.int32()), labels) for k in (i, j))
    table = pa.table({"row": rows, "col": cols, "value": pa.array(matrix[i, j])})
    files = [f"{stem}.parquet", f"{stem}.npy"]
    pq.write_table(table, folder / files[0], store_schema=False, compression="zstd")
    np.save(folder / files[1], matrix, allow_pickle=False)
    if len(names) <= CSV_UP_TO:
        files.append(f"{stem}.csv")
        # 17 digits: every double comes back as it was.
        frame = pd.DataFrame(matrix, index=pd.Index(names, name="column"), columns=list(names))
        frame.to_csv(folder / files[2], float_format="%.17g", lineterminator="\n")
    return files


def read_matrix(folder: Path, stem: str, names: Sequence[str]) -> NDArray[np.float64]:
    """Read a matrix from its .npy, and check that every other format holds the same numbers.

    Raises
    ------
    BundleError
        Naming the file that differs.
    """
    matrix = _read_npy(folder / f"{stem}.npy", len(names))
    i, j = np.triu_indices(len(names))
    long = folder / f"{stem}.parquet"
    table = pq.read_table(io.BytesIO(long.read_bytes()))
    labels = np.array(list(names), dtype=object)
    same = (
        table.column_names == ["row", "col", "value"]
        and table.num_rows == i.size
        and bool((np.asarray(table["row"].to_pylist(), dtype=object) == labels[i]).all())
        and bool((np.asarray(table["col"].to_pylist(), dtype=object) == labels[j]).all())
        and bool((table["value"].to_numpy() == matrix[i, j]).all())
    )
    if not same:
        raise BundleError(f"{long}: does not hold the matrix of {stem}.npy.")
    square = folder / f"{stem}.csv"
    if square.exists():
        with square.open(encoding="utf-8", newline="") as stream:
            header, *lines = csv.reader(stream)
        cells = np.array([[float(cell) for cell in line[1:]] for line in lines])
        labelled = header[1:] == list(names) == [line[0] for line in lines]
        if not labelled or not np.array_equal(cells, matrix):
            raise BundleError(f"{square}: does not hold the matrix of {stem}.npy.")
    return matrix


def _read_npy(path: Path, p: int) -> NDArray[np.float64]:
    try:
        matrix: NDArray[np.float64] = np.load(path, allow_pickle=False)
    except (OSError, ValueError):
        raise BundleError(f"{path}: is not a matrix.") from None
    if matrix.dtype != np.float64 or matrix.shape != (p, p) or not (matrix == matrix.T).all():
        raise BundleError(f"{path}: is not a symmetric matrix of {p} columns.")
    return matrix
