"""The demo's table is what its contract says, and its release would be accurate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from gramercy.pipeline.demo import FORMULA, PRESSURE, visits, write_demo_files
from gramercy.pipeline.plan.planning import make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.plan.verdict import plan_verdict
from gramercy.schemas.column import Column, Levels
from gramercy.schemas.request_parts import PrivateScaling


def test_demo_contract_describes_its_table(home: Path) -> None:
    context = Context.default()
    plan = make_plan(context, read_request(write_demo_files(Home(home))))
    table = pd.read_csv(home / "demo" / "visits.csv")
    assert len(table) == plan.contract.rows
    assert list(table) == plan.contract.names
    for name, column in plan.contract.columns.items():
        if isinstance(column, Levels):
            assert set(table[name]) == set(column.levels)
        else:
            assert isinstance(column, Column)
            clamped = (table[name] < column.lower) | (table[name] > column.upper)
            assert clamped.mean() < 1e-3
    assert table.isna().any().sum() == 3
    verdict = plan_verdict(plan)
    assert verdict.level == "green"
    assert isinstance(plan.request.scaling, PrivateScaling)
    assert plan.spec.scaling is not None  # enough rows for private constants
    assert FORMULA in [getattr(each, "formula", None) for each in plan.request.estimates]


def test_files_that_the_user_edited_are_kept(home: Path) -> None:
    path = write_demo_files(Home(home))
    path.write_text("edited")
    assert write_demo_files(Home(home)) == path
    assert path.read_text() == "edited"


def test_regression_of_the_table_gives_what_it_was_made_with() -> None:
    table = visits()
    assert visits(50).equals(visits(50))
    regressors = np.column_stack(
        [np.ones(len(table)), table["age"], table["bmi"], table["smoker"] == "yes"]
    ).astype(float)
    found = np.linalg.lstsq(regressors, table["pressure"].to_numpy(), rcond=None)[0]
    np.testing.assert_allclose(found, list(PRESSURE.values()), rtol=0.015)
