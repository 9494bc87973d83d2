"""Codes for missing values are missing cells, and cells count as out of the contract's bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import row_normalisation
from gramercy.pipeline.plan.checking import check_table
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish.internal_record import read_record
from gramercy.pipeline.publish.private_table import PrivateCounts, accumulate
from gramercy.schemas import families
from gramercy.schemas.column import Column
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.row_transform import Repairs
from gramercy.tables.sums.streaming import integer_batches
from tests.support.factories import read_plan, run_release, write_request
from tests.support.problems import raises

ROWS = 3000
CODES = {"age": [-9.0, 999.0], "score": [-9.0]}
COLUMNS: dict[str, Any] = {
    "age": {"lower": 0.0, "upper": 100.0},
    "score": {"lower": -20.0, "upper": 20.0},
    "other": {"lower": -20.0, "upper": 20.0},
    "ward": {"levels": ["A", "B"]},
}
WITH_CODES = {
    name: column | ({"missing": CODES[name]} if name in CODES else {})
    for name, column in COLUMNS.items()
}
PRIVATE = {"scaling": "private", "mechanism": {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6}}
BUDGET = {"epsilon": 50.0, "delta": 1e-5}
PERSONS = {"privacy_unit": "person", "persons": ROWS // 3}


def table() -> pd.DataFrame:
    """Every third cell of two columns is missing."""
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": np.where(rng.random(ROWS) < 0.3, np.nan, rng.integers(0, 99, ROWS)),
            "score": np.where(rng.random(ROWS) < 0.3, np.nan, rng.integers(-8, 8, ROWS)),
            "other": rng.integers(-12, 12, ROWS),  # -9 is a value here
            "ward": rng.choice(["A", "B"], ROWS),
            "person": [f"p{k // 3}" for k in range(ROWS)],
        }
    )


def coded() -> pd.DataFrame:
    cells = table()
    gaps = cells["age"].isna()
    cells.loc[gaps, "age"] = np.resize(CODES["age"], gaps.sum())
    return cells.fillna({"score": -9.0})


def plan_of(folder: Path, cells: pd.DataFrame, columns: Any, kind: str, **keys: Any) -> Plan:
    folder.mkdir()
    cells.to_csv(folder / "table.csv", index=False)
    cells.to_parquet(folder / "table.parquet")
    facts = {"source": f"table.{kind}", "rows": ROWS, "budget": BUDGET} | keys.pop("facts", {})
    return read_plan(write_request(folder, columns=columns, **facts, request=keys))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"facts": PERSONS},
        {"folds": 3},
        {"mechanism": {"name": "rows", "epsilon": 4.0, "delta": 1e-6}},
        {"mechanism": {"name": "marginals", "epsilon": 1.0, "delta": 1e-6}, "scaling": "private"},
        PRIVATE,
    ],
    ids=["rows", "persons", "folds", "noisy rows", "marginals", "private constants"],
)
def test_codes_are_read_as_empty_cells(tmp_path: Path, kind: str, keys: dict[str, Any]) -> None:
    plan = plan_of(tmp_path / "codes", coded(), WITH_CODES, kind, **keys)
    empty = plan_of(tmp_path / "empty", table(), COLUMNS, kind, **keys)
    first, second = accumulate(plan), accumulate(empty)
    if isinstance(first, PrivateCounts):
        assert isinstance(second, PrivateCounts)
        pairs = zip(first.counts.counts, second.counts.counts, strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)
        return
    assert np.array_equal(first.sums.repairs.filled, second.sums.repairs.filled)
    assert np.array_equal(first.sums.repairs.clamped, second.sums.repairs.clamped)
    if first.sums.gram is not None and "folds" not in keys:  # folds are drawn
        assert np.array_equal(first.sums.gram, second.sums.gram)
    assert np.array_equal(integer_rows(plan), integer_rows(empty))


def integer_rows(plan: Plan) -> Any:
    batches = integer_batches(
        open_source(plan.contract.source),
        plan.scaled_contract,
        row_normalisation(plan.spec),
        plan.mechanism.lattice,
        Repairs.zeros(len(COLUMNS)),
        MalformedLines(),
    )
    return np.concatenate(list(batches), axis=1)


def test_check_counts_codes_as_missing(tmp_path: Path) -> None:
    plan = plan_of(tmp_path / "codes", coded(), WITH_CODES, "csv")
    missing = {each.name: each.missing for each in check_table(plan.contract).columns}
    assert missing == table()[[*COLUMNS]].isna().sum().to_dict()


@pytest.mark.slow
def test_codes_are_public_and_fixed_by_the_first_charge(tmp_path: Path) -> None:
    plan_of(tmp_path / "codes", coded(), WITH_CODES, "csv")
    release = run_release(tmp_path / "codes" / "request.yaml")
    facts = read_release(Context.default().archive.release("toy", release)).manifest
    assert facts.missing_codes == {name: tuple(codes) for name, codes in CODES.items()}
    changed = WITH_CODES | {"age": COLUMNS["age"] | {"missing": [-9.0]}}
    plan_of(tmp_path / "changed", coded(), changed, "csv", version="v2")
    with raises(families.TERMS, dataset="toy"):
        run_release(tmp_path / "changed" / "request.yaml")


def test_releases_without_codes_state_none(tmp_path: Path) -> None:
    plan = plan_of(tmp_path / "empty", table(), COLUMNS, "csv")
    assert "missing_codes" not in plan.spec.model_dump()
    assert all("missing" not in column for column in plan.contract.terms()["columns"])


@pytest.mark.parametrize("codes", [[float("nan")], [float("inf")], ["-9"], list(range(21))])
def test_invalid_codes_are_refused(codes: list[Any]) -> None:
    with pytest.raises(ValidationError):
        Column.model_validate({"missing": codes})


@pytest.mark.slow
@pytest.mark.parametrize("scaling", [{}, PRIVATE])
def test_cells_out_of_the_declared_bounds_are_counted(
    tmp_path: Path, scaling: dict[str, Any]
) -> None:
    """Whatever bounds a release estimates: the contract's may have the wrong unit."""
    columns = WITH_CODES | {"other": {"lower": -20.0, "upper": -6.0}, "score": {"missing": [-9.0]}}
    columns = columns if scaling else columns | {"score": WITH_CODES["score"]}
    cells = coded()
    plan_of(tmp_path / "t", cells, columns, "csv", **scaling)
    release = run_release(tmp_path / "t" / "request.yaml")
    record = read_record(Context.default().home, "toy", release)
    beyond = int((cells["other"] > -6).sum())
    assert record["clamped_cells"] == {"age": 0, "score": 0, "other": beyond, "ward": 0}
    assert record["filled_cells"] == table()[[*COLUMNS]].isna().sum().to_dict()
