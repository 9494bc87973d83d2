"""Validate a table against its contract with a Great Expectations suite built from it.

Only public facts may refuse: the names and types that a file's header or schema states. What is in
the cells may not, because a refusal would tell; it goes to the steward, and the repair step sees
that the guarantee holds whatever is there. BOOLEAN_ONLY is the one result format without values.
"""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from gramercy.schemas.contract import Column, Contract
from gramercy.schemas.errors import TableError
from gramercy.tables.read import Malformed, cells, column_types
from gramercy.tables.source import Source, open_source

_SAMPLE_ROWS = 10_000
_NUMBER = "float64"
_AT_ONCE = 100
_LIKE_CSV = "comma-separated, with a header"
_NUMBERS, _TEXT = {"whole", "double", "any"}, {"text", "any"}
_OWNERS = {"whole", "text", "any"}
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
    source = open_source(contract.source)
    kinds: dict[str, str] = {}  # of whose the rows are, with a file that has it
    sound: set[tuple[str | None, ...]] = set()
    for file in source.files:
        stated = column_types(source, file)
        shape = tuple(stated.get(name) for name in _wanted(contract))
        if shape not in sound:  # thousands of files have one shape
            _check_shape(source.shown(file), stated, contract)
            sound.add(shape)
        if contract.owner is not None:
            kinds.setdefault(stated[contract.owner], source.shown(file))
    _check_owners(contract, kinds, "csv" in source.formats)
    try:
        return {"sample": _check_values(_sample(source, contract), contract)}
    except Exception:  # whatever is in the cells, looking at them may not refuse the release
        return {"sample": "could not be checked"}


def _check_shape(file: str, stated: dict[str, str], contract: Contract) -> None:
    names = _wanted(contract)
    with _expectations() as gxe:
        columns = gxe.ExpectTableColumnsToMatchSet(column_set=names, exact_match=False)
        # One row that holds no data: a number where the type is as declared, else the type's name.
        declared = {n: _kinds(contract, n) for n in names}
        shape = pd.DataFrame(
            {n: [0.0 if stated[n] in t else stated[n]] for n, t in declared.items() if n in stated}
        )
        if _failures(shape, [columns]):
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
        types = [gxe.ExpectColumnValuesToBeOfType(column=n, type_=_NUMBER) for n in names]
        if wrong := _failures(shape, types):
            told = ", ".join(f"'{name}' ({stated[name]})" for name in wrong)
            mend = "Leave it out of the contract's 'columns', or store it as declared"
            owners = " Whose a row is, is whole numbers or text." if contract.owner in wrong else ""
            raise TableError(
                f"{file}: not of the declared kind: column {told}.",
                f"{mend}: numbers, or text where 'levels' are texts.{owners}",
            )


def _sample(source: Source, contract: Contract) -> np.ndarray[Any, Any]:
    empty = np.zeros((len(contract.names), 0))
    columns = {name: contract.levels(name) for name in contract.names}
    return next(cells(source, columns, Malformed()), empty)[:, :_SAMPLE_ROWS].T


def _check_owners(contract: Contract, kinds: dict[str, str], texts: bool) -> None:
    """7 and 007 are one number and two texts: one person would be two."""
    if "whole" in kinds and (texts or "text" in kinds):
        raise TableError(
            f"{kinds['whole']}: column '{contract.owner}' holds whole numbers, and texts in other "
            "files.",
            "Store it as text in all of them, spelled alike (a CSV is text).",
        )


def _wanted(contract: Contract) -> list[str]:
    """Columns that every file has to have."""
    return contract.names + ([] if contract.owner is None else [contract.owner])


def _kinds(contract: Contract, name: str) -> set[str]:
    """What a column may be, as its file states it."""
    if name == contract.owner:
        return _OWNERS
    levels = contract.levels(name)
    return _TEXT if levels is not None and isinstance(levels[0], str) else _NUMBERS


def _check_values(sample: np.ndarray[Any, Any], contract: Contract) -> dict[str, Any]:
    frame = pd.DataFrame(sample, columns=contract.names)
    with _expectations() as gxe:
        # Between lets NaN pass, so each is paired with NotBeNull.
        present = [gxe.ExpectColumnValuesToNotBeNull(column=n) for n in contract.names]
        between = [
            gxe.ExpectColumnValuesToBeBetween(column=n, min_value=c.lower, max_value=c.upper)
            for n, c in contract.columns.items()
            if isinstance(c, Column)
        ]
        finite = frame.replace([np.inf, -np.inf], np.nan)
        return {
            "rows": len(frame),
            "columns_with_gaps": _failures(finite, present),
            "columns_out_of_bounds": _failures(finite, between),
        }


def _failures(frame: pd.DataFrame, expectations: list[Any]) -> list[str]:
    """Columns (or the empty string, for the table) of the expectations that do not hold."""
    failed: list[str] = []
    for start in range(0, len(expectations), _AT_ONCE):  # its time grows with their square
        part = expectations[start : start + _AT_ONCE]
        columns = [each.column for each in part if hasattr(each, "column")]
        failed += _failing(frame[columns] if columns else frame, part)
    return failed


def _failing(frame: pd.DataFrame, expectations: list[Any]) -> list[str]:
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    quiet: Any = {"globally": False, "metric_calculations": False}
    context.variables.progress_bars = quiet
    asset = context.data_sources.add_pandas("table").add_dataframe_asset("table")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    suite = gx.ExpectationSuite(name="contract", expectations=expectations)
    results: Any = batch.validate(suite, result_format="BOOLEAN_ONLY").results
    return [str(r.expectation_config.kwargs.get("column", "")) for r in results if not r.success]


@contextlib.contextmanager
def _expectations() -> Iterator[Any]:
    """Great Expectations' vocabulary, imported late (seconds) and kept quiet (it logs values)."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            import great_expectations.expectations as gxe

            yield gxe
        finally:
            logging.disable(before)


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
