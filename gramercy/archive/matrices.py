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

from gramercy.schemas.errors import BundleError

CSV_UP_TO = 500  # columns


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
    pq.write_table(table, folder / f"{stem}.parquet", store_schema=False, compression="zstd")
    np.save(folder / f"{stem}.npy", matrix, allow_pickle=False)
    if len(names) <= CSV_UP_TO:
        # 17 digits: every double comes back as it was.
        frame = pd.DataFrame(matrix, index=pd.Index(names, name="column"), columns=list(names))
        frame.to_csv(folder / f"{stem}.csv", float_format="%.17g", lineterminator="\n")


def read_matrix(folder: Path, stem: str, names: Sequence[str]) -> NDArray[np.float64]:
    """Read a matrix from its .npy, and check that every other format holds the same numbers.

    Raises
    ------
    BundleError
        Naming the file that differs.
    """
    matrix = _read_npy(folder / f"{stem}.npy", len(names))
    same_as = {".parquet": _same_long, ".npy": None, ".csv": _same_square}
    for file in matrix_files(stem, len(names)):
        same = same_as[Path(file).suffix]
        try:
            held = same is None or same(folder / file, matrix, list(names))
        except Exception:  # whatever a parser makes of a file that was tampered with
            held = False
        if not held:
            raise BundleError(f"{folder / file}: does not hold the matrix of {stem}.npy.")
    return matrix


def _same_long(path: Path, matrix: NDArray[np.float64], names: list[str]) -> bool:
    i, j = np.triu_indices(len(names))
    # Without Arrow's threads: a process that ends while they start is aborted.
    table = pq.read_table(io.BytesIO(path.read_bytes()), use_threads=False, pre_buffer=False)
    labels = np.array(names, dtype=object)
    return (
        table.column_names == ["row", "col", "value"]
        and table["row"].to_pylist() == labels[i].tolist()
        and table["col"].to_pylist() == labels[j].tolist()
        and np.array_equal(table["value"].to_numpy(), matrix[i, j])
    )


def _same_square(path: Path, matrix: NDArray[np.float64], names: list[str]) -> bool:
    with path.open(encoding="utf-8", newline="") as stream:
        header, *lines = csv.reader(stream)
    cells = np.array([[float(cell) for cell in line[1:]] for line in lines])
    labelled = header[1:] == names == [line[0] for line in lines]
    return labelled and np.array_equal(cells, matrix)


def _read_npy(path: Path, p: int) -> NDArray[np.float64]:
    try:
        matrix: NDArray[np.float64] = np.load(path, allow_pickle=False)
        sound = matrix.dtype == np.float64 and matrix.shape == (p, p)
        sound = sound and bool(np.isfinite(matrix).all() and (matrix == matrix.T).all())
    except Exception:  # whatever numpy makes of a file that was tampered with
        sound = False
    if not sound:
        raise BundleError(f"{path}: is not a symmetric matrix of {p} columns.")
    return matrix
