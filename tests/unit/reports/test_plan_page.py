"""The page of a plan: it agrees with the command, reads no data, and charges nothing."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.common.notation import in_symbols
from gramercy.pipeline.plan.forecast import forecast, rank_mechanisms
from gramercy.schemas import families
from tests.support.factories import read_plan, run_command, run_json, run_release, write_request
from tests.support.pages import check_ids

# Few mechanisms can answer such a request, so ranking them is fast.
PURE = {"name": "laplace", "epsilon": 1.0}


def plan_html(request: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """The command's output and the page of a plan, with fewer points on the curves."""
    place = request.with_name("plan.html")
    with pytest.MonkeyPatch.context() as few:
        few.setattr("gramercy.pipeline.plan.forecast._STEPS", 3)
        code, out, err = run_command("plan", request, "--page", place, *words, capsys=capsys)
    assert code == 0, err
    assert f"Page: {place}" in out.replace("\n", "")
    return out, place.read_text(encoding="utf-8")


@pytest.mark.slow
def test_plan_page_agrees_with_the_command(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = {"<script>alert(1)</script>": {"lower": 0.0, "upper": 1.0}, "b": {"levels": ["<i>"]}}
    request = write_request(tmp_path, columns=hostile, title="Blood & <b>bones</b>")
    (tmp_path / "table.csv").unlink()  # a plan does not need the table
    facts = run_json("plan", request, "--no-table", capsys=capsys)
    out, page = plan_html(request, capsys, "--no-table")
    assert "<script" not in page
    check_ids(page)
    assert "&lt;script&gt;" in page
    assert not re.search(r"(src|href)=\"(?!data:|#)|url\((?!#)|https?://(?!www\.w3\.org)", page)
    assert "prefers-color-scheme: dark" in page
    words = re.sub(r"<[^>]*>", "", page)
    assert f"{100 * facts['share_of_entry']:.3g} % of an average" in out
    assert f"{100 * facts['share_of_entry']:.3g} % of an average entry of the diagonal" in words
    assert facts["share_of_entry"] == facts["sd_off_diagonal"] * facts["columns"]
    assert f"{facts['more_like_this']} more like this one" in words
    taken = 100 * facts["budget_after"]["share"]
    assert f"this release {taken:.3g} %" in words
    assert "It fits the budget" in words
    verdict = facts["verdict"]
    assert verdict["level"] == "orange"
    assert html.unescape(page).count(in_symbols(verdict["text"])) == 1
    assert not (home / "archive").exists()
    assert run_json("budget", capsys=capsys) == []  # nothing was registered, or charged


@pytest.mark.slow
def test_forecast_curves_pass_through_the_requested_epsilon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gramercy.pipeline.plan.forecast._STEPS", 3)
    plan = read_plan(write_request(tmp_path))
    public, spec = plan.spec, plan.request.mechanism
    curves = forecast(public, spec, 1.0)
    now = {offer.name: offer.error for offer in rank_mechanisms(public, spec)[0]}
    assert curves.keys() == now.keys()
    assert len(now) >= 7
    for name, points in curves.items():
        epsilons, errors = np.array(points).T
        np.testing.assert_allclose(epsilons, [1 / 8, 1, 8])
        assert (np.diff(errors) < 0).all()
        assert errors[1] == pytest.approx(now[name], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "marked"),
    [
        (PURE, "laplace"),
        ({"name": "rows", "snr": -20.0, "delta": 1e-6}, "rows"),
    ],
    ids=["pure", "snr"],
)
def test_plan_page_marks_the_requested_mechanism(
    mechanism: dict[str, Any], marked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, page = plan_html(write_request(tmp_path, request={"mechanism": mechanism}), capsys)
    assert ">request<" in page
    assert re.search(rf'class="offer own"><td>{marked}<', page)


@pytest.mark.slow
def test_precision_mechanism_is_not_compared_with_second_moments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = {"name": "output", "epsilon": 1.0, "delta": 1e-6, "penalty": 0.5}
    output["arithmetic"] = "floating-point"
    changes = {"mechanism": output, "estimates": []}
    out, page = plan_html(write_request(tmp_path, request=changes), capsys)
    assert "in proportion" not in out
    assert ">request<" not in page
    assert "A precision matrix, the graphical lasso solution" in page


def test_plan_page_of_histograms_has_the_error_of_a_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {"name": "marginals", "epsilon": 1.0, "delta": 1e-6}
    request = write_request(tmp_path, request={"mechanism": counts, "estimates": []})
    out, page = plan_html(request, capsys)
    assert "Noisy histograms of every column" in page
    (sd,) = re.findall(r"error of a count +sd ([0-9.]+)", out)
    assert f"± {sd}</b>" in page
    assert "Ranking of mechanisms" not in page


@pytest.mark.slow
def test_plan_over_budget_is_reported_without_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path, request={"mechanism": PURE | {"epsilon": 9.0}})
    facts = run_json("plan", request, capsys=capsys)
    assert facts["admitted"] is False
    out, page = plan_html(request, capsys)
    text = " ".join(out.split())
    assert families.EXCEEDED.code in text
    assert f"epsilon={facts['budget_before']['remaining_epsilon']:.4g} " in text
    assert re.findall(r'<div class="note (\w+)"><b>(.*?)</b>', page)[0] == (
        "danger",
        "It would be refused",
    )
    assert 'class="taken"></i>this release' not in page


@pytest.mark.slow
def test_plan_page_of_a_published_request_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path, request={"mechanism": PURE})
    run_release(request)
    _, page = plan_html(request, capsys)
    assert "It costs nothing" in page
    assert "published as v1-r1" in page


@pytest.mark.parametrize("words", [(), ("--compare",)])
def test_unwritable_plan_page_is_reported_first(
    words: tuple[str, ...], tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "nowhere/plan.html"
    arguments = ("plan", write_request(tmp_path), *words, "--page", page, "--json")
    code, out, _ = run_command(*arguments, capsys=capsys)
    assert code == 2
    error = json.loads(out)  # a single document
    assert error["code"] == families.OUTPUT.code
    assert error["facts"] == {"option": "--page", "path": str(page)}
