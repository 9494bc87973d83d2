"""A contract as a Great Expectations suite, which a steward can save, read and run elsewhere.

The severity of an expectation determines what happens when it fails. Columns and their types are
`critical`: they are public, and a release is refused. Values are a `warning`: a refusal would
reveal something about them, so the steward is warned and the release continues.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramercy.common import disk
from gramercy.pipeline.plan.checking import required_columns
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.contract import Contract
from gramercy.tables.formats.values import coding_of

if TYPE_CHECKING:
    from great_expectations import ExpectationSuite

SCHEMA, VALUES = "critical", "warning"
_SIZES = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
# All numeric pandas types: those of numpy, and those that allow missing values.
_NUMBERS = [
    *("bool", *(size.lower() for size in _SIZES), "float16", "float32", "float64"),
    *("BooleanDtype", *(f"{size}Dtype" for size in _SIZES), "Float32Dtype", "Float64Dtype"),
]


@contextlib.contextmanager
def silence_great_expectations() -> Iterator[None]:
    """Suppress Great Expectations' import warnings, and its logging, which contains values."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)


@silence_great_expectations()
def expectation_suite(contract: Contract) -> ExpectationSuite:
    """The declarations of a contract, as expectations about a pandas data frame.

    Returns
    -------
    ExpectationSuite
        The columns of the table, and the types and values of the columns to publish. The type of
        the column that identifies persons, or of the one of dates, is not checked here: it may be
        whole numbers or text, and no expectation accepts both.
    """
    import great_expectations as gx
    from great_expectations import expectations

    gxe: Any = expectations  # mypy considers its names private
    columns = gxe.ExpectTableColumnsToMatchSet(
        column_set=required_columns(contract), exact_match=False, severity=SCHEMA
    )
    names = [name for name in contract.table_columns if name in contract.columns]
    types = [_type_expectation(gxe, contract, name) for name in names]
    values = [each for name in names for each in _value_expectations(gxe, contract, name)]
    return gx.ExpectationSuite(name=contract.id, expectations=[columns, *types, *values])


@silence_great_expectations()
def save_suite(contract: Contract, path: Path) -> None:
    """Write the suite of a contract as JSON.

    ``great_expectations.ExpectationSuite(**json.load(file))`` reads it.
    """
    suite = expectation_suite(contract).to_json_dict()
    text = json.dumps(suite, indent=2, ensure_ascii=False) + "\n"
    disk.write_atomically(path.resolve(), text.encode())


def _type_expectation(gxe: Any, contract: Contract, name: str) -> Any:
    if coding_of(contract.columns[name].coding).is_text:
        return gxe.ExpectColumnValuesToBeOfType(column=name, type_="str", severity=SCHEMA)
    return gxe.ExpectColumnValuesToBeInTypeList(column=name, type_list=_NUMBERS, severity=SCHEMA)


def _value_expectations(gxe: Any, contract: Contract, name: str) -> list[Any]:
    """At most two per column: one for missing cells, which the one for values ignores."""
    column = contract.columns[name]
    present = gxe.ExpectColumnValuesToNotBeNull(column=name, severity=VALUES)
    if isinstance(column, Levels):
        levels = list(column.levels)
        within = gxe.ExpectColumnValuesToBeInSet(column=name, value_set=levels, severity=VALUES)
    elif not isinstance(column, Column) or not column.has_bounds or column.date_unit:
        return [present]
    else:
        within = gxe.ExpectColumnValuesToBeBetween(
            column=name, min_value=column.lower, max_value=column.upper, severity=VALUES
        )
    return [present, within]
