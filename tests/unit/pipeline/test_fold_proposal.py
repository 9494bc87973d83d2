"""Folds are proposed where their noise is small against the sampling error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramercy.pipeline.plan.calibration import FOLDS, folds_of_draft, proposed_folds
from tests.support.factories import read_plan, write_request


def proposal(folder: Path, rows: int, **keys: Any) -> int:
    mechanism = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-9}
    facts = {"rows": rows, "budget": {"epsilon": 3.0, "delta": 1e-8}} | keys.pop("facts", {})
    request = {"mechanism": mechanism, "estimates": []} | keys
    plan = read_plan(write_request(folder, request=request, **facts))
    return proposed_folds(plan.spec, plan.calibration)


@pytest.mark.parametrize(
    "keys",
    [{}, {"scaling": "private"}, {"normalisation": {"kind": "clip", "radius": 2.0}}],
    ids=["unit", "private", "clip"],
)
def test_large_tables_get_folds(tmp_path: Path, keys: dict[str, Any]) -> None:
    rows = 20_000_000 if keys.get("scaling") == "private" else 1_000_000
    assert proposal(tmp_path, rows, **keys) == FOLDS
    assert proposal(tmp_path, 2_000, **keys) == 1


def test_no_folds_for_persons_other_noise_or_stated_folds(tmp_path: Path) -> None:
    assert proposal(tmp_path, 1_000_000, folds=4) == 4
    laplace = {"name": "laplace", "epsilon": 1.0}
    assert proposal(tmp_path, 1_000_000, mechanism=laplace) == 1
    persons = {"privacy_unit": "who", "persons": 500_000}
    assert proposal(tmp_path, 1_000_000, facts=persons) == 1


def test_drafts_agree_with_plans(tmp_path: Path) -> None:
    for rows in (10_000, 1_000_000, 20_000_000):
        drafted = folds_of_draft(rows, 3, 1.0, 1e-9)
        with_intercept = {"intercept": True}
        assert proposal(tmp_path, rows, scaling="private", facts=with_intercept) == drafted
