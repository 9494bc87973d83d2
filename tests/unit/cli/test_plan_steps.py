"""``gramercy plan`` and ``gramercy check`` of a step of a cumulative series."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.cli.plan_text import plan_facts, print_plan
from gramercy.common.prefix_sums import PrefixSums
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.budget_preview import preview_budget
from gramercy.pipeline.plan.planning import make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.schemas import families
from tests.support.factories import run_command, run_json
from tests.unit.pipeline.test_cumulative import catch_up, visits, written

CLIP = {"kind": "clip", "radius": 2.0}


def planned(folder: Path, period: str, capsys: pytest.CaptureFixture[str], **keys: Any) -> Any:
    request = written(folder, period, visits(), normalisation=CLIP, **keys)
    return run_json("plan", request, capsys=capsys)


def test_plan_of_the_first_step_is_charged_for_all(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = planned(tmp_path, "2026-Q1-03", capsys)
    step = facts["cumulative"]
    assert (step["step"], step["steps"], step["every"]) == (3, 3, "month")
    assert (step["first_day"], step["last_day"]) == ("2026-01-01", "2026-03-31")
    assert step["published"] == ["2026-Q1-01", "2026-Q1-02", "2026-Q1-03"]
    assert not step["included"]
    sums = PrefixSums(3)
    expected = sums.spread(3) * sums.squared_norm() ** 0.5
    assert step["relative_noise"]["end"] == pytest.approx(expected)
    assert step["relative_noise"]["otherwise"] == pytest.approx(3**0.5)
    assert facts["budget_before"] != facts["budget_after"]


@pytest.mark.slow
def test_later_steps_are_included_in_the_first_charge(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catch_up(written(tmp_path, "2026-Q1-01", visits(), normalisation=CLIP))
    facts = planned(tmp_path, "2026-Q1-03", capsys)
    assert facts["cumulative"]["published"] == ["2026-Q1-02", "2026-Q1-03"]
    assert facts["cumulative"]["included"]
    assert facts["admitted"]
    assert facts["budget_after"] == facts["budget_before"]
    page = tmp_path / "plan.html"
    code, out, err = run_command("plan", tmp_path / "request.yaml", "--page", page, capsys=capsys)
    assert code == 0, out + err
    assert "step 3 of 3" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_step_that_is_not_complete_is_named(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    label = f"{datetime.datetime.now(datetime.UTC).year + 1}-Q4-12"
    request = written(tmp_path, label, visits(), normalisation=CLIP)
    assert run_json("plan", request, capsys=capsys)["unfinished_period"]["version"] == label
    code, out, err = run_command("plan", request, capsys=capsys)
    assert code == 0, err
    assert "counts in part" in " ".join(out.split())


def test_check_counts_the_rows_of_every_step(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = visits()
    in_march = [day.month == 3 for day in table.visited]
    few = table[~np.array(in_march) | (np.arange(len(table)) % 9 == 0)]
    request = written(tmp_path, "2026-Q1-03", few, normalisation=CLIP)
    facts = run_json("check", request, capsys=capsys)
    month = [each.month if each.year == 2026 else 0 for each in few.visited]
    assert [each["rows"] for each in facts["rows_by_step"]] == [month.count(k) for k in (1, 2, 3)]
    march = facts["rows_by_step"][2]
    assert (march["version"], march["last_day"]) == ("2026-Q1-03", "2026-03-31")
    codes = [each["code"] for each in facts["problems"]]
    assert families.VERSION_NOT_FINAL.code in codes
    complete = written(tmp_path, "2026-Q1-03", table, normalisation=CLIP)
    problems = run_json("check", complete, capsys=capsys)["problems"]
    assert families.VERSION_NOT_FINAL.code not in [each["code"] for each in problems]


@pytest.mark.slow
def test_plan_of_a_step_that_is_drawn_again_shows_what_that_adds(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catch_up(written(tmp_path, "2026-Q1-02", visits(), normalisation=CLIP))
    request = tmp_path / "request.yaml"
    published = run_json("plan", request, capsys=capsys)["cumulative"]
    assert (published["included"], published["again"]) == (True, False)
    assert (
        run_command("withdraw", "toy/2026-Q1-02-r1", "--reason", "late", "--yes", capsys=capsys)[0]
        == 0
    )
    err = run_command("release", request, "--yes", capsys=capsys)[2]
    assert "--period 2026-Q1-02 --new-charge" in " ".join(err.split())
    plan = make_plan(Context.default(), read_request(request)).with_new_charge("2026-Q1-02-r1")
    preview = preview_budget(Context.default(), plan)
    step = plan_facts(plan, preview)["cumulative"]
    assert (step["included"], step["again"]) == (False, True)
    print_plan(plan, preview)
    assert f"{preview.due.mu:.6g}-GDP" in capsys.readouterr().out


@pytest.mark.parametrize(("months", "warned"), [((1, 2), 1), ((1,), 2), ((2,), 1), ((2, 3), 0)])
def test_check_warns_of_last_steps_without_rows(
    tmp_path: Path,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    months: tuple[int, ...],
    warned: int,
) -> None:
    """Also where most steps are empty; first ones without rows are before the table begins."""
    table = visits()
    kept = table[[day.year == 2026 and day.month in months for day in table.visited]]
    request = written(tmp_path, "2026-Q1-03", kept, normalisation=CLIP)
    found = run_json("check", request, capsys=capsys)["problems"]
    said = " ".join(x["message"] for x in found if x["code"] == families.VERSION_NOT_FINAL.code)
    labels = ["2026-Q1-01", "2026-Q1-02", "2026-Q1-03"]
    assert [label for label in labels if label in said] == labels[3 - warned :]
