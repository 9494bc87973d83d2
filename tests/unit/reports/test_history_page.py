"""``gramercy history``: spending over time on a terminal, as JSON and as a page."""

from __future__ import annotations

import datetime
import errno
import itertools
import json
import math
import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gramercy.cli.history import chart
from gramercy.common.home import Home
from gramercy.ledger import Ledger, Statement
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import withdraw
from gramercy.reports.history_page import history_page, spending
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.ledger_history import ChargeState, Event, Timeline
from tests.support.factories import run_command, run_json, run_release, write_request
from tests.support.ledgers import charge, contract
from tests.support.pages import check_ids
from tests.unit.reports.test_report import Page

THIRD = Guarantee(gdp_mu(3.0, 1e-5) / 3)


def write_history(folder: Path, home: Home) -> Ledger:
    """A release, one that was withdrawn, a failure, and a budget that was raised and lowered."""
    for version in ("v1", "v2"):
        run_release(write_request(folder, request={"version": version}))
    withdraw(Context.default(), "toy", "v2-r1", "a column was shifted")
    ledger = Ledger.of(home)
    failed = ledger.charge(contract(), "v3", "request", THIRD, "of the files")
    ledger.mark("toy", failed.release, ChargeState.SPENT, reason="the disk was full")
    ledger.change_budget("toy", Budget(epsilon=5.0, delta=1e-5), "one year more")
    ledger.change_budget("toy", Budget(epsilon=1.0, delta=1e-6), "the table grew", lower=True)
    return ledger


