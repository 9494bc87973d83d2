"""Tables of estimates on disk: Parquet (canonical) and CSV."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gramercy.archive.bundles.escaped_texts import not_a_formula
from gramercy.archive.bundles.parquet_limits import bounded_bytes, read_bounded
from gramercy.schemas import wordings

# Limits on what is read from a hostile archive.
_CSV_BYTES, _ENTRY_BYTES = 32 << 20, 128
_EXPANSION = 8  # a number needs 8 bytes, and in CSV at least one


def write_table(folder: Path, stem: str, table: pd.DataFrame) -> None:
    arrow_table = pa.Table.from_pandas(table, preserve_index=False)
    pq.write_table(arrow_table, folder / f"{stem}.parquet", store_schema=False, compression="zstd")
    (folder / f"{stem}.csv").write_bytes(csv_bytes(_without_formulas(table)))


def csv_bytes(table: pd.DataFrame) -> bytes:
    """The table as CSV; with 17 digits, every double is read back exactly."""
    text: str = table.to_csv(index=False, float_format="%.17g", lineterminator="\n")
    return text.encode()


def _without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """The table with an apostrophe before names that a spreadsheet program could execute."""
    safe = table.rename(columns=lambda name: not_a_formula(str(name)))
    for k in range(table.shape[1]):
        cells = table.iloc[:, k]
        if not pd.api.types.is_numeric_dtype(cells):
            safe.isetitem(k, [not_a_formula(x) if isinstance(x, str) else x for x in cells])
    return safe


def read_table(folder: Path, stem: str, columns: int) -> pd.DataFrame:
    """A table of an estimate from a release with this many columns."""
    path, same = folder / f"{stem}.parquet", False
    try:
        size = (folder / f"{stem}.csv").stat().st_size
        if size > _CSV_BYTES + _ENTRY_BYTES * columns * columns:
            raise ValueError
        stated = (folder / f"{stem}.csv").read_bytes()
        # A line of CSV is a row, unless a text contains line breaks.
        table = _read_parquet(path, stated.count(b"\n"), len(stated))
        same = stated == csv_bytes(_without_formulas(table))
    except Exception:  # a file that was tampered with may make a parser raise anything
        raise wordings.not_a_table(str(path)) from None
    if not same:
        raise wordings.formats_differ(f"{folder / stem}.csv", path.name)
    return table


def _read_parquet(path: Path, most_rows: int, csv_bytes: int) -> pd.DataFrame:
    """The table in a Parquet file, which also exists as CSV with this number of bytes."""
    table = read_bounded(path, most_rows, bounded_bytes(0) + _EXPANSION * csv_bytes)
    for k, cells in enumerate(table.columns):
        if pa.types.is_nested(cells.type):
            raise ValueError
        if pa.types.is_dictionary(cells.type):
            table = table.set_column(k, table.column_names[k], _decoded(cells, csv_bytes))
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _decoded(cells: pa.ChunkedArray, most_bytes: int) -> pa.ChunkedArray:
    """Texts that were dictionary-encoded; ValueError if they need more bytes in all."""
    for chunk in cells.chunks:
        lengths = pc.fill_null(pc.binary_length(chunk.dictionary), 0).to_numpy(False)
        codes = chunk.indices.drop_null().to_numpy(False)
        if len(codes) and lengths.astype(np.int64)[codes].sum() > most_bytes:
            raise ValueError
    return cells.cast(pa.string())
