"""Versions from the date, late runs, and the deployments of prefect.yaml."""

from __future__ import annotations

import datetime
import zoneinfo
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.schedules import CronSchedule
from prefect.deployments.runner import RunnerDeployment
from prefect.flows import load_flow_from_entrypoint
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools import validate
from ruamel.yaml import YAML

from gramercy.common.home import Home
from gramercy.flows.deployments import deployments, prefect_yaml, served_tags
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import check_scheduled_version, make_plan
from gramercy.pipeline.plan.request_model import Request
from gramercy.schemas import families
from gramercy.tasks.history import HOME, dataset_tag
from tests.support.factories import read_registered, write_request
from tests.support.problems import raises

UTC = datetime.UTC
MONDAY = datetime.datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


def request(folder: Path, version: str, **changes: str) -> Request:
    return read_registered(write_request(folder, request={"version": version, **changes}))


def cron_of(deployment: RunnerDeployment) -> tuple[str, str | None]:
    """The one schedule of a deployment: when it runs, and the time zone."""
    (schedule,) = deployment.schedules or []
    assert isinstance(schedule.schedule, CronSchedule)
    return schedule.schedule.cron, schedule.schedule.timezone


def test_version_is_formatted_from_the_date(tmp_path: Path) -> None:
    for pattern, label in (
        ("%G-W%V", "2026-W48"),
        ("%Y-%m-%d", "2026-11-23"),
        ("day-%j", "day-327"),
        ("%H%M", "0600"),
        ("1995", "1995"),
    ):
        assert request(tmp_path, pattern).at(MONDAY).version == label
    # The date is that of the schedule's zone: these two nights are on one day in UTC.
    nights = [datetime.datetime(2027, 3, day, tzinfo=UTC) for day in (28, 29)]
    berlin = request(tmp_path, "%Y-%m-%d", timezone="Europe/Berlin")
    times = [nights[0].replace(minute=30), nights[1] - datetime.timedelta(minutes=30)]
    assert [berlin.at(each).version for each in times] == ["2027-03-28", "2027-03-29"]


def test_time_zone_does_not_change_the_request_key(tmp_path: Path) -> None:
    utc = request(tmp_path, "v1")
    berlin = utc.model_copy(update={"timezone": "Europe/Berlin"})
    assert make_plan(Context.default(), utc).key == make_plan(Context.default(), berlin).key


def test_late_runs_are_refused(tmp_path: Path) -> None:
    context = Context.default()
    weekly = make_plan(context, request(tmp_path, "%G-W%V"), at=MONDAY)
    hours = datetime.timedelta(hours=1)
    for late in (0 * hours, 0.5 * hours, 5 * hours, 6 * 24 * hours):
        check_scheduled_version(weekly, MONDAY + late)  # still the same week
    with raises(families.LATE_RUN, scheduled="2026-W48", current="2026-W49"):
        check_scheduled_version(weekly, MONDAY + 7 * 24 * hours)
    night = MONDAY.replace(hour=23, minute=50)
    daily = make_plan(context, request(tmp_path, "%Y-%m-%d"), at=night)
    check_scheduled_version(daily, night + 0.5 * hours)  # a run that waited for a worker
    with raises(families.LATE_RUN, scheduled="2026-11-23", current="2026-11-24"):
        check_scheduled_version(daily, night + 2 * hours)


MONTHLY = {
    "source": "visits-{year}-{month}.csv",
    "budget": {"epsilon": 3.0, "delta": 1e-5, "per": "month"},
}


def monthly(folder: Path, version: str = "{period}", **request: str) -> Request:
    facts = {"version": version, **request}
    return read_registered(write_request(folder, request=facts, **MONTHLY))


def test_schedule_publishes_the_period_that_has_just_ended(tmp_path: Path) -> None:
    context, first = Context.default(), datetime.datetime(2026, 12, 1, 6, 0, tzinfo=UTC)
    plan = make_plan(context, monthly(tmp_path), at=first)
    assert (plan.request.version, plan.request.period) == ("2026-11", "2026-11")
    assert plan.contract.source == str(tmp_path / "visits-2026-11.csv")
    # A worker that was off for a day, or until the next month, does not change it.
    for days in (0, 1, 40):
        check_scheduled_version(plan, first + datetime.timedelta(days))
    # The request of the run itself, which a retry reads, has the same key at any time.
    again = make_plan(context, plan.request, at=first + datetime.timedelta(40))
    assert (again.key, again.request) == (plan.key, plan.request)
    named = make_plan(context, monthly(tmp_path, period="2026-11"), at=first)
    assert named.key == plan.key
    assert make_plan(context, monthly(tmp_path, "2026-11"), at=first).key == plan.key
    assert make_plan(context, monthly(tmp_path, period="2026-10"), at=first).key != plan.key


