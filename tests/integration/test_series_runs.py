"""Runs of a cumulative series: what is due, late and missed runs, and retries."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gramercy.flows.deployments import deployments
from gramercy.ledger import Ledger
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.due_steps import unfinished_window, waits_until
from gramercy.pipeline.plan.planning import Plan, check_scheduled_version, make_plan
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.plan.step_charges import missing_steps
from gramercy.pipeline.publish import charging
from gramercy.schemas import families
from gramercy.schemas.ledger_history import ChargeState
from gramercy.tasks import steps
from tests.support.factories import bundle_bytes, read_registered, run_command, write_request
from tests.support.problems import raises
from tests.unit.pipeline.test_cumulative import CLIP, catch_up, visits, written

UTC = datetime.UTC
REQUEST: dict[str, Any] = {"version": "{period}", "cumulative": {"every": "month", "lag": 3}}
CONTRACT: dict[str, Any] = {
    "neighbours": "add-remove",
    "period": {"column": "visited"},
    "budget": {"epsilon": 3.0, "delta": 1e-5, "per": "quarter"},
}


def at(*moment: int) -> datetime.datetime:
    return datetime.datetime(*moment, tzinfo=UTC)  # type: ignore[misc, arg-type]


@pytest.fixture
def series(tmp_path: Path) -> Request:
    """A request for a step of each month, of visits from October 2026 to May 2027."""
    days = pd.date_range("2026-10-01", "2027-05-31", periods=240).date
    columns = {f"c{k}": [(7 * i + k) % 5 - 2.0 for i in range(240)] for k in range(3)}
    pd.DataFrame(columns | {"visited": days}).to_csv(tmp_path / "table.csv", index=False)
    return read_registered(write_request(tmp_path, request=REQUEST, **CONTRACT))


def due(request: Request, moment: datetime.datetime) -> list[str]:
    """The versions that a run publishes that is scheduled for a moment."""
    context = Context.default()
    plan = make_plan(context, request, at=moment)
    before = unfinished_window(context, plan)
    lasts = [plan] if before is None else [before, plan]
    plans = [each for last in lasts for each in (*missing_steps(context, last), last)]
    return [each.request.version for each in plans]


Runs = Callable[[datetime.datetime], list[str]]


@pytest.fixture
def run(series: Request, monkeypatch: pytest.MonkeyPatch, prefect_server: object) -> Runs:
    """The flow of a deployment, scheduled for a moment."""
    from gramercy.flows.release import release

    def run(moment: datetime.datetime) -> list[str]:
        for clock in ("scheduled_time", "utc_now"):
            monkeypatch.setattr(f"gramercy.flows.release.{clock}", lambda: moment)
        return release(series)

    return run


def test_run_is_for_all_steps_that_are_complete(series: Request) -> None:
    assert due(series, at(2027, 2, 4)) == ["2027-Q1-01"]
    assert due(series, at(2027, 3, 3)) == ["2027-Q1-01"]  # February is over, and not its lag
    assert due(series, at(2027, 3, 4)) == ["2027-Q1-01", "2027-Q1-02"]
    assert due(series, at(2027, 4, 4)) == ["2027-Q1-01", "2027-Q1-02", "2027-Q1-03"]
    # A series that was not begun is not begun when its window is over.
    assert due(series, at(2027, 5, 4)) == ["2027-Q2-04"]


def test_early_run_has_nothing_to_publish(series: Request) -> None:
    context = Context.default()
    assert waits_until(context, series, at(2027, 2, 3)) == datetime.date(2027, 2, 4)
    assert waits_until(context, series, at(2027, 2, 4)) is None
    named = series.model_copy(update={"period": "2026-Q4-12"})
    assert waits_until(context, named, at(2027, 2, 3)) is None


def test_early_run_of_a_lifetime_series_has_nothing_to_publish(tmp_path: Path) -> None:
    files = {"source": "visits-{year}-{month}.csv", "budget": {"epsilon": 3.0, "delta": 1e-5}}
    steps = {"every": "month", "from": "2026-10-01", "steps": 6, "lag": 3}
    request = write_request(tmp_path, request=REQUEST | {"cumulative": steps}, **files)
    context, registered = Context.default(), read_registered(request)
    assert waits_until(context, registered, at(2026, 11, 3)) == datetime.date(2026, 11, 4)
    assert waits_until(context, registered, at(2026, 11, 4)) is None


def test_schedule_can_start_before_the_first_step(tmp_path: Path) -> None:
    first = datetime.date.today() + datetime.timedelta(30)
    steps = {"every": "week", "from": first.isoformat(), "steps": 6}
    facts = CONTRACT | {"budget": {"epsilon": 3.0, "delta": 1e-5}}
    (tmp_path / "table.csv").write_text("c0,c1,c2,visited\n1,2,3,2026-01-05\n")
    request = write_request(tmp_path, request=REQUEST | {"cumulative": steps}, **facts)
    context = Context.default()
    (release, *_) = deployments(context, [read_registered(request)], "0 6 * * 1", "Pacific/Apia")
    assert release.parameters["request"]["cumulative"]["start"] == first.isoformat()


def test_late_run_is_for_the_steps_of_its_time(series: Request) -> None:
    plan = make_plan(Context.default(), series, at=at(2027, 2, 5))
    for days in (0, 1, 40, 400):
        check_scheduled_version(plan, at(2027, 2, 5) + datetime.timedelta(days))


@pytest.mark.slow
def test_runs_of_a_series(run: Runs, home: Path) -> None:
    """An early one, one on time, a retried one, one after a missed one, and the next window."""
    assert run(at(2026, 11, 2)) == []
    assert not (home / "archive").exists()
    (first,) = run(at(2026, 11, 5))
    assert first == "toy/2026-Q4-10-r1"
    sealed = bundle_bytes(home / "archive" / first / "release")
    assert run(at(2026, 11, 5)) == [first]
    assert bundle_bytes(home / "archive" / first / "release") == sealed
    # The run of December was missed, and that of January is the last of the window.
    names = run(at(2027, 2, 5))
    assert names == ["toy/2026-Q4-11-r1", "toy/2026-Q4-12-r1", "toy/2027-Q1-01-r1"]
    assert run(at(2027, 2, 5)) == names[-1:]
    ledger = Ledger(home / "ledger.sqlite")
    assert {each.window for each in ledger.charges("toy")} == {"2026-Q4", "2027-Q1"}
    charged = {each.window: each.total.mu for each in ledger.statements("toy")}
    assert charged["2026-Q4"] == pytest.approx(charged["2027-Q1"])


@pytest.mark.slow
def test_pages_of_all_steps_are_written_once(
    run: Runs, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, catalogue = list[str](), steps.catalogue

    def counted(context: Context, dataset: str, release: str) -> None:
        written.append(release)
        catalogue(context, dataset, release)

    monkeypatch.setattr(steps, "catalogue", counted)
    names = run(at(2026, 12, 5))
    assert len(names) == 2
    assert written == ["2026-Q4-11-r1"]
    assert all((home / "archive" / name / "index.html").is_file() for name in names)


@pytest.mark.slow
def test_steps_before_a_failure_have_their_pages(
    run: Runs, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = charging.draw_into

    def fails_for_november(place: Path, plan: Plan, *more: Any) -> Any:
        if plan.request.version == "2026-Q4-11":
            raise RuntimeError
        return drawn(place, plan, *more)

    monkeypatch.setattr(charging, "draw_into", fails_for_november)
    with raises(families.STEP_FAILED):
        run(at(2026, 12, 5))
    assert (home / "archive/toy/2026-Q4-10-r1/index.html").is_file()


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server")
def test_next_command_reports_on_steps_of_a_run_that_was_interrupted(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys: dict[str, Any] = {"normalisation": CLIP, "estimates": [{"name": "ridge"}]}
    catch_up(written(tmp_path, "2026-Q1-02", visits(3000), **keys))  # without reports and pages
    last = written(tmp_path, "2026-Q1-03", visits(3000), **keys)
    code, out, err = run_command("release", last, "--yes", "--json", capsys=capsys)
    done = json.loads(out)
    assert (code, done["problems"], done["earlier_steps"]) == (0, [], [])
    assert len(re.findall("✓.* estimate", err)) == 3  # once for every step
    archive = Context.default().archive
    for name in ("2026-Q1-01-r1", "2026-Q1-02-r1", "2026-Q1-03-r1"):
        assert len(archive.estimates("toy", name)) == 1
        (report,) = archive.reports("toy", name)
        assert report in (home / "archive/toy" / name / "index.html").read_text()


@pytest.mark.slow
def test_spent_step_blocks_later_ones_of_its_window(
    run: Runs, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(at(2026, 11, 5))

    def die(*_: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr("gramercy.pipeline.publish.charging.draw_into", die)
        with raises(families.STEP_FAILED):
            run(at(2026, 12, 5))
    for moment in (at(2026, 12, 5), at(2027, 1, 5)):
        with raises(families.SPENT):
            run(moment)
    assert run(at(2027, 2, 5)) == ["toy/2027-Q1-01-r1"]  # of the next window
    states = [each.state for each in Ledger(home / "ledger.sqlite").charges("toy")]
    assert states == [ChargeState.PUBLISHED, ChargeState.SPENT, ChargeState.PUBLISHED]
