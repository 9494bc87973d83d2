"""Likely mistakes in the table of a release: in its record, on its page and on a terminal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gramercy.common.home import Home
from gramercy.pipeline.validation.outcome import Outcome, validation_notices
from gramercy.pipeline.validation.suite import Job
from gramercy.pipeline.validation.worker_process import worker
from gramercy.reports.steward_pages import internal_page
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from tests.support.factories import contract_facts

SECRET = "Mnemosyne"


@pytest.mark.slow  # imports Great Expectations
def test_mistakes_are_recorded_without_undeclared_levels(tmp_path: Path, home: Path) -> None:
    ages = np.random.default_rng(3).integers(0, 90, 400)
    kinds = np.where(ages % 3 == 0, SECRET, np.where(ages % 3 == 1, "A", "a"))
    table = pd.DataFrame({"age": np.where(ages % 30 == 7, 999, ages), "kind": kinds})
    table.to_csv(tmp_path / "t.csv", index=False)
    columns = {"age": {"lower": 0.0, "upper": 100.0}, "kind": {"levels": ["A", "B"]}}
    declared = Contract.model_validate(
        contract_facts(tmp_path / "t.csv") | {"columns": columns, "rows": 400}
    )
    outcome = Outcome(Job.of(Home.default(), declared, declared))
    with worker() as process:
        outcome.ask_all(process)
    record = outcome.facts()
    found = {each["facts"]["mistake"]: each["facts"]["line"] for each in record["mistakes"]}
    assert found == {
        "sentinel": "missing: [999]",
        "spelling of levels": None,
        "unknown levels": None,
    }
    notices = list(validation_notices(record))
    assert [each.code for each in notices].count(families.MANY_CELLS.code) >= len(found)
    page = internal_page("toy", "v1-r1", record)
    assert "missing: [999]" in page
    assert SECRET not in page + repr(record) + repr(notices)
