"""A period that is named before it is over."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.budget_preview import unfinished_period
from gramercy.pipeline.plan.planning import make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.schemas import families
from tests.support.factories import run_command, run_json, write_request, write_table

BUDGET = {"epsilon": 3.0, "delta": 1e-5, "per": "month"}


def monthly(folder: Path, version: str = "{period}", **request: str) -> Path:
    facts = {"version": version, **request}
    source = "visits-{year}-{month}.csv"
    return write_request(folder, request=facts, source=source, budget=BUDGET)


@pytest.mark.parametrize("version", ["2026-11", "2026-11.2", "{period}"])
def test_period_is_over_after_its_last_day(tmp_path: Path, version: str) -> None:
    named = {"period": "2026-11"} if "{" in version else {}
    request = read_request(monthly(tmp_path, version, timezone="Asia/Tokyo", **named))
    # Midnight in Tokyo is at 15:00 in UTC.
    end = datetime.datetime(2026, 11, 30, 15, tzinfo=datetime.UTC)
    second = datetime.timedelta(seconds=1)
    before, after = (make_plan(Context.default(), request, at=end + k * second) for k in (-1, 0))
    notice = unfinished_period(before)
    assert notice.code == families.VERSION_NOT_FINAL.code
    assert notice.facts == {"period": "2026-11", "last_day": "2026-11-30"}
    assert unfinished_period(after) is None


def test_data_sets_without_periods_have_no_end(tmp_path: Path) -> None:
    request = read_request(write_request(tmp_path, request={"version": "2999-11"}))
    assert unfinished_period(make_plan(Context.default(), request)) is None


@pytest.mark.slow
def test_plan_and_release_warn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = monthly(tmp_path)
    for month in ("2999-11", "1999-11"):
        write_table(tmp_path / f"visits-{month}.csv")
    for period, warned in (("2999-11", True), ("1999-11", False)):
        for command in ("plan", "release"):
            # Without a terminal, `release` ends before the question whether to publish.
            _, out, _ = run_command(command, request, "--period", period, capsys=capsys)
            assert (families.VERSION_NOT_FINAL.code in out) is warned
        _, _, err = run_command("release", request, "--period", period, "--json", capsys=capsys)
        assert (families.VERSION_NOT_FINAL.code in err) is warned
        facts = run_json("plan", request, "--period", period, capsys=capsys)
        assert (facts["unfinished_period"] is not None) is warned
