"""Numbers on disk: matrices, histograms and published rows.

A matrix is Parquet in long form (canonical), .npy, and CSV if it is small.

One that is compact has neither .npy nor CSV if it is large. The matrices of groups are one
Parquet file in long form, with the upper triangle of each matrix. Histograms are one Parquet file
with a row for every bin.
"""

from __future__ import annotations

import contextlib
import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.archive.bundles.package import not_a_formula
from gramercy.archive.bundles.parquet_limits import (
    PLAIN,
    Page,
    check_pages,
    codes_of,
    has_schema,
    open_checked,
    read_bounded,
    texts_of,
)
from gramercy.schemas import families, wordings
from gramercy.schemas.column import level_names
from gramercy.schemas.errors import BundleError
from gramercy.schemas.evidence import ROW_LENGTHS, TURNED_LENGTHS, Histogram
from gramercy.schemas.facts import MAX_ENTRIES, ColumnFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseManifest

Array = NDArray[np.float64]


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
LARGEST = 1e100  # entry of a matrix of a release: products of several are finite
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
        Shape (p, p), symmetric up to rounding; the upper triangle is written on both sides.
    """
    files = matrix_files(stem, len(names), compact=compact)
    i, j = np.triu_indices(len(names))
    matrix = matrix.copy()
    matrix[j, i] = matrix[i, j]
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
    folder: Path,
    stem: str,
    names: Sequence[str],
    *,
    compact: bool = False,
    largest: float = sys.float_info.max,
) -> NDArray[np.float64]:
    """Read a matrix, and check that all its formats contain the same numbers.

    A few bytes of Parquet may state a matrix that needs any amount of memory. So a compact one is
    read only after another one with the same columns, whose .npy file is as large as the matrix.

    `largest`: absolute value of an entry; those of a release leave room for products.
    """
    files = matrix_files(stem, len(names), compact=compact)
    if f"{stem}.npy" not in files:
        return _read_parquet(folder / files[0], list(names), largest)
    matrix = _read_npy(folder / f"{stem}.npy", len(names), largest)
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


def _read_parquet(path: Path, names: list[str], largest: float) -> NDArray[np.float64]:
    matrix = np.zeros((len(names), len(names)))
    try:
        matrix[np.triu_indices(len(names))] = _upper_triangle(path, names)
        valid = _are_within(matrix, largest)
    except Exception:  # a file that was tampered with may make a parser raise anything
        valid = False
    if not valid:
        raise _not_a_matrix(str(path), len(names))
    return matrix + np.triu(matrix, 1).T


def _are_within(numbers: NDArray[np.float64], largest: float = LARGEST) -> bool:
    """Whether numbers are finite, and at most this large."""
    return bool((np.abs(numbers) <= largest).all())


def _read_npy(path: Path, p: int, largest: float) -> NDArray[np.float64]:
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
        valid = _are_within(matrix, largest) and bool((matrix == matrix.T).all())
    except Exception:  # a file that was tampered with may make NumPy raise anything
        valid = False
    if not valid:
        raise _not_a_matrix(str(path), p)
    return matrix


GROUPS = "groups.parquet"
_GROUPS_SCHEMA = pa.schema(
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
_GROUP_SCHEMA = pa.schema([_GROUPS_SCHEMA.field(x) for x in ("group", "row", "col", "value")])
# The file with the further matrices of groups: in that of the matrix if they have its columns.
GROUP_FILES = {"lost": GROUPS, "missing": "groups_missing.parquet"}


@dataclass(frozen=True)
class GroupMatrices:
    """The second moments of one group of rows."""

    level: str  # name of the group
    raw: Array  # the matrix as released; shape (p, p)
    denoised: Array  # the matrix with shrunken eigenvalues; shape (p, p)
    # the matrices of its folds as released, if there are any; shape (p, p) each
    folds: tuple[Array, ...] = ()
    further: Mapping[str, Array] = field(default_factory=dict)  # its further matrices, if any


def write_groups(folder: Path, manifest: ReleaseManifest, groups: Sequence[GroupMatrices]) -> None:
    """Write the matrices of all groups."""
    names = manifest.names
    _write_missing(folder, manifest, groups)
    i, j = np.triu_indices(len(names))
    parts = []
    for group in groups:
        none = np.full_like(group.raw, np.nan)
        matrices = [(0, group.raw, group.denoised, group.further.get("lost", none))]
        matrices += [(k, fold, none, none) for k, fold in enumerate(group.folds, 1)]
        for fold, value, denoised, lost in matrices:
            columns = {
                "group": pa.array([group.level]).take(pa.array(np.zeros(i.size, np.int64))),
                "fold": pa.array(np.full(i.size, fold, np.int32)),
                "row": pa.array(names, pa.string()).take(pa.array(i)),
                "col": pa.array(names, pa.string()).take(pa.array(j)),
                "value": pa.array(value[i, j]),
                "denoised": pa.array(denoised[i, j], from_pandas=True),
                "lost": pa.array(lost[i, j], from_pandas=True),
            }
            parts.append(pa.table(columns, schema=_GROUPS_SCHEMA))
    pq.write_table(pa.concat_tables(parts), folder / GROUPS, store_schema=False, compression="none")


def _write_missing(
    folder: Path, manifest: ReleaseManifest, groups: Sequence[GroupMatrices]
) -> None:
    """Write the matrices of missing cells of all groups, if there are any."""
    names, parts = manifest.further_names("missing"), []
    i, j = np.triu_indices(len(names))
    for group in groups:
        if "missing" not in group.further:
            continue
        columns = {
            "group": pa.array([group.level]).take(pa.array(np.zeros(i.size, np.int64))),
            "row": pa.array(names, pa.string()).take(pa.array(i)),
            "col": pa.array(names, pa.string()).take(pa.array(j)),
            "value": pa.array(group.further["missing"][i, j]),
        }
        parts.append(pa.table(columns, schema=_GROUP_SCHEMA))
    if parts:
        path = folder / GROUP_FILES["missing"]
        pq.write_table(pa.concat_tables(parts), path, store_schema=False, compression="none")


def read_groups(folder: Path, manifest: ReleaseManifest) -> tuple[GroupMatrices, ...]:
    """Read the matrices of all groups of a release; empty without groups."""
    if not manifest.groups:
        return ()
    path = folder / GROUPS
    # A file that was tampered with may make Arrow raise anything.
    with contextlib.suppress(Exception):
        groups = tuple(_groups(path, manifest))
        if "missing" not in manifest.further_facts:
            return groups
        path = folder / GROUP_FILES["missing"]
        pairs = zip(groups, _missing(path, manifest), strict=True)
        return tuple(replace(x, further={**x.further, "missing": own}) for x, own in pairs)
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
    if not has_schema(table, _GROUPS_SCHEMA):
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
    moderate = all(_are_within(each[~np.isnan(each)]) for each in (denoised, lost))
    if not (in_order and moderate and _are_within(value) and (is_whole | is_fold).all()):
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
            {"lost": whole_lost} if has_lost else {},
        )


def _missing(path: Path, manifest: ReleaseManifest) -> Array:
    """The matrices of missing cells of all groups; ValueError if the file has others."""
    names, levels = manifest.further_names("missing"), [group.level for group in manifest.groups]
    i, j = np.triu_indices(len(names))
    if len(levels) * len(names) ** 2 > 4 * MAX_ENTRIES:  # at most twice as many columns
        raise ValueError
    table, shape = read_bounded(path, len(levels) * i.size), (len(levels), i.size)
    if not has_schema(table, _GROUP_SCHEMA):
        raise ValueError
    expected = {"group": (levels, np.arange(len(levels))[:, None]), "row": (names, i)}
    for name, (words, codes) in {**expected, "col": (names, j)}.items():
        if not (codes_of(table[name], words).reshape(shape) == codes).all():
            raise ValueError
    matrices = np.empty((len(levels), len(names), len(names)))
    matrices[:, i, j] = matrices[:, j, i] = table["value"].to_numpy().reshape(shape)
    if not _are_within(matrices):
        raise ValueError
    return matrices


AnyColumn = ColumnFacts | LevelsFacts

MARGINALS = "marginals.parquet"
_BINS_SCHEMA = pa.schema(
    [
        ("stage", pa.int32()),
        ("column", pa.string()),
        ("lower", pa.float64()),
        ("upper", pa.float64()),
        ("level", pa.string()),
        ("count", pa.int64()),
        ("sd", pa.float64()),
    ]
)
_TEXTS = ["column", "level"]
_MOST_BINS = 512  # of a numeric column, or of row lengths; about 280 are possible
_LARGEST_COUNT = 1 << 53


def write_histograms(folder: Path, histograms: Sequence[Histogram]) -> None:
    """Write histograms in their order."""
    table = pa.table(
        {
            "stage": pa.array(np.concatenate([_of_bins(h, h.stage) for h in histograms])),
            "column": pa.array([h.column for h in histograms for _ in h.count]),
            "lower": pa.array(np.concatenate([h.lower for h in histograms]), from_pandas=True),
            "upper": pa.array(np.concatenate([h.upper for h in histograms]), from_pandas=True),
            "level": pa.array([x for h in histograms for x in h.level], pa.string()),
            "count": pa.array(np.concatenate([h.count for h in histograms])),
            "sd": pa.array(np.concatenate([_of_bins(h, h.sd) for h in histograms])),
        }
    )
    pq.write_table(
        table.cast(_BINS_SCHEMA), folder / MARGINALS, store_schema=False, compression="none"
    )


def _of_bins(histogram: Histogram, value: float) -> Array:
    return np.full(histogram.count.shape, value)


def read_histograms(
    folder: Path, columns: Sequence[AnyColumn], stages: int, *, turned: bool = False
) -> tuple[Histogram, ...]:
    """Read the histograms of a release.

    Parameters
    ----------
    stages
        Number of stages, each with a histogram of every column; row lengths come after them.
    turned
        Whether row lengths in the metric of a pilot matrix come last.
    """
    path = folder / MARGINALS
    # A file that was tampered with may make Arrow raise anything.
    with contextlib.suppress(Exception):
        bins = _read(path, most_bins(columns, stages))
        return tuple(_histograms(bins, columns, stages, turned=turned))
    raise wordings.not_histograms(str(path))


def most_bins(columns: Sequence[AnyColumn], stages: int) -> int:
    """The largest number of bins of all columns in all stages, and of row lengths."""
    bins = [
        len(column.levels) + 1 if isinstance(column, LevelsFacts) else _MOST_BINS
        for column in columns
    ]
    return stages * sum(bins) + 2 * _MOST_BINS


@dataclass(frozen=True)
class _Bins:
    """All bins of a file, in its order."""

    stage: NDArray[np.int32]
    column: tuple[str | None, ...]
    lower: Array
    upper: Array
    level: tuple[str | None, ...]
    count: NDArray[np.int64]
    sd: Array


def _read(path: Path, most_bins: int) -> _Bins:
    table = read_bounded(path, most_bins)
    if not has_schema(table, _BINS_SCHEMA):
        raise ValueError
    stage, lower, upper, count, sd = (
        table[name].to_numpy() for name in ("stage", "lower", "upper", "count", "sd")
    )
    column, level = (texts_of(table[name]) for name in _TEXTS)
    return _Bins(stage, column, lower, upper, level, count, sd)


def _histograms(
    bins: _Bins, columns: Sequence[AnyColumn], stages: int, *, turned: bool
) -> Iterator[Histogram]:
    """The histograms in their order; ValueError if the bins are not those."""
    keys = list(zip(bins.stage.tolist(), bins.column, strict=True))
    starts = [k for k in range(len(keys)) if k == 0 or keys[k] != keys[k - 1]]
    expected: list[tuple[int, str, AnyColumn | None]] = [
        (stage, column.name, column) for stage in range(1, stages + 1) for column in columns
    ]
    expected.append((stages + 1, ROW_LENGTHS, None))
    if turned:
        expected.append((stages + 2, TURNED_LENGTHS, None))
    for (stage, name, column), start, end in zip(
        expected, starts, [*starts[1:], len(keys)], strict=True
    ):
        if keys[start] != (stage, name):
            raise ValueError
        part = slice(start, end)
        histogram = Histogram(
            stage,
            name,
            bins.lower[part],
            bins.upper[part],
            bins.level[part],
            bins.count[part],
            float(bins.sd[start]),
        )
        # All counts are plausible, and have noise of one standard deviation.
        one_noise = 0 < histogram.sd < np.inf and (bins.sd[part] == histogram.sd).all()
        plausible = (np.abs(histogram.count) <= _LARGEST_COUNT).all()
        if not (one_noise and plausible and _has_bins(histogram, column)):
            raise ValueError
        yield histogram


def _has_bins(histogram: Histogram, column: AnyColumn | None) -> bool:
    """Whether a histogram has the bins of a kind of column; None for those of row lengths."""
    lower, upper = histogram.lower, histogram.upper
    if isinstance(column, LevelsFacts):
        levels = (*level_names(column.levels), None)
        return histogram.level == levels and bool(np.isnan([lower, upper]).all())
    # Row lengths have no upper limit; other columns have a last bin for missing cells.
    edges = lower if column is None else np.append(lower[:-1], upper[-2:-1])
    ends = [upper[-1]] if column is None else [lower[-1], upper[-1]]
    return (
        histogram.level == (None,) * lower.size
        and edges.size >= 2
        and bool(np.isfinite(edges).all() and (np.diff(edges) > 0).all())
        and np.array_equal(upper[:-1], edges[1:])
        and bool(np.isnan(ends).all())
    )


_BATCH_CELLS = 1 << 20
_CODECS = {"SNAPPY", "UNCOMPRESSED"}
_PAGE_BYTES = 4 << 20  # pages have about 1 MiB
_ENCODINGS = {PLAIN}


def most_row_bytes(columns: Sequence[str], rows: int) -> int:
    """Bytes that a file of published rows may have, if it is written by `rows_per_batch`."""
    names = sum(len(name.encode()) for name in columns)
    batches = 1 + rows // rows_per_batch(columns)
    # Every batch has a header and a description of each column, with its name.
    return 10 * rows * len(columns) + batches * (512 * len(columns) + 2 * names)


def rows_per_batch(columns: Sequence[str]) -> int:
    """Number of rows per batch."""
    return max(1, _BATCH_CELLS // len(columns))


class RowWriter:
    """Writes rows of numbers, batch by batch.

    Parameters
    ----------
    path
        A file that does not exist yet.
    columns
        Names of the columns.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._schema = pa.schema([(name, pa.float64()) for name in columns])
        self._file = pq.ParquetWriter(path, self._schema, use_dictionary=False)  # few values repeat
        self.rows = 0

    def write(self, cells: Array) -> None:
        """Append rows, shape (columns, rows)."""
        self._file.write_table(pa.table(list(cells), schema=self._schema))
        self.rows += cells.shape[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._file.close()


def read_rows(path: Path, columns: Sequence[str], rows: int) -> Iterator[Array]:
    """Batches of published rows, shape (columns, rows)."""
    rows_read, batch_rows = 0, rows_per_batch(columns)
    try:
        with path.open("rb") as stream, open_checked(stream) as file:
            _check_cells(stream, file, columns, rows)
            for batch in file.iter_batches(batch_rows, use_threads=False):
                cells = np.stack([_numbers(column) for column in batch.columns])
                rows_read += cells.shape[1]
                yield cells
    except Exception:  # a file that was tampered with may make Arrow raise anything
        rows_read = -1
    if rows_read != rows:
        raise families.CONTENT(
            "{path} does not contain the {rows} rows that were published.",
            "Fetch the bundle again from its curator.",
            path=str(path),
            rows=rows,
        )


def _check_cells(
    stream: IO[bytes], file: pq.ParquetFile, columns: Sequence[str], rows: int
) -> None:
    """Raise ValueError unless the file has these rows of numbers, each stored by itself.

    A dictionary or strong compression would let a small file state any number of rows.
    """
    chunks = (
        file.metadata.row_group(group).column(k)
        for group in range(file.metadata.num_row_groups)
        for k in range(file.metadata.num_columns)
    )
    if (
        file.metadata.num_rows != rows
        or file.schema_arrow != pa.schema([(name, pa.float64()) for name in columns])
        or any(chunk.compression not in _CODECS for chunk in chunks)
    ):
        raise ValueError
    check_pages(stream, file, _fits, _ENCODINGS)


def _fits(page: Page) -> bool:
    return max(page.size, page.compressed_size) <= _PAGE_BYTES


def _numbers(column: Any) -> Array:
    cells: Array = column.to_numpy(zero_copy_only=False)
    if not np.isfinite(cells).all():
        raise ValueError
    return cells
