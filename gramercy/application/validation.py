"""Check the first rows of a table with the suite of `application.expectations`.

`gramercy check` runs it, for a steward's eyes. A release does not: its repair step counts the cells
of all rows, and ensures the guarantee for any cells. BOOLEAN_ONLY is the only result format without
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gramercy.application.expectations import (
    VALUES,
    expectation_suite,
    silence_great_expectations,
)
from gramercy.schemas.contract import Contract
from gramercy.tables.csv_reader import MalformedLines
from gramercy.tables.reader import cell_batches
from gramercy.tables.source import Source

if TYPE_CHECKING:
    from great_expectations import ExpectationSuite
    from great_expectations.core.batch_definition import BatchDefinition

_SAMPLE_ROWS = 10_000
_BATCH = 100  # expectations per validation, whose time grows with the square of their number
_NOT_NULL = "expect_column_values_to_not_be_null"


def check_sample(contract: Contract, source: Source) -> Any:
    """Compare the first rows of a table with the values that its contract declares.

    Returns
    -------
    dict or str
        The number of rows, and the columns with cells that fail their expectations; or that they
        could not be checked. Private.
    """
    try:
        return _check_values(_sample(source, contract), expectation_suite(contract), _tables())
    except Exception:  # an error that cells cause must never stop a check
        return "could not be checked"


def _sample(source: Source, contract: Contract) -> pd.DataFrame:
    """The first rows; cells that are neither a finite number nor a level are missing."""
    columns = {name: contract.levels(name) for name in contract.names}
    empty = np.zeros((len(columns), 0))
    codes = contract.missing_codes
    batches = cell_batches(source, columns, MalformedLines(), missing_codes=codes)
    sample = next(batches, empty)[:, :_SAMPLE_ROWS]
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
