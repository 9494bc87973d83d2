"""Matrices on disk: Parquet in long form (canonical), .npy, and CSV for small matrices.

A matrix that is compact has neither .npy nor CSV if it is large. The matrices of groups are one
Parquet file in long form, with the upper triangle of each matrix.
"""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.archive.bundles.escaped_texts import not_a_formula
from gramercy.archive.bundles.parquet_limits import codes_of, has_schema, read_bounded
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import BundleError
from gramercy.schemas.facts import MAX_ENTRIES
from gramercy.schemas.manifest import ReleaseManifest


def _not_a_matrix(path: str, columns: int) -> BundleError:
    return families.CONTENT(
        "{path} is not a symmetric matrix of {columns} columns.",
        "Fetch the bundle again from its curator.",
        path=path,
        columns=columns,
    )


SMALL = 500  # columns; a matrix with more has no CSV file
_LABEL_BYTES, _NUMBER_BYTES = 8, 32  # at most, for a character of a name and for a number in CSV
_HEADER_BYTES = 1 << 14
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def matrix_files(stem: str, p: int, *, compact: bool = False) -> list[str]:
    """The files of a matrix of p columns, the canonical one first."""
    files = [f"{stem}.parquet", f"{stem}.npy", f"{stem}.csv"]
    return files if p <= SMALL else files[: 1 if compact else 2]


def write_matrix(
    folder: Path,
    stem: str,
    matrix: NDArray[np.float64],
    names: Sequence[str],
    *,
    compact: bool = False,
) -> None:
    """Write a symmetric matrix in its formats.

    Parameters
    ----------
    matrix
        Shape (p, p), symmetric.
    """
    files = matrix_files(stem, len(names), compact=compact)
    i, j = np.triu_indices(len(names))
    words = pa.array(list(names), pa.string())
    rows, cols = (pa.DictionaryArray.from_arrays(pa.array(k, pa.int32()), words) for k in (i, j))
    table = pa.table({"row": rows, "col": cols, "value": pa.array(matrix[i, j])})
    pq.write_table(table, folder / f"{stem}.parquet", store_schema=False, compression="zstd")
    if f"{stem}.npy" in files:
        np.save(folder / f"{stem}.npy", matrix, allow_pickle=False)
    if f"{stem}.csv" in files:
        # With 17 digits, every double is read back exactly.
        labels = [not_a_formula(name) for name in names]
        frame = pd.DataFrame(matrix, index=pd.Index(labels, name="column"), columns=labels)
        frame.to_csv(folder / f"{stem}.csv", float_format="%.17g", lineterminator="\n")


def read_matrix(
    folder: Path, stem: str, names: Sequence[str], *, compact: bool = False
) -> NDArray[np.float64]:
    """Read a matrix, and check that all its formats contain the same numbers.

    A few bytes of Parquet may state a matrix that needs any amount of memory. So a compact one is
    read only after another one with the same columns, whose .npy file is as large as the matrix.
    """
    files = matrix_files(stem, len(names), compact=compact)
    if f"{stem}.npy" not in files:
        return _read_parquet(folder / files[0], list(names))
    matrix = _read_npy(folder / f"{stem}.npy", len(names))
    comparisons = {".parquet": _same_parquet, ".npy": None, ".csv": _same_csv}
    for file in files:
        compare = comparisons[Path(file).suffix]
        try:
            same = compare is None or compare(folder / file, matrix, list(names))
        except Exception:  # a file that was tampered with may make a parser raise anything
            same = False
        if not same:
            raise wordings.formats_differ(str(folder / file), f"{stem}.npy")
    return matrix


def _same_parquet(path: Path, matrix: NDArray[np.float64], names: list[str]) -> bool:
    return np.array_equal(_upper_triangle(path, names), matrix[np.triu_indices(len(names))])


def _upper_triangle(path: Path, names: list[str]) -> NDArray[np.float64]:
    i, j = np.triu_indices(len(names))
    table = read_bounded(path, i.size)
    complete = (
        table.column_names == ["row", "col", "value"]
        and np.array_equal(codes_of(table["row"], names), i)
        and np.array_equal(codes_of(table["col"], names), j)
    )
    values: NDArray[np.float64] = table["value"].to_numpy()
    if not complete or values.dtype != np.float64:
        raise ValueError
    return values


def _same_csv(path: Path, matrix: NDArray[np.float64], names: list[str]) -> bool:
    labels = 2 * sum(_LABEL_BYTES * len(name) + _NUMBER_BYTES for name in names)
    if path.stat().st_size > labels + _NUMBER_BYTES * len(names) * (len(names) + 1):
        return False
    with path.open(encoding="utf-8", newline="") as stream:
        header, *lines = csv.reader(stream)
    cells = np.array([[float(cell) for cell in line[1:]] for line in lines])
    stated = [line[0] for line in lines]
    labelled = header[1:] == stated == [not_a_formula(name) for name in names]
    return labelled and np.array_equal(cells, matrix)


def _read_parquet(path: Path, names: list[str]) -> NDArray[np.float64]:
    matrix = np.zeros((len(names), len(names)))
    try:
        matrix[np.triu_indices(len(names))] = _upper_triangle(path, names)
        valid = bool(np.isfinite(matrix).all())
    except Exception:  # a file that was tampered with may make a parser raise anything
        valid = False
    if not valid:
        raise _not_a_matrix(str(path), len(names))
    return matrix + np.triu(matrix, 1).T