@pytest.mark.slow
def test_history_lists_charges_and_budget_changes_in_order(
    tmp_path: Path, any_home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = write_history(tmp_path, any_home)
    (timeline,) = run_json("history", "toy", capsys=capsys)
    assert (timeline["dataset"], timeline["period"]) == ("toy", None)
    events = timeline["events"]
    whats = ["registered", "charged", "charged", "charged", "raised", "lowered"]
    assert [each["what"] for each in events] == whats
    charged = events[1:4]
    assert [e["release"] for e in charged] == ["v1-r1", "v2-r1", "v3-r1"]
    assert [e["state"] for e in charged] == ["published", "withdrawn", "spent"]
    assert [e["reason"] for e in charged] == [None, "a column was shifted", "the disk was full"]
    assert [e["mechanism"] for e in charged] == ["gaussian", "gaussian", None]
    assert [e["budget_epsilon"] for e in events] == [3, 3, 3, 3, 5, 1]
    assert [e["reason"] for e in events[4:]] == ["one year more", "the table grew"]
    # At every event, the spent epsilon is the ledger's, at the delta of that time.
    spent = [e["spent_epsilon"] for e in events]
    before, after = ledger.statements_around("toy", "v3-r1")
    at_registration = Budget(epsilon=3.0, delta=1e-5)
    expected = [Statement(at_registration, each.charged).spent for each in (before, after)]
    assert spent[2:4] == pytest.approx(expected, rel=1e-7)
    assert spent[4] == spent[3]
    assert ledger.statement("toy").spent == after.spent
    assert spent[5] == pytest.approx(after.spent, rel=1e-7)
    assert spent[5] > spent[4]
    assert spent[0] == 0
    assert charged[0]["epsilon"] == pytest.approx(charged[1]["epsilon"])
    # They differ a little, because a tenth of delta is set aside for failures.
    assert spent[1] == pytest.approx(charged[0]["epsilon"], rel=0.02)
    assert spent[2] - spent[1] < charged[1]["epsilon"]  # squares of mu add up, not epsilons

    code, out, _ = run_command("history", capsys=capsys)
    assert code == 0
    for text in (
        "█",
        "─",
        "v3-r1",
        "withdrawn",
        "the disk was full",
        "budget lowered",
        "3 charges",
    ):
        assert text in out
    assert "of the files" not in out
    assert "of the files" not in str(timeline)


@pytest.mark.slow
def test_history_page_contents(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_history(tmp_path, Home.default())
    page = tmp_path / "spent.html"
    assert "Page: " in run_command("history", "toy", "--page", page, capsys=capsys)[1].replace(
        "\n", ""
    )
    text = page.read_text(encoding="utf-8")
    check_ids(text)
    parsed = Page(text)
    assert all(resource.startswith(("data:", "#")) for resource in parsed.resources)
    assert "script" not in parsed.tags
    assert text.count("<svg") == 1
    for words in ("one year more", "the disk was full", "v2-r1", "withdrawn", "gaussian"):
        assert words in text
    assert "of the files" not in text
    damaged = home / "archive/toy/v1-r1/release/datapackage.json"
    damaged.chmod(0o644)
    damaged.write_bytes(b"")
    (timeline,) = run_json("history", capsys=capsys)  # a damaged release does not hide the spending
    assert [e["mechanism"] for e in timeline["events"][1:3]] == [None, "gaussian"]
    for path in (tmp_path / "no/spent.html", tmp_path, page / "spent.html"):
        code, out, err = run_command("history", "--page", path, "--json", capsys=capsys)
        assert code == 2
        assert families.OUTPUT.code in err
        error = json.loads(out)  # a single document
        assert error["code"] == families.OUTPUT.code
        assert error["facts"] == {"option": "--page", "path": str(path)}


def test_failed_write_keeps_the_existing_page(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "spent.html"
    page.write_text("older")

    def fill_disk(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", fill_disk)
        code, out, _ = run_command("history", "--page", page, "--json", capsys=capsys)
    assert code == 2
    error = json.loads(out)
    assert error["code"] == families.OUTPUT.code
    reason = "No space left on device"
    assert error["facts"] == {"option": "--page", "path": str(page), "reason": reason}
    assert [(path.name, path.read_text()) for path in tmp_path.glob("*.html")] == [
        ("spent.html", "older")
    ]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def event(day: int, budget: float, spent: float, delta: float = 1e-6) -> Event:
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(days=day)
    return Event(at.isoformat(), "raised", budget, delta, spent, "why")


def steps(svg: str, colour: str, width: str) -> list[tuple[float, float]]:
    """Corners of a line in the chart: x, and y from the bottom up."""
    for path in ElementTree.fromstring(svg).iter():
        style = path.get("style", "")
        if f"stroke: var(--{colour})" in style and f"stroke-width: {width}" in style:
            corners = re.findall(r"[ML] (\S+) (\S+)", path.get("d", ""))
            return [(float(x), -float(y)) for x, y in corners]
    raise AssertionError("no such line")


def test_spending_chart_is_to_scale() -> None:
    events = [event(0, 2, 0), event(10, 2, 1), event(30, 4, 1), event(20, 4, 3), event(40, 1, 3.5)]
    svg = spending(events)
    spent, budget = steps(svg, "accent", "1.8"), steps(svg, "ink", "1.4")
    floor = spent[0][1]
    unit = next(y for _, y in spent if y > floor) - floor
    assert sorted({round((y - floor) / unit, 2) for _, y in spent}) == [0, 1, 3, 3.5]
    assert [round((y - floor) / unit, 2) for _, y in budget[:1] + budget[-1:]] == [2, 1]
    for line in (spent, budget):
        across = [x for x, _ in line]
        assert across == sorted(across)  # even after the clock was set back, to day 20
        turns = itertools.pairwise(line)
        assert all(a[0] == b[0] or a[1] == b[1] for a, b in turns)  # horizontal or vertical
    assert svg == spending(events)
    assert spending([]) == ""


@pytest.mark.parametrize("days", [False, True])
def test_chart_ends_with_the_last_event(days: bool) -> None:
    events = [event(day, 2, 1 + day / 100) for day in (0, 10, 40)]
    first, second, last = sorted(
        {x for x, _ in steps(spending(events, days=days), "accent", "1.8")}
    )
    assert last - first == pytest.approx(4 * (second - first), rel=1e-3)


def event_at(moment: str, spent: float) -> Event:
    return Event(f"2026-{moment}+00:00", "raised", 3.0, 1e-6, spent, "why")


@pytest.mark.slow
def test_public_chart_shows_days_and_no_times() -> None:
    one_day = ("11-22T10:00:01", "11-22T10:04:00", "11-22T23:59:59")
    for moments, same_days in (
        (one_day, ("11-22T00:00:00", "11-22T02:00:00", "11-22T02:00:01")),
        (
            (*one_day, "11-23T08:00:00", "12-24T09:00:00", "12-24T09:30:00"),
            ("11-22T00:10:00", *one_day[1:], "11-23T01:00:00", "12-24T01:00:00", "12-24T02:00:00"),
        ),
    ):
        events = [event_at(moment, place / 4) for place, moment in enumerate(moments)]
        svg = spending(events, days=True)
        assert svg == spending(
            [event_at(m, place / 4) for place, m in enumerate(same_days)], days=True
        )
        assert svg != spending(events)
        assert ":" not in "".join(re.findall(r">([^<>]*)</text>", svg))  # the axis shows no times
        corners = sorted({x for x, _ in steps(svg, "accent", "1.8")})
        assert len(corners) == len(moments)  # one corner for each event: nothing after the last
        assert min(b - a for a, b in itertools.pairwise(corners)) > 2


@pytest.mark.slow
@pytest.mark.parametrize("spent", [0.0, 1.0, 3.0, 1e-9, math.inf])
def test_charts_of_a_single_moment(spent: float) -> None:
    for events in ([event(0, 2, 0)], [event(0, 2, 0), event(0, 2, spent)]):
        svg = spending(events)
        ElementTree.fromstring(svg)
        assert "nan" not in svg
        assert ("∞" in svg) == math.isinf(events[-1].spent)
        lines = [line.plain for line in chart(events)]
        assert len({len(line) for line in lines[:10]}) == 1
        assert all("─" in lines[row] for row in (0, 9)) or spent == 3.0


@pytest.mark.slow
def test_infinite_epsilon_is_shown_as_infinity(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = Ledger.of(Home.default())
    charge(ledger, "v1", Guarantee(0.2, 2e-7))
    ledger.change_budget("toy", Budget(epsilon=3.0, delta=1e-7), "fewer failures", lower=True)
    (timeline,) = run_json("history", capsys=capsys)
    assert [each["spent_epsilon"] is None for each in timeline["events"]] == [False, False, True]
    assert "∞" in run_command("history", capsys=capsys)[1]
    assert "∞" in history_page(ledger.timelines("toy"))


@pytest.mark.slow
def test_history_says_who_charged_and_the_public_export_does_not(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path)
    monkeypatch.setattr("gramercy.ledger.budget_ledger.account", lambda: "anna as gramercy")
    run_release(request)
    (timeline,) = run_json("history", capsys=capsys)
    assert [each["by"] for each in timeline["events"]] == [None, "anna as gramercy"]
    assert "anna as gramercy" in run_command("history", capsys=capsys)[1]
    ledger = Ledger.of(Home.default())
    assert "anna as gramercy" in history_page(ledger.timelines("toy"))
    run_json("export", "--package", tmp_path / "export", capsys=capsys)
    public = [*(tmp_path / "export").rglob("*"), *(home / "archive").rglob("*")]
    assert len(public) > 10
    assert not any(b"anna" in each.read_bytes() for each in public if each.is_file())


@pytest.mark.slow
def test_history_has_one_timeline_per_year_of_data(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    yearly: dict[str, Any] = {"epsilon": 1.2, "delta": 1e-6, "per": "year"}
    ledger = Ledger.of(Home.default())
    for version in ("2025", "2026-W01", "2025-late"):
        charge(ledger, version, Guarantee(0.1), contract(source="{year}.csv", budget=yearly))
    ledger.change_budget("toy", Budget(epsilon=2.0, delta=1e-6), "more")
    first, second = run_json("history", capsys=capsys)
    assert [e["version"] for e in first["events"]] == [None, "2025", "2025-late", None]
    assert [e["version"] for e in second["events"]] == [None, "2026-W01", None]
    assert second["events"][-1]["spent_epsilon"] == first["events"][1]["spent_epsilon"]
    page = history_page(ledger.timelines("toy"))
    assert page.count("<svg") == 2
    assert "data of 2025" in page
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', page))
    assert used
    assert all(page.count(f'id="{name}"') == 1 for name in used)


def test_history_of_an_empty_ledger(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_json("history", capsys=capsys) == []
    page = tmp_path / "spent.html"
    assert (
        "No data set is registered yet" in run_command("history", "--page", page, capsys=capsys)[1]
    )
    assert "No data set is registered yet" in page.read_text()
    code, _, err = run_command("history", "toy", capsys=capsys)
    assert code == 2
    assert families.NO_LEDGER.code in err
    assert not home.exists()  # nothing was created
    charge(Ledger.of(Home.default()), "v1")
    code, _, err = run_command("history", "other", capsys=capsys)
    assert code == 2
    assert "'other'" in err


def test_user_text_is_escaped_on_the_history_page() -> None:
    text = "<img src=x> [red]{{ 7 * 7 }}"
    page = history_page([Timeline("toy", "", (Event("2026-01-01", "raised", 1, 1e-6, 0, text),))])
    assert "img" not in Page(page).tags
    assert "{{ 7 * 7 }}" in page
