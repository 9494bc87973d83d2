"""encoded.parquet: what a step of a cumulative series publishes, from which sums are decoded.

Whole numbers as they were drawn, of up to 38 digits: the upper triangle of one matrix, or of that
of every group, in long form. A number of rows, where one is drawn, has no names of columns; these
come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.archive.bundles.parquet_limits import codes_of, has_schema, read_bounded
from gramercy.common.prefix_sums import PrefixSums
from gramercy.schemas import families
from gramercy.schemas.facts import MAX_ENTRIES
from gramercy.schemas.manifest import ReleaseManifest

Array = NDArray[np.float64]
Integers = NDArray[Any]  # Python integers, which have any length

ENCODED = "encoded.parquet"
DECODING = (
    "What this step of the series publishes, as whole numbers in units of 2^-12 of a unit of the "
    "lattice; without 'row' and 'col', a weighted number of rows in units of 2^-12. With Y_t the "
    "numbers of step t, and w_ts number s in 'cumulative.weights' of its manifest, the sum over "
    "the rows of step t alone is G_t = (Y_t - (w_t1 G_1 + ... + w_t,t-1 G_t-1)) / w_tt, and the "
    "sum of all rows so far is S_t = G_1 + ... + G_t. Divided by 4^bits shrinkage^2 "
    "('calibration.lattice') and by 'rows.value', S_t is the matrix as drawn."
)
DIGITS = 38
_SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("row", pa.string()),
        ("col", pa.string()),
        ("value", pa.decimal128(DIGITS, 0)),
    ]
)
_WORD = 64  # bits


@dataclass(frozen=True, eq=False)
class Encoded:
    """What a step publishes of all rows, or of one group."""

    # Weighted sum with noise, symmetric, Python integers of shape (p, p), in units of 2^-12 of a
    # unit of the lattice
    matrix: Integers
    rows: int | None = None  # weighted number of rows with noise, in units of 2^-12; None if none


def decode(
    series: PrefixSums, divisor: float, published: Sequence[Sequence[Encoded]]
) -> tuple[Array, Array]:
    """The sums over all steps so far, from what each of them published of every group.

    Parameters
    ----------
    divisor
        Of the lattice of integer rows.

    Returns
    -------
    sums
        Noisy sums of x x^T over the rows of each group, shape (groups, p, p).
    rows
        Their noisy numbers of rows, shape (groups,): counts, or traces where there are none.
    """
    sums, rows = list[Array](), list[float]()
    for steps in zip(*published, strict=True):
        sums.append(series.decode_so_far([step.matrix for step in steps]) / divisor)
        counts = [np.array(step.rows, object) for step in steps if step.rows is not None]
        rows.append(float(series.decode_so_far(counts) if counts else np.trace(sums[-1])))
    return np.array(sums), np.array(rows)


def write_encoded(folder: Path, manifest: ReleaseManifest, parts: Sequence[Encoded]) -> None:
    """Write what a step publishes; `parts`: one for every group, or one without groups."""
    i, j = np.triu_indices(len(manifest.names))
    words = pa.array(manifest.names, pa.string())
    rows, columns, none = words.take(pa.array(i)), words.take(pa.array(j)), pa.nulls(1, pa.string())
    of_levels = list(zip(_levels(manifest), parts, strict=True))
    tables = [_table(level, rows, columns, part.matrix[i, j]) for level, part in of_levels]
    for level, part in of_levels:
        if part.rows is not None:
            tables.append(_table(level, none, none, [part.rows]))
    table = pa.concat_tables(tables)
    if not manifest.groups:
        table = table.drop_columns(["group"])
    pq.write_table(table, folder / ENCODED, store_schema=False, compression="none")


def _table(level: str | None, rows: pa.Array, columns: pa.Array, values: Any) -> pa.Table:
    """Rows of the file; ValueError for a number that has too many digits."""
    groups = pa.array([level], pa.string()).take(pa.array(np.zeros(len(rows), np.int64)))
    numbers = pa.array([int(value) for value in values], _SCHEMA.field("value").type)
    return pa.table([groups, rows, columns, numbers], schema=_SCHEMA)


def _levels(manifest: ReleaseManifest) -> list[str | None]:
    return [group.level for group in manifest.groups] or [None]


def read_encoded(folder: Path, manifest: ReleaseManifest) -> tuple[Encoded, ...]:
    """Read what a step published of every group, or of all rows; empty without a series."""
    if manifest.cumulative is None:
        return ()
    try:
        return _read(folder / ENCODED, manifest)
    except Exception:  # a file that was tampered with may make Arrow raise anything
        raise families.CONTENT(
            "{path} does not contain what its manifest describes.",
            "Fetch the bundle again from its curator.",
            path=str(folder / ENCODED),
        ) from None


def _read(path: Path, manifest: ReleaseManifest) -> tuple[Encoded, ...]:
    """The parts; ValueError if the file has others."""
    levels, names = _levels(manifest), manifest.names
    i, j = np.triu_indices(len(names))
    counts = len(levels) if manifest.publishes_noisy_count else 0
    if len(levels) * len(names) ** 2 > MAX_ENTRIES:
        raise ValueError
    entries = len(levels) * i.size
    table = read_bounded(path, entries + counts)
    schema = _SCHEMA if manifest.groups else _SCHEMA.remove(0)
    if not has_schema(table, schema) or table.num_rows != entries + counts:
        raise ValueError
    of_matrices, of_rows = table.slice(0, entries), table.slice(entries)
    expected = {"row": np.tile(i, len(levels)), "col": np.tile(j, len(levels))}
    for name, codes in expected.items():
        if not np.array_equal(codes_of(of_matrices[name], names), codes):
            raise ValueError
        if of_rows[name].null_count != counts:
            raise ValueError
    groups = np.arange(len(levels)).repeat(i.size)
    if manifest.groups:
        stated = codes_of(table["group"], [each.level for each in manifest.groups])
        if not np.array_equal(stated, [*groups, *range(counts)]):
            raise ValueError
    values = _integers(table["value"])
    matrices = np.empty((len(levels), len(names), len(names)), dtype=object)
    matrices[:, i, j] = matrices[:, j, i] = values[:entries].reshape(len(levels), i.size)
    rows = values[entries:].tolist() or [None] * len(levels)
    return tuple(Encoded(*part) for part in zip(matrices, rows, strict=True))


def _integers(cells: pa.ChunkedArray) -> Integers:
    """Decimals without a fraction as Python integers; ValueError if one is missing or too long."""
    if cells.null_count:
        raise ValueError
    parts = [np.zeros(0, dtype=object)]
    for chunk in cells.chunks:
        words = np.frombuffer(chunk.buffers()[1], "<i8").reshape(-1, 2)
        low, high = words[chunk.offset : chunk.offset + len(chunk)].T
        parts.append((high.astype(object) << _WORD) + low.astype("<u8").astype(object))
    values: Integers = np.concatenate(parts)
    if not (np.abs(values) < 10**DIGITS).all():
        raise ValueError
    return values
