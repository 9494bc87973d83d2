"""Published histograms: one Parquet file with a row for every bin.

An archive may be hostile. The file is not compressed, because a compressed page may need any amount
of memory; texts stay dictionary-encoded, because a long one that is stored once could be repeated
in every row; and the footer must state a number of rows that the columns of the release can have.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.schemas.column import level_names
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.histogram import ROW_LENGTHS, Histogram
from gramercy.schemas.problems.bundle import not_histograms

Array = NDArray[np.float64]
AnyColumn = ColumnFacts | LevelsFacts

MARGINALS = "marginals.parquet"
_SCHEMA = pa.schema(
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
_BIN_BYTES, _FOOTER_BYTES = 64, 1 << 20  # larger than what is written
_LARGEST_COUNT = 1 << 53


def write_histograms(folder: Path, histograms: Sequence[Histogram]) -> None:
    """Write histograms in their order."""
    table = pa.table(
        {
            "stage": pa.array(np.concatenate([_repeated(h, h.stage) for h in histograms])),
            "column": pa.array([h.column for h in histograms for _ in h.count]),
            "lower": pa.array(np.concatenate([h.lower for h in histograms]), from_pandas=True),
            "upper": pa.array(np.concatenate([h.upper for h in histograms]), from_pandas=True),
            "level": pa.array([x for h in histograms for x in h.level], pa.string()),
            "count": pa.array(np.concatenate([h.count for h in histograms])),
            "sd": pa.array(np.concatenate([_repeated(h, h.sd) for h in histograms])),
        }
    )
    pq.write_table(table.cast(_SCHEMA), folder / MARGINALS, store_schema=False, compression="none")


def _repeated(histogram: Histogram, value: float) -> Array:
    return np.full(histogram.count.shape, value)


def read_histograms(
    folder: Path, columns: Sequence[AnyColumn], stages: int
) -> tuple[Histogram, ...]:
    """Read the histograms of a release.

    Parameters
    ----------
    folder
        The release.
    columns
        Its table columns.
    stages
        Number of stages, each with a histogram of every column; row lengths come after them.

    Raises
    ------
    BundleError
        If the file does not contain these histograms, with increasing edges and finite noise.
    """
    path = folder / MARGINALS
    try:
        bins = _read(path, _most_bins(columns, stages))
        return tuple(_histograms(bins, columns, stages))
    except Exception:  # a file that was tampered with may make Arrow raise anything
        pass
    raise not_histograms(str(path))


def _most_bins(columns: Sequence[AnyColumn], stages: int) -> int:
    bins = [
        len(column.levels) + 1 if isinstance(column, LevelsFacts) else _MOST_BINS
        for column in columns
    ]
    return stages * sum(bins) + _MOST_BINS


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
    if path.stat().st_size > _FOOTER_BYTES + most_bins * _BIN_BYTES:
        raise ValueError
    with pq.ParquetFile(
        io.BytesIO(path.read_bytes()), read_dictionary=_TEXTS, pre_buffer=False
    ) as file:
        if file.metadata.num_rows > most_bins or not _is_plain(file):
            raise ValueError
        table = file.read(use_threads=False).combine_chunks()
    stage, lower, upper, count, sd = (
        table[name].to_numpy() for name in ("stage", "lower", "upper", "count", "sd")
    )
    column, level = (_texts(table[name]) for name in _TEXTS)
    return _Bins(stage, column, lower, upper, level, count, sd)


def _is_plain(file: pq.ParquetFile) -> bool:
    """Whether a file has the columns of `write_histograms`, and is not compressed."""
    types = {name: pa.dictionary(pa.int32(), pa.string()) for name in _TEXTS}
    expected = [(field.name, types.get(field.name, field.type)) for field in _SCHEMA]
    facts = file.metadata
    chunks = (
        facts.row_group(group).column(k)
        for group in range(facts.num_row_groups)
        for k in range(facts.num_columns)
    )
    return file.schema_arrow == pa.schema(expected) and all(
        chunk.compression == "UNCOMPRESSED" for chunk in chunks
    )


def _texts(cells: pa.ChunkedArray) -> tuple[str | None, ...]:
    """Texts of a dictionary-encoded column; equal ones share their memory."""
    texts: list[str | None] = []
    for chunk in cells.chunks:
        words = chunk.dictionary.to_pylist()
        texts += [None if k is None else words[k] for k in chunk.indices.to_pylist()]
    return tuple(texts)


def _histograms(bins: _Bins, columns: Sequence[AnyColumn], stages: int) -> Iterator[Histogram]:
    """The histograms in their order; ValueError if the bins are not those."""
    keys = list(zip(bins.stage.tolist(), bins.column, strict=True))
    starts = [k for k in range(len(keys)) if k == 0 or keys[k] != keys[k - 1]]
    expected: list[tuple[int, str, AnyColumn | None]] = [
        (stage, column.name, column) for stage in range(1, stages + 1) for column in columns
    ]
    expected.append((stages + 1, ROW_LENGTHS, None))
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
        if not (_has_noise(histogram, bins.sd[part]) and _has_bins(histogram, column)):
            raise ValueError
        yield histogram


def _has_noise(histogram: Histogram, sd: Array) -> bool:
    """Whether all counts are plausible, and have noise of one standard deviation."""
    finite = 0 < histogram.sd < np.inf and bool((sd == histogram.sd).all())
    return finite and bool((np.abs(histogram.count) <= _LARGEST_COUNT).all())


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
