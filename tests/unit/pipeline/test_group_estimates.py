"""Estimates from groups: sealed, verified, and shown with the noise of the group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy import estimators
from gramercy.archive.bundles.release_bundle import ReleaseBundle, read_release
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_report
from gramercy.pipeline.publish.estimating import make_estimate
from gramercy.pipeline.verify.verification import verify_release
from gramercy.reports.estimate_summary import EstimateSummary, edge_stability
from gramercy.schemas import families
from gramercy.schemas.problem import Family
from tests.support.factories import run_release
from tests.support.problems import raises
from tests.support.survey import survey_request
from tests.unit.pipeline.test_groups import CLIP, plan_of_groups

LASSO = {"name": "graphical-lasso", "penalty": 0.003}


def survey_by_ward(folder: Path) -> ReleaseBundle:
    name = run_release(survey_request(folder, epsilon=16.0, rows=2000, by="ward"))
    return read_release(Context.default().archive.release("toy", name))


@pytest.mark.slow
def test_estimates_of_a_group_are_sealed_verified_and_reported(tmp_path: Path) -> None:
    bundle, context = survey_by_ward(tmp_path), Context.default()
    release, archive = bundle.manifest.release, context.archive
    settings: list[dict[str, Any]] = [
        LASSO | {"group": "A"},
        LASSO,
        {"name": "moments", "group": "B"},
        {"name": "pca", "group": "A"},
        {"name": "regression", "formula": "income ~ hours", "group": "A"},
        {"name": "tables", "group": "A"},
        {"name": "synthetic", "group": "C", "rows": 50},
    ]
    specs = [estimators.registry[each["name"]].model_validate(each) for each in settings]
    made = [make_estimate(context, "toy", release, spec) for spec in specs]
    of_group, of_all = made[:2]
    again = specs[0].fit(dict(bundle.evidence.groups)["A"])
    np.testing.assert_allclose(of_group.matrices["precision"], again.matrix, rtol=1e-9)
    assert np.abs(of_group.matrices["precision"] - of_all.matrices["precision"]).max() > 0.1

    # Edges are redrawn with the rows and the noise of the group.
    drawn = edge_stability(bundle.rows_of("A"), of_group)
    rate = round(100 * EstimateSummary.of(of_group, drawn).new_edge_rate, 1)
    page = make_report(context, "toy", release, [each.manifest.estimate for each in made]).page
    _, _, part = page.partition("<h3>graphical-lasso: group A, penalty 0.003</h3>")
    assert f"one in {rate} %" in part.partition("<h3>")[0]
    assert "<h3>graphical-lasso: penalty 0.003</h3>" in page
    assert page.count("(group A)</h3>") == 3
    assert page.count("(group B)</h3>") == page.count("(group C)</h3>") == 1
    result = verify_release(archive, "toy", release, None)
    assert len([check for check in result.checks if check.startswith("estimate")]) == len(made)
    assert not result.unchecked
    with raises(families.UNKNOWN_NAME, group="D"):
        bundle.rows_of("D")


@pytest.mark.parametrize(
    ("estimate", "request_keys", "facts", "problem"),
    [
        ({"name": "ridge", "group": "C"}, {}, {}, families.UNKNOWN_NAME),
        ({"name": "ridge", "group": "A"}, {"by": None}, {}, families.UNKNOWN_NAME),
        ({"name": "quadratic-discriminant"}, {"by": None}, {}, families.ESTIMATE),
        ({"name": "quadratic-discriminant", "group": "A"}, {}, {}, families.ESTIMATE),
        ({"name": "quadratic-discriminant"}, {}, {"intercept": False}, families.ANALYSIS),
        ({"name": "quadratic-discriminant"}, {"normalisation": "unit"}, {}, families.ANALYSIS),
    ],
)
def test_impossible_estimates_are_refused_before_a_charge(
    tmp_path: Path,
    estimate: dict[str, Any],
    request_keys: dict[str, Any],
    facts: dict[str, Any],
    problem: Family[Any],
) -> None:
    with raises(problem):
        plan_of_groups(tmp_path, request={"estimates": [estimate]} | request_keys, **facts)


def test_estimate_of_an_unknown_group_makes_no_folder(tmp_path: Path) -> None:
    plan_of_groups(tmp_path, request={"normalisation": CLIP})
    context, release = Context.default(), run_release(tmp_path / "request.yaml")
    spec = estimators.registry["ridge"].model_validate({"name": "ridge", "group": "Z"})
    with raises(families.UNKNOWN_NAME, group="Z", known=("A", "B", "(other)")):
        make_estimate(context, "toy", release, spec)
    assert not list(context.archive.estimates("toy", release))
