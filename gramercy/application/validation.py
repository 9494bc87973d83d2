"""Validate a table against its contract, with the suite of `application.expectations`.

Only public facts may refuse: the names and types that a file's header or schema states. What is in
the cells may not, because a refusal would tell; it goes to the steward, and the repair step sees
that the guarantee holds whatever is there. BOOLEAN_ONLY is the one result format without values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gramercy.application.expectations import SCHEMA, VALUES, quiet, required_columns, suite_of
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import TableError
from gramercy.tables.column_types import column_types
from gramercy.tables.csv_reader import Malformed
from gramercy.tables.read import cells
from gramercy.tables.source import Source, open_source

if TYPE_CHECKING:
    from great_expectations import ExpectationSuite

_SAMPLE_ROWS = 10_000
_AT_ONCE = 100  # expectations: the time of one validation grows with the square of their number
# What a file may state of a column, as a type of pandas: `object`, which fits all, for CSV.
_PANDAS_TYPES = {"whole": "int64", "double": "float64", "text": "string", "any": "object"}
_OTHER_TYPE = "binary[pyarrow]"  # dates, lists: neither numbers nor text
_PERSON_TYPES = {"whole", "text", "any"}
_NOT_NULL = "expect_column_values_to_not_be_null"
_LIKE_CSV = "comma-separated, with a header"
_KEYS = {False: "'columns'", True: "'columns' or 'unit'"}


def validate(contract: Contract) -> dict[str, Any]:
    """Refuse files whose columns or types are not the contract's; sample their values.

    Returns
    -------
    dict
        Names of the columns whose sampled values fail their expectations. For the steward.

    Raises
    ------
    TableError
        Naming the file and the columns.
    """
    source, suite = open_source(contract.source), suite_of(contract)
    person_types: dict[str, str] = {}  # with a file that states it
    checked: set[tuple[str | None, ...]] = set()
    for file in source.files:
        stated = column_types(file)
        schema = tuple(stated.get(name) for name in required_columns(contract))
        if schema not in checked:  # thousands of files have one schema
            _check_schema(file.shown, stated, contract, suite)
            checked.add(schema)
        if contract.owner is not None:
            person_types.setdefault(stated[contract.owner], file.shown)
    _check_persons(contract, person_types, "csv" in source.formats)
    try:
        return {"sample": _check_values(_sample(source, contract), suite)}
    except Exception:  # whatever is in the cells, looking at them may not refuse the release
        return {"sample": "could not be checked"}


def _check_schema(
    file: str, stated: dict[str, str], contract: Contract, suite: ExpectationSuite
) -> None:
    """Validate an empty table with the columns and types that a file states."""
    names = required_columns(contract)
    table = pd.DataFrame(
        {
            name: pd.Series(dtype=_PANDAS_TYPES.get(stated[name], _OTHER_TYPE))
            for name in names
            if name in stated
        }
    )
    columns, *types = (each for each in suite.expectations if each.severity == SCHEMA)
    if _failures(table, [columns]):
        # The file's own names are not told: without a header they would be somebody's cells.
        missing = [n for n in names if n not in stated]
        more = f" and {len(missing) - 10} more" if missing[10:] else ""
        # One column that holds the separators of others; whatever else it says is not told.
        other = len(stated) == 1 and any(mark in next(iter(stated)) for mark in ";\t|")
        separated = " (its fields seem to be separated by something else)" if other else ""
        raise TableError(
            f"{file}: none of its {len(stated)} columns is {_quoted(missing[:10])}{more}.",
            f"Correct the contract's {_KEYS[contract.owner is not None]}, or the file"
            + ("." if file.endswith(("parquet", "pq")) else f": {_LIKE_CSV}{separated}."),
        )
    wrong = _failures(table, types)
    if contract.owner is not None and stated[contract.owner] not in _PERSON_TYPES:
        wrong.append(contract.owner)
    if wrong:
        told = ", ".join(f"'{name}' ({stated[name]})" for name in wrong)
        mend = "Leave it out of the contract's 'columns', or store it as declared"
        owners = " Whose a row is, is whole numbers or text." if contract.owner in wrong else ""
        raise TableError(
            f"{file}: not of the declared kind: column {told}.",
            f"{mend}: numbers, or text where 'levels' are texts.{owners}",
        )


def _check_persons(contract: Contract, types: dict[str, str], texts: bool) -> None:
    """7 and 007 are one number and two texts: one person would be two."""
    if "whole" in types and (texts or "text" in types):
        raise TableError(
            f"{types['whole']}: column '{contract.owner}' holds whole numbers, and texts in other "
            "files.",
            "Store it as text in all of them, spelled alike (a CSV is text).",
        )


def _sample(source: Source, contract: Contract) -> pd.DataFrame:
    """The first rows, with a missing cell wherever there is no finite number and no level."""
    readings = {name: contract.levels(name) for name in contract.names}
    empty = np.zeros((len(readings), 0))
    sample = next(cells(source, readings, Malformed()), empty)[:, :_SAMPLE_ROWS]
    sample = np.where(np.isfinite(sample), sample, np.nan)
    table = dict(zip(readings, sample, strict=True))
    for name, levels in readings.items():
        if levels is not None:  # the place of a cell's level was read
            places = np.nan_to_num(table[name], nan=-1).astype(int)
            table[name] = pd.Categorical.from_codes(places, levels)
    return pd.DataFrame(table)


def _check_values(sample: pd.DataFrame, suite: ExpectationSuite) -> dict[str, Any]:
    values = [each for each in suite.expectations if each.severity == VALUES]
    present = [each for each in values if each.expectation_type == _NOT_NULL]
    within = [each for each in values if each.expectation_type != _NOT_NULL]
    return {
        "rows": len(sample),
        "columns_with_gaps": _failures(sample, present),
        "columns_out_of_bounds": _failures(sample, within),
    }


def _failures(table: pd.DataFrame, expectations: Sequence[Any]) -> list[str]:
    """Columns (or the empty string, for the table) of the expectations that do not hold."""
    failed: list[str] = []
    for start in range(0, len(expectations), _AT_ONCE):
        part = expectations[start : start + _AT_ONCE]
        columns = [each.column for each in part if hasattr(each, "column")]
        failed += _failing(table[columns] if columns else table, part)
    return failed


@quiet()
def _failing(table: pd.DataFrame, expectations: Sequence[Any]) -> list[str]:
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    silent: Any = {"globally": False, "metric_calculations": False}
    context.variables.progress_bars = silent
    asset = context.data_sources.add_pandas("table").add_dataframe_asset("table")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": table})
    suite = gx.ExpectationSuite(name="part", expectations=list(expectations))
    results: Any = batch.validate(suite, result_format="BOOLEAN_ONLY").results
    return [str(r.expectation_config.kwargs.get("column", "")) for r in results if not r.success]


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
