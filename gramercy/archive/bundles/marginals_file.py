"""Published histograms: one Parquet file with a row for every bin."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.archive.bundles.parquet_limits import has_schema, read_bounded, texts_of
from gramercy.schemas import wordings
from gramercy.schemas.column import level_names
from gramercy.schemas.evidence import ROW_LENGTHS, Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

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
    stages
        Number of stages, each with a histogram of every column; row lengths come after them.
    """
    path = folder / MARGINALS
    # A file that was tampered with may make Arrow raise anything.
    with contextlib.suppress(Exception):
        bins = _read(path, most_bins(columns, stages))
        return tuple(_histograms(bins, columns, stages))
    raise wordings.not_histograms(str(path))


def most_bins(columns: Sequence[AnyColumn], stages: int) -> int:
    """The largest number of bins of all columns in all stages, and of row lengths."""
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
    table = read_bounded(path, most_bins)
    if not has_schema(table, _SCHEMA):
        raise ValueError
    stage, lower, upper, count, sd = (
        table[name].to_numpy() for name in ("stage", "lower", "upper", "count", "sd")
    )
    column, level = (texts_of(table[name]) for name in _TEXTS)
    return _Bins(stage, column, lower, upper, level, count, sd)


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