def _read_npy(path: Path, p: int) -> NDArray[np.float64]:
    try:
        # Checked before anything is read: a header may state any size.
        if path.stat().st_size > 8 * p * p + _HEADER_BYTES:
            raise ValueError
        with path.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            shape, _, dtype = _HEADERS[version](stream)
            start = stream.tell()
        stated = shape == (p, p) and dtype == np.dtype(np.float64)
        if not stated or path.stat().st_size != start + 8 * p * p:
            raise ValueError
        matrix: NDArray[np.float64] = np.load(path, allow_pickle=False)
        valid = bool(np.isfinite(matrix).all() and (matrix == matrix.T).all())
    except Exception:  # a file that was tampered with may make NumPy raise anything
        valid = False
    if not valid:
        raise _not_a_matrix(str(path), p)
    return matrix


Array = NDArray[np.float64]

GROUPS = "groups.parquet"
_SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("fold", pa.int32()),
        ("row", pa.string()),
        ("col", pa.string()),
        ("value", pa.float64()),
        ("denoised", pa.float64()),
        ("lost", pa.float64()),
    ]
)
_NUMBERS = ("fold", "value", "denoised", "lost")


@dataclass(frozen=True)
class GroupMatrices:
    """The second moments of one group of rows."""

    level: str  # name of the group
    raw: Array  # the matrix as released; shape (p, p)
    denoised: Array  # the matrix with shrunken eigenvalues; shape (p, p)
    # the matrices of its folds as released, if there are any; shape (p, p) each
    folds: tuple[Array, ...] = ()
    lost: Array | None = None  # the matrix of its lost moments, if there is one; shape (p, p)


def write_groups(folder: Path, names: Sequence[str], groups: Sequence[GroupMatrices]) -> None:
    """Write the matrices of all groups."""
    i, j = np.triu_indices(len(names))
    parts = []
    for group in groups:
        none = np.full_like(group.raw, np.nan)
        matrices = [(0, group.raw, group.denoised, none if group.lost is None else group.lost)]
        matrices += [(k, fold, none, none) for k, fold in enumerate(group.folds, 1)]
        for fold, value, denoised, lost in matrices:
            columns = {
                "group": _repeated(group.level, i.size),
                "fold": pa.array(np.full(i.size, fold, np.int32)),
                "row": pa.array(names, pa.string()).take(pa.array(i)),
                "col": pa.array(names, pa.string()).take(pa.array(j)),
                "value": pa.array(value[i, j]),
                "denoised": pa.array(denoised[i, j], from_pandas=True),
                "lost": pa.array(lost[i, j], from_pandas=True),
            }
            parts.append(pa.table(columns, schema=_SCHEMA))
    pq.write_table(pa.concat_tables(parts), folder / GROUPS, store_schema=False, compression="none")


def _repeated(text: str, times: int) -> pa.Array:
    return pa.array([text]).take(pa.array(np.zeros(times, np.int64)))


def read_groups(folder: Path, manifest: ReleaseManifest) -> tuple[GroupMatrices, ...]:
    """Read the matrices of all groups of a release; empty without groups."""
    if not manifest.groups:
        return ()
    path = folder / GROUPS
    # A file that was tampered with may make Arrow raise anything.
    with contextlib.suppress(Exception):
        return tuple(_groups(path, manifest))
    raise families.CONTENT(
        "{path} does not contain the matrices of the groups that its manifest describes.",
        "Fetch the bundle again from its curator.",
        path=str(path),
    )


def _groups(path: Path, manifest: ReleaseManifest) -> Iterator[GroupMatrices]:
    """The groups; ValueError if the file has others."""
    names = manifest.names
    i, j = np.triu_indices(len(names))
    folds = range(len(manifest.groups[0].fold_rows) + 1)
    count = len(manifest.groups) * len(folds)
    if count * len(names) ** 2 > 2 * MAX_ENTRIES:  # a whole group and its folds
        raise ValueError
    rows = count * i.size
    table = read_bounded(path, rows)
    if not has_schema(table, _SCHEMA):
        raise ValueError
    shape = (len(manifest.groups), len(folds), i.size)
    levels = [group.level for group in manifest.groups]
    expected = {"group": (levels, np.arange(len(levels))[:, None, None]), "row": (names, i)}
    for name, (words, codes) in {**expected, "col": (names, j)}.items():
        if not (codes_of(table[name], words).reshape(shape) == codes).all():
            raise ValueError
    fold, value, denoised, lost = (table[x].to_numpy().reshape(shape) for x in _NUMBERS)
    has_lost = manifest.lost is not None
    is_whole = (fold == 0) & np.isfinite(denoised) & (np.isfinite(lost) == has_lost)
    is_fold = (fold > 0) & np.isnan(denoised) & np.isnan(lost)
    in_order = bool((fold == np.array(folds)[:, None]).all())
    if not (in_order and np.isfinite(value).all() and (is_whole | is_fold).all()):
        raise ValueError
    of_groups = zip(manifest.groups, value, denoised[:, 0], lost[:, 0], strict=True)
    for facts, entries, whole, own in of_groups:
        matrices = np.empty((len(folds) + 2, len(names), len(names)))
        matrices[:, i, j] = matrices[:, j, i] = [*entries, whole, own]
        raw, *of_folds, whole_denoised, whole_lost = matrices
        yield GroupMatrices(
            facts.level,
            raw,
            whole_denoised,
            tuple(of_folds),
            whole_lost if has_lost else None,
        )
