"""What Great Expectations validates: the suite of a contract, and the one that a steward adds.

Columns and their types are `critical`: they are public, and a release is refused. Values are a
`warning`: a refusal would reveal something about them, so the steward is warned and the release
continues. Great Expectations itself is imported by the program `validation.worker` only; here an
expectation is its type and its arguments, as they stand in a saved suite.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramercy.common import disk
from gramercy.common.home import Home
from gramercy.pipeline.plan.checking import required_columns
from gramercy.schemas import families
from gramercy.schemas.column import Column, ColumnKind, Levels
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import ContractError
from gramercy.schemas.model import nfc
from gramercy.schemas.notation import PLAIN, NumberNotation
from gramercy.tables.formats.reader import column_types
from gramercy.tables.formats.source import needs_copy, open_source
from gramercy.tables.formats.values import DOUBLE, TEXT, TRUTH, WHOLE, coding_of

SCHEMA, VALUES = "critical", "warning"
# Those that Great Expectations decides by the names and types of columns alone.
TYPES = frozenset(
    {
        "expect_column_type_to_be",
        "expect_column_values_to_be_in_type_list",
        "expect_column_values_to_be_of_type",
    }
)
ABOUT_SCHEMA = TYPES | {
    "expect_column_to_exist",
    "expect_table_column_count_to_be_between",
    "expect_table_column_count_to_equal",
    "expect_table_columns_to_match_ordered_list",
    "expect_table_columns_to_match_set",
}
# About all rows of a table, which a sample cannot show.
OF_ALL_ROWS = frozenset({"expect_table_row_count_to_be_between", "expect_table_row_count_to_equal"})
_SIZES = ("Int64", "Int32", "Int16", "Int8", "UInt64", "UInt32", "UInt16", "UInt8")
# The pandas types of columns that are not text. Frames that are made here have the first.
_OF_PANDAS = {
    WHOLE: ["int64", *(each for size in _SIZES for each in (f"{size}Dtype", size.lower()))],
    DOUBLE: ["float64", "float32", "float16", "Float32Dtype", "Float64Dtype"],
    TRUTH: ["bool", "BooleanDtype"],
    "timestamp": ["datetime64[ns]"],
}
_KNOWN_KEYS = ("type", "kwargs")


@dataclass(frozen=True)
class Expectation:
    """An expectation about a table: public facts of the contract or of the steward."""

    type: str  # as Great Expectations names it in a saved suite
    arguments: dict[str, Any]
    severity: str = SCHEMA
    number: int = 0  # its place in the steward's file, from 1; 0 if it follows from the contract

    @property
    def column(self) -> str:
        """The column that it is about; empty for the table or several columns."""
        return str(self.arguments.get("column", ""))

    @property
    def columns(self) -> list[str]:
        """All columns that it names."""
        single = (self.arguments.get(key) for key in ("column", "column_A", "column_B"))
        several = self.arguments.get("column_list")
        listed = several if isinstance(several, list) else []
        return [name for name in (*single, *listed) if isinstance(name, str)]

    @property
    def is_about_schema(self) -> bool:
        """Whether names and types decide it."""
        return self.type in ABOUT_SCHEMA

    @property
    def facts(self) -> dict[str, Any]:
        """What a record says of it."""
        return {
            "type": self.type,
            "column": self.column,
            "severity": self.severity,
            "number": self.number,
        }

    def saved(self) -> dict[str, Any]:
        """The expectation as in a saved suite."""
        return {
            "type": self.type, "kwargs": self.arguments, "severity": self.severity, "meta": {}
        }  # fmt: skip


@dataclass(frozen=True, repr=False)
class Job:
    """What Great Expectations validates for one release or one check. Private."""

    contract: Contract  # its source is read: of a copied table, the copy
    expectations: Sequence[Expectation]
    types: Mapping[str, str] | None = None  # of a copied table: as the original states them
    # A check looks by itself, because only it may name levels.
    looks_for_mistakes: bool = True

    @classmethod
    def of(cls, home: Home, declared: Contract, contract: Contract) -> Job:
        """The suites of a contract; `contract` has a private copy as its source, if need be."""
        suites = [*contract_suite(contract), *steward_suite(home, contract.id)]
        if not needs_copy(declared.source):
            return cls(contract, suites)
        return cls(contract, suites, column_types(open_source(declared.source).files[0]))


def contract_suite(contract: Contract, *, stored: bool = False) -> list[Expectation]:
    """The declarations of a contract, as expectations about a pandas data frame.

    Parameters
    ----------
    stored
        Whether they are about a table as it is stored, for use elsewhere: codes and not their
        groups, dates and not numbers of days, and all types of numbers.

    Returns
    -------
    list of Expectation
        The columns of the table, and the types and values of the columns to read. Where a type
        may be numbers or text, as of the column that identifies persons, it is not checked here,
        because no expectation accepts both.
    """
    columns = Expectation(
        "expect_table_columns_to_match_set",
        {"column_set": required_columns(contract), "exact_match": False},
    )
    notation = contract.source if isinstance(contract.source, NumberNotation) else PLAIN
    declared = contract.table_columns.items()
    types = [x for name, each in declared for x in _type_expectations(name, each, notation, stored)]
    values = [x for name, each in declared for x in _value_expectations(name, each, stored)]
    return [columns, *types, *values]


def save_suite(contract: Contract, path: Path) -> None:
    """Write the suite of a contract as JSON.

    ``great_expectations.ExpectationSuite(**json.load(file))`` reads it.
    """
    expectations = [each.saved() for each in contract_suite(contract, stored=True)]
    suite = {"name": contract.id, "expectations": expectations, "meta": {}}
    text = json.dumps(suite, indent=2, ensure_ascii=False) + "\n"
    disk.write_atomically(path.resolve(), text.encode())


def _type_expectations(
    name: str, column: ColumnKind, notation: NumberNotation, stored: bool
) -> list[Expectation]:
    reads = coding_of(column.coding, notation.notation).reads
    of_stated = [names for stated, names in _OF_PANDAS.items() if reads(stated)]
    types = [each for names in of_stated for each in (names if stored else names[:1])]
    if not reads(TEXT):
        kind = "expect_column_values_to_be_in_type_list"
        return [Expectation(kind, {"column": name, "type_list": types})]
    if not types:
        kind = "expect_column_values_to_be_of_type"
        return [Expectation(kind, {"column": name, "type_": "str"})]
    return []


def _value_expectations(name: str, column: ColumnKind, stored: bool) -> list[Expectation]:
    """At most two per column: one for missing cells, which the one for values ignores."""
    present = Expectation("expect_column_values_to_not_be_null", {"column": name}, VALUES)
    if stored and (column.date_unit or not isinstance(column, Column | Levels)):
        return [present]
    if column.categories is not None:
        within, allowed = "in_set", dict[str, Any](value_set=list(column.categories))
    elif not column.has_bounds:
        return [present]
    else:
        lower, upper = column.limits
        within, allowed = "between", {"min_value": lower, "max_value": upper}
    arguments: dict[str, Any] = {"column": name, **allowed}
    return [present, Expectation(f"expect_column_values_to_be_{within}", arguments, VALUES)]


def steward_suite(home: Home, dataset: str) -> list[Expectation]:
    """The expectations that the steward has added to a data set; none without the file.

    Raises
    ------
    ContractError
        If the file is not a suite as Great Expectations saves it. Whether Great Expectations knows
        an expectation, and accepts its arguments, is found by `validation.worker`.
    """
    path = home.expectations(dataset)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as caught:
        raise invalid_suite(path, f"it cannot be read ({disk.error_reason(caught)})") from None
    try:
        suite = json.loads(nfc(content.decode()))  # as all names are compared
    except (ValueError, RecursionError) as caught:  # also of text that is not UTF-8
        line = f", line {caught.lineno}" if isinstance(caught, json.JSONDecodeError) else ""
        raise invalid_suite(path, f"it is not JSON{line}") from None
    listed = suite.get("expectations") if isinstance(suite, dict) else None
    if not isinstance(listed, list):
        raise invalid_suite(path, "it has no list 'expectations'")
    return [_steward_expectation(path, k, each) for k, each in enumerate(listed, 1)]


def _steward_expectation(path: Path, number: int, each: Any) -> Expectation:
    keys = each if isinstance(each, dict) else {}
    kind, arguments = (keys.get(key) for key in _KNOWN_KEYS)
    if not isinstance(kind, str) or not isinstance(arguments, dict):
        raise invalid_suite(
            path, f"expectation {number} has no text 'type', or no mapping 'kwargs'"
        )
    severity = keys.get("severity", SCHEMA)
    return Expectation(kind, arguments, severity if severity == SCHEMA else VALUES, number)


def invalid_suite(path: Path, reason: str, remedy: str = "") -> ContractError:
    """The error of a file of expectations that cannot be used."""
    return families.CONTRACT_FILE(
        "{path}: not a suite of expectations: {reason}.",
        "{remedy}",
        path=str(path),
        reason=reason,
        remedy=remedy
        or "Write it as Great Expectations saves a suite, as 'gramercy plan REQUEST "
        "--expectations FILE.json' does; or move the file away.",
    )
