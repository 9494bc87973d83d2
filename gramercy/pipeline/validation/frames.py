"""The data frames that Great Expectations validates: without rows, and of sampled rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from gramercy.pipeline.validation.mistakes import SampledColumn
from gramercy.schemas.contract import Contract
from gramercy.schemas.model import nfc
from gramercy.schemas.notation import NumberNotation
from gramercy.tables.formats.parquet_format import ParquetTables, open_parquet
from gramercy.tables.formats.raw_sample import RawSample
from gramercy.tables.formats.table_format import SourceFile
from gramercy.tables.formats.values import ANY, DOUBLE, TEXT, TRUTH, WHOLE, coding_of

# Types of columns as a file states them, and data frames' types for which expectations decide the
# same. A CSV file states none: expectations on types have nothing to contradict.
_FRAME_TYPES = {WHOLE: "int64", DOUBLE: "float64", TRUTH: "bool", TEXT: "string", ANY: "object"}
_NO_LEVEL = "\ufffd"  # in place of a cell that is not a declared level


def exact_types(file: SourceFile, types: Mapping[str, str]) -> dict[str, Any]:
    """The types of pandas that a steward may expect of a Parquet file's columns, but of text."""
    if not isinstance(file.format, ParquetTables):
        return {}
    with file.redacted_errors(), open_parquet(file) as table:
        read = table.schema_arrow.empty_table().to_pandas(ignore_metadata=True).dtypes
    named = {nfc(str(name)): dtype for name, dtype in read.items()}
    return {name: dtype for name, dtype in named.items() if types[name] != TEXT}


def empty_frames(types: Mapping[str, str], exact: dict[str, Any]) -> Iterator[pd.DataFrame]:
    """Data frames with the columns of a file and no rows: as contracts, and as stewards see it.

    A contract knows whole numbers, numbers and text, which are in the first one; a steward may mean
    the type of either.
    """
    plain = {name: _type_of(stated) for name, stated in types.items()}
    for dtypes in (plain, plain | exact):
        yield pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in dtypes.items()})


def _type_of(stated: str) -> str:
    """The type of a column of a data frame for which expectations decide as for one of a file."""
    is_time = stated.lower().startswith(("date", "timestamp"))
    return _FRAME_TYPES.get(stated, "datetime64[ns]" if is_time else "binary[pyarrow]")


def value_frame(contract: Contract, sample: RawSample, notation: NumberNotation) -> pd.DataFrame:
    """The cells of a sample as a release reads them; other columns as they are stored."""
    columns, known = dict[str, Any](), contract.table_columns
    for name in sample.cells.column_names:
        cells, declared = sample.cells[name].combine_chunks(), known.get(name)
        if declared is None:
            columns[name] = _as_stored(cells)
            continue
        numbers = SampledColumn(name, declared, [cells], notation).numbers
        if declared.categories is not None:
            columns[name] = _levels(numbers, declared.categories, cells, notation)
        else:
            columns[name] = numbers
    return pd.DataFrame(columns)


def _levels(
    indices: NDArray[np.float64], levels: Sequence[Any], cells: pa.Array, notation: NumberNotation
) -> Any:
    """The level of every cell; a missing cell differs from one that is not a level."""
    if all(isinstance(each, float | int) and not isinstance(each, bool) for each in levels):
        others = coding_of(None, notation).floats(cells)
        return np.where(np.isnan(indices), others, np.append(levels, np.nan)[_index(indices)])
    named = np.array([*levels, None], object)[_index(indices)]
    is_null = np.asarray(cells.is_null().to_numpy(zero_copy_only=False))
    named[np.isnan(indices) & ~is_null] = _NO_LEVEL
    return named


def _index(indices: NDArray[np.float64]) -> NDArray[np.int64]:
    """Indices of levels, with -1 for none."""
    return np.where(np.isnan(indices), -1, indices).astype(np.int64)


def _as_stored(cells: pa.Array) -> Any:
    """A column that no contract declares: numbers, if all of its texts are numbers."""
    stored = cells.to_pandas()
    with contextlib.suppress(ValueError, TypeError):
        if not pd.api.types.is_datetime64_any_dtype(stored):
            return pd.to_numeric(stored)
    return stored
