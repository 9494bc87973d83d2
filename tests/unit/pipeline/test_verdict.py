"""The verdict on a plan: its colour at many sizes, and that the proposed changes suffice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.estimators.accuracy.clipped_accuracy import ClippedAccuracy
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.verdict import plan_verdict, predicted_accuracy, typical_entry, useless
from gramercy.schemas import families
from tests.support.factories import read_plan, run_command, run_json, write_request
from tests.support.simulated_release import privately_scaled
from tests.support.steps import step_spec

BUDGET = {"epsilon": 900.0, "delta": 1e-8}


def planned(folder: Path, rows: int, p: int, epsilon: float, **changes: Any) -> Plan:
    request = changes.pop("request", {})
    mechanism = {"name": "gaussian", "epsilon": epsilon, "delta": 1e-9}
    columns = {f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(p)}
    facts = {"rows": rows, "columns": columns, "budget": BUDGET} | changes
    return read_plan(write_request(folder, request={"mechanism": mechanism} | request, **facts))


def noise_share(plan: Plan) -> float:
    return plan.law.sd_off_diagonal / typical_entry(plan.spec)


PRIVATE = {"scaling": "private"}


def private_plan(folder: Path, rows: int, p: int, epsilon: float, **changes: Any) -> Plan:
    return planned(folder, rows, p, epsilon, request=PRIVATE, intercept=True, **changes)


@pytest.mark.parametrize(
    ("rows", "p", "epsilon", "request_keys", "level"),
    [
        (40, 3, 0.1, {}, "red"),
        (100, 100, 4.0, {}, "red"),
        pytest.param(2_000, 400, 1.0, {}, "red", marks=pytest.mark.slow),
        (1_000, 20, 0.1, {"normalisation": {"kind": "clip", "radius": 9.0}}, "red"),
        (5_000, 20, 1.0, {}, "orange"),
        (100_000, 20, 4.0, {}, "orange"),  # unit rows
        (1_000_000, 20, 0.5, PRIVATE, "orange"),  # without an intercept
    ],
)
def test_colour_of_a_plan(
    tmp_path: Path, rows: int, p: int, epsilon: float, request_keys: Any, level: str
) -> None:
    plan = planned(tmp_path, rows, p, epsilon, request=request_keys)
    verdict = plan_verdict(plan)
    assert verdict.level == level
    codes = {"red": families.NOISE.code, "orange": families.NOISE.code}
    assert verdict.code == codes.get(level, "")
    assert (useless(plan) is not None) == (level == "red")
    certain = plan.matrix_error > 1 or noise_share(plan) >= 1
    assert certain == (level == "red")


@pytest.mark.parametrize(
    ("rows", "p", "epsilon"),
    [
        (40, 3, 0.1),
        (100, 12, 0.5),
        pytest.param(2_000, 100, 0.1, marks=pytest.mark.slow),
        (60, 2, 0.2),
    ],
)
def test_proposed_changes_bring_the_noise_down(
    tmp_path: Path, rows: int, p: int, epsilon: float
) -> None:
    verdict = plan_verdict(planned(tmp_path, rows, p, epsilon))
    assert verdict.level == "red"
    changes = {
        key: verdict.facts[key] for key in ("rows", "epsilon", "columns") if key in verdict.facts
    }
    assert {"rows", "epsilon"} <= changes.keys()
    for key, value in changes.items():
        new = {"rows": rows, "p": p, "epsilon": epsilon} | {"p" if key == "columns" else key: value}
        changed = planned(tmp_path, **new)
        assert noise_share(changed) <= 0.1 * (1 + 1e-9)
        assert useless(changed) is None
        assert noise_share(changed) > 0.07 or key == "columns"  # and not by far more than needed


@pytest.mark.slow
def test_proposed_columns_fit_and_one_more_does_not(tmp_path: Path) -> None:
    verdict = plan_verdict(planned(tmp_path, 2_000, 400, 1.0))
    columns = verdict.facts["columns"]
    assert noise_share(planned(tmp_path, 2_000, columns, 1.0)) <= 0.1
    assert noise_share(planned(tmp_path, 2_000, columns + 1, 1.0)) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "p", "epsilon"),
    [(1_000, 8, 1.0), (3_000, 20, 1.0), pytest.param(20_000, 50, 0.3, marks=pytest.mark.slow)],
)
def test_orange_plan_is_green_after_a_proposed_change(
    tmp_path: Path, rows: int, p: int, epsilon: float
) -> None:
    orange = plan_verdict(private_plan(tmp_path, rows, p, epsilon))
    assert (orange.level, orange.code) == ("orange", families.NOISE.code)
    for key in ("rows", "epsilon"):
        sizes: dict[str, Any] = {"rows": rows, "p": p, "epsilon": epsilon}
        sizes[key] = orange.facts[key]
        changed = plan_verdict(private_plan(tmp_path, **sizes))
        assert changed.level == "green"
        assert changed.facts["largest_error"] > 0.04  # and not by far more than needed


def plain_table(rows: int, p: int, seed: int) -> Any:
    stream = np.random.default_rng(seed)
    common = stream.normal(size=(rows, 1)) * 0.3**0.5
    return common + stream.normal(size=(rows, p)) * 0.7**0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "p", "epsilon", "level"),
    [
        (1_000, 8, 1.0, "orange"),
        (2_000, 8, 4.0, "green"),
        (20_000, 20, 1.0, "green"),
        (3_000, 40, 1.0, "orange"),
        pytest.param(100_000, 50, 1.0, "green", marks=pytest.mark.slow),
    ],
)
def test_plan_says_what_the_report_of_a_plain_table_says(
    tmp_path: Path, rows: int, p: int, epsilon: float, level: str
) -> None:
    plan = private_plan(tmp_path, rows, p, epsilon)
    verdict = plan_verdict(plan)
    assert verdict.level == level
    bounds = [(-9.0, 9.0)] * p
    whitened = plan.calibration.pilot is not None
    releases = (
        privately_scaled(plain_table(rows, p, k), bounds, epsilon, k, whitened=whitened)
        for k in range(5)
    )
    reports = [ClippedAccuracy.of(each) for each in releases]
    levels = {"good": "green", "warning": "orange", "danger": "red"}
    assert [levels[each.level] for each in reports].count(level) >= 4
    for name, value in (
        ("typical", verdict.facts["error"][1]),
        ("largest", verdict.facts["largest_error"]),
    ):
        found = float(np.median([getattr(each, name) for each in reports]))
        assert 0.6 * found < value < 1.6 * found


@pytest.mark.slow
def test_plan_of_a_release_that_is_unreliable_for_any_table_is_red(tmp_path: Path) -> None:
    plan = private_plan(tmp_path, 2_000, 40, 1.0)
    verdict = plan_verdict(plan)
    assert (verdict.level, verdict.facts["lost_share"]) == ("red", 1.0)
    assert useless(plan) is not None


@pytest.mark.slow
def test_plan_of_a_series_is_not_green(tmp_path: Path) -> None:
    """Later readings may find rows of earlier steps that changed."""
    plan = private_plan(tmp_path, 2_000, 8, 4.0)
    series = plan.spec.model_copy(update={"cumulative": step_spec(1, 4).cumulative})
    verdicts = plan_verdict(plan), plan_verdict(replace(plan, spec=series))
    green, orange = [each for each in verdicts if each is not None]
    assert (green.level, orange.level) == ("green", "orange")
    assert orange.code == families.READING.code
    assert orange.facts == green.facts


def test_plan_is_not_green_where_the_report_cannot_be(tmp_path: Path) -> None:
    """Without shares of missing cells, or without an intercept; levels have no missing cells."""
    clip = {"normalisation": {"kind": "clip", "radius": 9.0}}
    columns = {f"c{i}": {"lower": -50.0, "upper": 50.0, "scale": 1.0} for i in range(8)}
    levels = {f"c{i}": {"levels": ["a", "b"]} for i in range(4)}
    found = {
        name: plan_verdict(planned(tmp_path, 1_000_000, 8, 4.0, request=clip, **keys)).level
        for name, keys in {
            "numeric": {"columns": columns, "intercept": True},
            "levels": {"columns": levels, "intercept": True},
            "no intercept": {"columns": levels, "intercept": False},
        }.items()
    }
    assert found == {"numeric": "orange", "levels": "green", "no intercept": "orange"}


def test_missing_intercept_is_predicted_to_matter(tmp_path: Path) -> None:
    biases = []
    for intercept in (True, False):
        plan = planned(tmp_path, 100_000, 20, 1.0, intercept=intercept)
        accuracy = predicted_accuracy(plan.spec, plan.law)
        biases.append(accuracy.bias[1])
    assert biases[0] < 0.1
    assert biases[1] > 0.4


def test_declared_scales_are_believed(tmp_path: Path) -> None:
    clip = {"normalisation": {"kind": "clip", "radius": 9.0}}
    known = {f"c{i}": {"lower": -50.0, "upper": 50.0, "scale": 1.0} for i in range(8)}
    guessed = {name: {"lower": -50.0, "upper": 50.0} for name in known}
    plans = [
        planned(tmp_path, 100_000, 8, 1.0, columns=each, request=clip) for each in (known, guessed)
    ]
    noise = [predicted_accuracy(plan.spec, plan.law) for plan in plans]
    assert noise[0].noise[1] < 0.2 * noise[1].noise[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": {f"c{i}": {"levels": ["a", "b"]} for i in range(3)}},
        {"privacy_unit": "patient", "persons": 100},
        {"neighbours": "add-remove"},
        {"request": {"normalisation": "box"}},
        {
            "request": {
                "normalisation": "whole",
                "mechanism": {"name": "integer-rows", "epsilon": 1.0, "delta": 1e-9},
            }
        },
        {"columns": {"c0": {"lower": 0.0, "upper": 1.0}}},
    ],
    ids=["levels", "persons", "add-remove", "box", "whole", "one column"],
)
def test_every_kind_of_plan_has_a_verdict(tmp_path: Path, changes: dict[str, Any]) -> None:
    verdict = plan_verdict(planned(tmp_path, 2_000, 3, 1.0, **changes))
    assert verdict.facts["noise_share_of_entry"] > 0
    assert "nan" not in verdict.text


def test_plan_without_a_second_moment_has_no_verdict(tmp_path: Path) -> None:
    precision = {"name": "output", "epsilon": 1.0, "delta": 1e-9, "penalty": 0.5}
    precision["arithmetic"] = "floating-point"
    plan = planned(tmp_path, 40, 3, 1.0, request={"mechanism": precision, "estimates": []})
    assert plan_verdict(plan) is None
    assert useless(plan) is None


@pytest.mark.slow
def test_verdict_is_in_the_plan_as_text_and_as_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path, request={"mechanism": {"name": "laplace", "epsilon": 0.05}})
    facts = run_json("plan", request, capsys=capsys)["verdict"]
    assert facts["level"] == "red"
    assert facts["code"] == families.NOISE.code
    assert facts["facts"]["noise_norm"] > facts["facts"]["largest_norm"] == 1.0
    page = tmp_path / "plan.html"
    with pytest.MonkeyPatch.context() as few:
        few.setattr("gramercy.pipeline.plan.forecast._STEPS", 2)
        code, out, _ = run_command("plan", request, "--page", page, capsys=capsys)
    assert code == 0
    assert families.NOISE.code in out
    assert f'note danger"><b>This release would be useless <span class="code">{facts["code"]}' in (
        page.read_text(encoding="utf-8")
    )
