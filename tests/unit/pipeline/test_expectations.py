"""The suite of a contract: its contents, and that Great Expectations can run it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.pipeline.plan.checking import check_table
from gramercy.pipeline.validation.suite import SCHEMA, VALUES, save_suite
from gramercy.schemas.contract import Contract
from tests.support.expectations import great_expectations
from tests.support.factories import contract_facts

ROWS = 6
COLUMNS: dict[str, Any] = {
    "weight": {"lower": 0.0, "upper": 200.0},
    "visits": {"lower": 0, "upper": 50},
    "blood": {"levels": ["A", "B", "AB", "0"]},
    "stage": {"levels": [1, 2, 3]},
}
VALID: dict[str, Any] = {
    "weight": [70.5, 81.0, 64.25, 90.0, 55.5, 0.0],
    "visits": [0, 3, 50, 1, 2, 7],
    "blood": ["A", "B", "AB", "0", "A", "A"],
    "stage": [1, 2, 3, 1, 2, 3],
    "person": ["p1", "p2", "p3", "p1", "p2", "p3"],
    "not in the contract": [None] * ROWS,
}


def contract() -> Contract:
    facts = {"columns": COLUMNS, "privacy_unit": "person", "persons": 3}
    return Contract.model_validate(contract_facts(rows=ROWS) | facts)


def failures(path: Path, table: pd.DataFrame) -> set[tuple[str, str]]:
    """Run a saved suite as a steward would; returns severity and column of each failure."""
    with great_expectations() as gx:
        suite = gx.ExpectationSuite(**json.loads(path.read_text()))
        sources = gx.get_context(mode="ephemeral").data_sources
        asset = sources.add_pandas("mine").add_dataframe_asset("mine")
        batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": table})
        result = batch.validate(suite)
    failed = [each.to_json_dict() for each in result.results if not each.success]
    assert result.success == (not failed)
    configs: list[Any] = [each["expectation_config"] for each in failed]
    return {(each["severity"], each["kwargs"].get("column", "")) for each in configs}


@pytest.fixture
def suite_path(tmp_path: Path) -> Path:
    path = tmp_path / "suite.json"
    save_suite(contract(), path)
    return path


WELL_TYPED: dict[str, dict[str, Any]] = {
    "as read from CSV": {},
    "persons as numbers": {"person": np.arange(ROWS)},
    "whole numbers": {"weight": np.arange(ROWS)},
    "small numbers": {"visits": np.ones(ROWS, "uint8"), "weight": np.zeros(ROWS, "float32")},
    "nullable numbers": {"visits": pd.array([1] * ROWS, "Int16"), "stage": [1.0, 2.0, 3.0] * 2},
    "nullable text": {"blood": pd.array(["A"] * ROWS, "string")},
    "text as objects": {"blood": np.array(["A"] * ROWS, object)},
}


QUICK = {"as read from CSV", "nullable numbers", "dates for numbers", "unknown level", "weight"}


def most_slow(names: Iterable[str]) -> list[Any]:
    """All names as parameters, of which `make quick` leaves most out."""
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("how", most_slow(WELL_TYPED))
def test_valid_table_passes(suite_path: Path, how: str) -> None:
    assert failures(suite_path, pd.DataFrame(VALID | WELL_TYPED[how])) == set()


INVALID: dict[str, tuple[str, str, Any]] = {
    "text for numbers": (SCHEMA, "weight", ["heavy"] * ROWS),
    "dates for numbers": (SCHEMA, "visits", pd.date_range("2026-01-01", periods=ROWS)),
    "numbers for text": (SCHEMA, "blood", [1] * ROWS),
    "text for numbered levels": (SCHEMA, "stage", ["1"] * ROWS),
    "out of bounds": (VALUES, "weight", [200.5] * ROWS),
    "missing number": (VALUES, "weight", [np.nan, *[70.0] * (ROWS - 1)]),
    "missing text": (VALUES, "blood", ["A", None] * 3),
    "unknown level": (VALUES, "blood", ["A", "a"] * 3),
    "unknown number": (VALUES, "stage", [4] * ROWS),
}


@pytest.mark.parametrize("what", most_slow(INVALID))
def test_invalid_table_fails(suite_path: Path, what: str, tmp_path: Path) -> None:
    severity, column, cells = INVALID[what]
    table = pd.DataFrame(VALID | {column: cells})
    failed = failures(suite_path, table)
    assert (severity, column) in failed
    if severity == VALUES:  # the check of the table finds the same columns
        table.to_parquet(tmp_path / "table.parquet")
        source = {"source": str(tmp_path / "table.parquet")}
        found = check_table(contract().model_copy(update=source))
        unusable = {(VALUES, each.name) for each in found.columns if each.missing + each.clamped}
        assert unusable == failed


@pytest.mark.parametrize("name", most_slow([*COLUMNS, "person"]))
def test_missing_column_fails(suite_path: Path, name: str) -> None:
    assert (SCHEMA, "") in failures(suite_path, pd.DataFrame(VALID).drop(columns=name))


def test_saved_suite_contains_only_public_facts(suite_path: Path) -> None:
    suite = json.loads(suite_path.read_text())
    assert suite["name"] == "toy"
    for each in suite["expectations"]:
        assert each["severity"] in (SCHEMA, VALUES)
        assert each["kwargs"].get("column", "weight") in COLUMNS
    per_column = [each for each in suite["expectations"] if "column" in each["kwargs"]]
    assert len(per_column) == 3 * len(COLUMNS)
