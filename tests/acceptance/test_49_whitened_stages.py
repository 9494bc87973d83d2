"""Releases whose matrix is drawn in the metric of a pilot: what they charge, publish and keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from tests.support.factories import run_release, write_request

ROWS, P = 3000, 4


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAMERCY_HOME", str(tmp_path / "home"))


def correlated(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """A table of columns that are nearly copies of each other, which is worth a metric."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(rows, 1))
    values = common + 0.2 * rng.normal(size=(rows, P))
    return pd.DataFrame(values, columns=[f"c{j}" for j in range(P)])


def requested(folder: Path, epsilon: float = 20.0, request: Any = None, **facts: Any) -> Path:
    mechanism = {"name": "gaussian", "epsilon": epsilon, "delta": 1e-6}
    keys = {"scaling": "private", "mechanism": mechanism, "estimates": []} | (request or {})
    declared = {"rows": ROWS, "columns": {f"c{j}": {} for j in range(P)}, "intercept": True}
    budget = {"epsilon": 1000.0, "delta": 1e-4}
    return write_request(folder, request=keys, budget=budget, **declared | facts)


def released(request: Path) -> ReleaseBundle:
    name = run_release(request)
    return read_release(Context.default().archive.release("toy", name))


def test_matrix_is_drawn_in_the_metric_of_the_pilot(tmp_path: Path) -> None:
    table = correlated()
    table.to_csv(tmp_path / "table.csv", index=False)
    bundle = released(requested(tmp_path))
    scaling = bundle.manifest.scaling
    assert scaling is not None
    assert scaling.metric_radius is not None
    evidence = bundle.evidence
    moments = evidence.raw[1:, 1:] / evidence.raw[0, 0]
    moments -= np.outer(evidence.raw[0, 1:], evidence.raw[0, 1:]) / evidence.raw[0, 0] ** 2
    sds = np.sqrt(np.diag(moments))
    assert np.allclose(moments / np.outer(sds, sds), table.corr(), atol=0.02)


def test_internal_record_compares_in_the_units_of_the_release(tmp_path: Path) -> None:
    correlated().to_csv(tmp_path / "table.csv", index=False)
    bundle = released(requested(tmp_path))
    record = Home.default().internal / "toy" / f"{bundle.manifest.release}.json"
    truth = json.loads(record.read_text())["truth"]
    assert truth["released"] < 3 * truth["expected"]
    assert 0.1 < truth["largest"] < 8


def test_folders_of_a_declared_column_do_not_stop_a_release_with_folds(tmp_path: Path) -> None:
    """A pass after the charge must not refuse what the first pass has read."""
    table = correlated()
    kinds = np.where(table["c0"] > 0, "a", "b")
    for kind in "ab":
        folder = tmp_path / "table" / f"kind={kind}"
        folder.mkdir(parents=True)
        table[kinds == kind].to_csv(folder / "part.csv", index=False)
    columns = {f"c{j}": {} for j in range(P)} | {"kind": {"levels": ["a", "b"]}}
    bundle = released(requested(tmp_path, request={"folds": 3}, source="table", columns=columns))
    assert bundle.whitening is not None
    assert len(bundle.folds) == 3
