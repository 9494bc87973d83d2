"""The parts of a report about analyses, for tables of every kind of column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.estimate_bundle import read_estimate
from gramercy.archive.bundles.release_bundle import read_release
from gramercy.reports.release_report import release_page
from tests.support.factories import run_pipeline, write_request
from tests.support.pages import check_ids

NUMBERS = {name: {"lower": -3.0, "upper": 3.0} for name in ("x", "y")}
LEVELS = {name: {"levels": ["a", "b", "c"]} for name in ("k", "m")}
FIRST: dict[str, Any] = {
    "numbers": {"name": "regression", "formula": "y ~ x"},
    "levels": {"name": "tables"},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "levels"])
def test_report_has_every_analysis_of_columns_of_one_kind(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(4)
    table = pd.DataFrame(
        {name: rng.normal(size=5000) for name in NUMBERS}
        | {name: rng.choice(["a", "b", "c"], 5000) for name in LEVELS}
    )
    table.to_csv(tmp_path / "table.csv", index=False)
    estimates = [FIRST[kind], {"name": "moments"}, {"name": "synthetic", "rows": 10}]
    request = write_request(
        tmp_path,
        columns=NUMBERS if kind == "numbers" else LEVELS,
        rows=5000,
        intercept=True,
        budget={"epsilon": 10.0, "delta": 1e-5},
        request={
            "mechanism": {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6},
            "normalisation": {"kind": "clip", "radius": 3.0},
            "estimates": estimates,
        },
    )
    folder = run_pipeline(request)
    made = [read_estimate(each) for each in sorted((folder / "estimates").iterdir())]
    page = release_page(read_release(folder / "release"), made)
    check_ids(page)
    assert all(each.manifest.estimate in page for each in made)
    assert len(made) == 3