def test_a_second_version_of_a_period_can_be_late(tmp_path: Path) -> None:
    day = datetime.datetime(2026, 12, 1, 6, 0, tzinfo=UTC)
    plan = make_plan(Context.default(), monthly(tmp_path, "{period}.%d"), at=day)
    assert plan.request.version == "2026-11.01"
    with raises(families.LATE_RUN, scheduled="2026-11.01", current="2026-11.02"):
        check_scheduled_version(plan, day + datetime.timedelta(1))


def test_period_is_complete_in_the_time_zone_of_the_schedule(tmp_path: Path) -> None:
    midnight = datetime.datetime(2026, 12, 1, 0, 30, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo"))
    tokyo = monthly(tmp_path, timezone="Asia/Tokyo")
    context = Context.default()
    assert make_plan(context, tokyo, at=midnight).request.version == "2026-11"
    assert make_plan(context, monthly(tmp_path), at=midnight).request.version == "2026-10"
    # Days of a date column begin in its own time zone, not in that of the schedule.
    dates = MONTHLY | {"source": "table.csv", "neighbours": "add-remove"}
    facts = {"version": "{period}", "timezone": "Asia/Tokyo"}
    column = write_request(tmp_path, request=facts, period={"column": "visited"}, **dates)
    assert make_plan(context, read_registered(column), at=midnight).request.version == "2026-10"


def test_period_of_a_request_must_be_one_of_its_data_set(tmp_path: Path) -> None:
    context = Context.default()
    with raises(families.PERIOD, version="2026-10", window="2026-10"):
        make_plan(context, monthly(tmp_path, "2026-10", period="2026-11"))
    with raises(families.PERIOD, period="2026-W47", per="month"):
        make_plan(context, monthly(tmp_path, period="2026-W47"))
    with raises(families.PERIOD, dataset="toy"):
        make_plan(context, request(tmp_path, "{period}"))


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server")
def test_late_run_charges_nothing(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gramercy.flows.release import release

    weekly = request(tmp_path, "%G-W%V")
    monkeypatch.setattr("gramercy.flows.release.scheduled_time", lambda: MONDAY)
    monkeypatch.setattr(
        "gramercy.flows.release.utc_now", lambda: MONDAY + datetime.timedelta(days=9)
    )
    with raises(families.LATE_RUN):
        release(weekly)
    assert not (home / "archive").exists()
    monkeypatch.setattr("gramercy.flows.release.utc_now", lambda: MONDAY)
    assert release(weekly) == ["toy/2026-W48-r1"]
    # A published release is replayed, however late the run is.
    monkeypatch.setattr(
        "gramercy.flows.release.utc_now", lambda: MONDAY + datetime.timedelta(days=9)
    )
    assert release(weekly) == ["toy/2026-W48-r1"]


def test_deployments_for_several_requests(tmp_path: Path) -> None:
    weekly, monthly = (request(tmp_path, each) for each in ("%G-W%V", "%Y-%m"))
    (tmp_path / "other").mkdir()
    other = write_request(tmp_path / "other", request={"version": "%Y"}, id="other")
    yearly = read_registered(other)
    context = Context.default()
    created = deployments(context, [weekly, monthly, yearly], "30 1 * * *", "Europe/Berlin")
    assert [each.full_name for each in created] == [
        *("release/toy", "release/toy.2", "release/other"),
        *("estimate/published", "report/published", "audit/weekly", "status/daily"),
    ]
    assert cron_of(created[0]) == ("30 1 * * *", "Europe/Berlin")
    assert created[0].parameters["request"]["timezone"] == "Europe/Berlin"
    assert created[0].concurrency_limit == 1
    assert created[0].concurrency_options is not None
    assert created[0].concurrency_options.collision_strategy == "CANCEL_NEW"
    in_tokyo = request(tmp_path, "%Y-%m", timezone="Asia/Tokyo")
    (tokyo, *_) = deployments(context, [in_tokyo], "30 1 * * *", None)
    assert cron_of(tokyo) == ("30 1 * * *", "Asia/Tokyo")
    assert "A toy" not in str(created)  # titles may contain braces, which Prefect would replace
    with raises(families.PERIOD, version="v1"):
        deployments(context, [request(tmp_path, "v1")], "30 1 * * *", "UTC")


def test_deployment_publishes_the_last_period_of_each_run(tmp_path: Path) -> None:
    context, each_month = Context.default(), monthly(tmp_path)
    (deployment, *_) = deployments(context, [each_month], "0 6 2 * *", "UTC")
    assert deployment.parameters["request"]["version"] == "{period}"
    # Two months that are due at once are both published.
    assert deployment.concurrency_options is not None
    assert deployment.concurrency_options.collision_strategy == "ENQUEUE"
    with raises(families.PERIOD, version="{period}"):
        deployments(context, [monthly(tmp_path, period="2026-11")], "0 6 2 * *", "UTC")


def test_run_that_was_approved_waits_for_others(tmp_path: Path) -> None:
    path = write_request(tmp_path, request={"version": "%G-W%V"}, approval="required")
    (deployment, *_) = deployments(Context.default(), [read_registered(path)], "0 6 2 * *", "UTC")
    assert deployment.concurrency_options is not None
    assert deployment.concurrency_options.collision_strategy == "ENQUEUE"


def test_deployment_publishes_the_steps_of_a_series(tmp_path: Path) -> None:
    facts = {"version": "{period}", "cumulative": {"every": "week", "lag": 7}}
    dates: dict[str, Any] = {"neighbours": "add-remove", "period": {"column": "visited"}}
    dates["budget"] = {"epsilon": 3.0, "delta": 1e-5, "per": "year"}
    (tmp_path / "table.csv").write_text("c0,c1,c2,visited\n1,2,3,2026-01-05\n")
    series = read_registered(write_request(tmp_path, request=facts, **dates))
    (deployment, *_) = deployments(Context.default(), [series], "0 6 * * 1", "Europe/Berlin")
    request = Request.model_validate(deployment.parameters["request"])
    assert (request.version, request.cumulative) == ("{period}", series.cumulative)
    # A run that is due while another one publishes waits for it.
    assert deployment.concurrency_options is not None
    assert deployment.concurrency_options.collision_strategy == "ENQUEUE"


def test_deployments_in_a_pool_of_their_own(tmp_path: Path, home: Path) -> None:
    """They have names of their own, and are triggered by releases of their own home only."""
    context, weekly = Context.default(), request(tmp_path, "%G-W%V")
    served = deployments(context, [weekly], "30 1 * * *", "UTC", "cardiology")
    names = [each.name for each in served]
    others = ["weekly@cardiology", "daily@cardiology"]
    assert names == ["toy@cardiology", *["published@cardiology"] * 2, *others]
    assert {each.work_pool_name for each in served} == {"cardiology"}
    assert all({*served_tags(Home(home))} <= {*each.tags} for each in served)
    assert ["dataset:toy" in each.tags for each in served] == [True, False, False, False, False]
    triggers: list[Any] = [trigger for each in served for trigger in each.triggers]
    assert [each.match.root for each in triggers] == [{HOME: Home(home).address}] * 2
    for pool in ("", "Prefect", "prefect-pool", "two words", "a/b"):
        with raises(families.USAGE):
            deployments(context, [weekly], "30 1 * * *", "UTC", pool)


def test_deployments_are_those_of_prefect_yaml() -> None:
    """`prefect deploy` reads the same file."""
    stated = YAML(typ="safe", pure=True).load(prefect_yaml().read_text())["deployments"]
    released = [each for each in stated if each["entrypoint"] == "gramercy.flows.release.release"]
    assert [each["name"] for each in released] == ["weekly", "monthly", "series"]
    schema = parameter_schema(load_flow_from_entrypoint(released[0]["entrypoint"])).model_dump()
    for each in released:
        stated_request = Request.model_validate(each["parameters"]["request"])
        assert each["tags"] == [dataset_tag(stated_request.dataset)]
        assert stated_request.scaling.kind in {"private", "release"}
        validate(each["parameters"], schema, raise_on_error=True)  # as a server does
    stated = stated[len(released) :]
    created = deployments(Context.default(), [], "30 1 * * *", "UTC")
    for deployment, facts in zip(created, stated, strict=True):
        schedules = [(each["cron"], each["timezone"]) for each in facts.get("schedules", [])]
        assert deployment.name == facts["name"]
        assert deployment.entrypoint == facts["entrypoint"]
        assert deployment.description == facts["description"]
        assert ([cron_of(deployment)] if deployment.schedules else []) == schedules
        triggers: list[Any] = deployment.triggers
        for trigger, each in zip(triggers, facts.get("triggers", []), strict=True):
            assert trigger.expect == set(each["expect"])
            assert trigger.parameters == each["parameters"]
            assert trigger.enabled
