"""The part of a report about groups of rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.release_bundle import read_release
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.reports.column_summaries import row_groups
from gramercy.reports.release_report import release_page
from gramercy.schemas.facts import OTHER
from tests.support.factories import run_release
from tests.support.pages import check_ids
from tests.unit.pipeline.test_groups import COLUMNS, plan_of_groups


@pytest.mark.slow
def test_report_shows_every_group_in_own_units(tmp_path: Path) -> None:
    """Ward B has a mean of 0.5 and a strong correlation; there is no row of another ward."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-0.4, 0.4, (2, 20_000))
    ward = np.repeat(["A", "B"], 10_000)
    frame = pd.DataFrame({"x": x, "y": np.where(ward == "B", x, y), "ward": ward})
    frame["x"] += np.where(ward == "B", 0.5, 0)
    keys = {
        "normalisation": {"kind": "clip", "radius": 1.6},
        "mechanism": {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6},
    }
    budget = {"epsilon": 10.0, "delta": 1e-5}
    columns = COLUMNS | {"ward": {"levels": ["A", "B", "<C> & $D$"]}}
    plan_of_groups(tmp_path, frame, columns=columns, budget=budget, request=keys)
    name = run_release(tmp_path / "request.yaml")
    place = open_archive(Home.default().archive).release("toy", name)
    bundle = read_release(place)
    groups = row_groups(bundle)
    assert [group.name for group in groups] == ["A", "B", "<C> & $D$", OTHER]
    means = [group.columns["x"].mean[0] for group in groups[:2]]
    assert means[1] - means[0] > 0.4
    assert abs(groups[0].rows[0] - 10_000) < 10 * groups[0].rows[1]
    assert all(group.picture for group in groups[:2])
    page = release_page(bundle, [])
    check_ids(page)
    assert page == release_page(bundle, [])
    assert page.count("<svg") >= 5
    assert "&lt;C&gt; &amp; $D$" in page
    assert "<C>" not in page
