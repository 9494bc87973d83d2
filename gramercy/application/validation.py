"""Validate a table against its contract, with the suite of `application.expectations`.

Only public facts may cause a refusal: the names and types in a file's header or schema. Cells may
not, because a refusal would reveal something about them: their problems go to the internal record,
and the repair step ensures the guarantee for any cells. BOOLEAN_ONLY is the only result format
without values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gramercy.application.expectations import (
    SCHEMA,
    VALUES,
    expectation_suite,
    required_columns,
    silence_great_expectations,
)
from gramercy.application.table_header import (
    Types,
    check_dates,
    check_persons,
    columns_missing,
    distinct_schemas,
    types_differ,
)
from gramercy.schemas.contract import Contract
from gramercy.tables.csv_reader import MalformedLines
from gramercy.tables.reader import cell_batches
from gramercy.tables.source import Source, open_source

if TYPE_CHECKING:
    from great_expectations import ExpectationSuite
    from great_expectations.core.batch_definition import BatchDefinition

_SAMPLE_ROWS = 10_000
_BATCH = 100  # expectations per validation, whose time grows with the square of their number
# Types that a file may state for a column, as pandas types; CSV states none, and gets `object`.
_PANDAS_TYPES = {"whole": "int64", "double": "float64", "text": "string", "any": "object"}
_OTHER_TYPE = "binary[pyarrow]"  # stands for all other types, such as dates and lists
_NOT_NULL = "expect_column_values_to_not_be_null"


def validate(contract: Contract) -> dict[str, Any]:
    """Refuse files whose columns or types differ from the contract; check a sample of their values.

    Returns
    -------
    dict
        The columns with sampled values that fail their expectations. Private.

    Raises
    ------
    TableError
        Naming the file and the columns.
    """
    source, suite = open_source(contract.source), expectation_suite(contract)
    tables = _tables()
    schemas = []
    for file, types in distinct_schemas(source, contract):
        _check_schema(file, types, contract, suite, tables)
        schemas.append((file, types))
    check_persons(contract, source, schemas)
    check_dates(contract, schemas)
    try:
        return {"sample": _check_values(_sample(source, contract), suite, tables)}
    except Exception:  # an error that cells cause must never refuse a release
        return {"sample": "could not be checked"}


def _check_schema(
    file: str,
    stated: Types,
    contract: Contract,
    suite: ExpectationSuite,
    tables: BatchDefinition[Any],
) -> None:
    """Check a file's stated columns and types, on an empty table with the same schema."""
    table = pd.DataFrame(
        {
            name: pd.Series(dtype=_PANDAS_TYPES.get(stated[name], _OTHER_TYPE))
            for name in required_columns(contract)
            if name in stated
        }
    )
    columns, *types = (each for each in suite.expectations if each.severity == SCHEMA)
    if _failures(table, [columns], tables):
        raise columns_missing(file, stated, contract)
    if wrong := _failures(table, types, tables):
        raise types_differ(file, stated, wrong)


def _sample(source: Source, contract: Contract) -> pd.DataFrame:
    """The first rows; cells that are neither a finite number nor a level are missing."""
    columns = {name: contract.levels(name) for name in contract.names}
    empty = np.zeros((len(columns), 0))
    sample = next(cell_batches(source, columns, MalformedLines()), empty)[:, :_SAMPLE_ROWS]
    sample = np.where(np.isfinite(sample), sample, np.nan)
    table = dict(zip(columns, sample, strict=True))
    for name, levels in columns.items():
        if levels is not None:  # cells of such a column are read as indices of levels
            codes = np.nan_to_num(table[name], nan=-1).astype(int)
            table[name] = pd.Categorical.from_codes(codes, levels)
    return pd.DataFrame(table)


def _check_values(
    sample: pd.DataFrame, suite: ExpectationSuite, tables: BatchDefinition[Any]
) -> dict[str, Any]:
    values = [each for each in suite.expectations if each.severity == VALUES]
    present = [each for each in values if each.expectation_type == _NOT_NULL]
    within = [each for each in values if each.expectation_type != _NOT_NULL]
    return {
        "rows": len(sample),
        "columns_with_gaps": _failures(sample, present, tables),
        "columns_out_of_bounds": _failures(sample, within, tables),
    }


def _failures(
    table: pd.DataFrame, expectations: Sequence[Any], tables: BatchDefinition[Any]
) -> list[str]:
    """Columns whose expectations fail; an empty string stands for the table."""
    failed: list[str] = []
    for start in range(0, len(expectations), _BATCH):
        part = expectations[start : start + _BATCH]
        columns = [each.column for each in part if hasattr(each, "column")]
        failed += _validate(table[columns] if columns else table, part, tables)
    return failed


@silence_great_expectations()
def _tables() -> BatchDefinition[Any]:
    """The tables that Great Expectations checks, in a context whose creation takes longest."""
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    silent: Any = {"globally": False, "metric_calculations": False}
    context.variables.progress_bars = silent
    asset = context.data_sources.add_pandas("table").add_dataframe_asset("table")
    return asset.add_batch_definition_whole_dataframe("all")


@silence_great_expectations()
def _validate(
    table: pd.DataFrame, expectations: Sequence[Any], tables: BatchDefinition[Any]
) -> list[str]:
    import great_expectations as gx

    batch = tables.get_batch({"dataframe": table})
    suite = gx.ExpectationSuite(name="part", expectations=list(expectations))
    results: Any = batch.validate(suite, result_format="BOOLEAN_ONLY").results
    return [str(r.expectation_config.kwargs.get("column", "")) for r in results if not r.success]
