"""Versions from the date, late runs, and the deployments of prefect.yaml."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.schedules import CronSchedule
from prefect.deployments.runner import RunnerDeployment
from ruamel.yaml import YAML

from gramercy.application.context import Context
from gramercy.application.planning import make_plan, refuse_late
from gramercy.application.request_model import Request
from gramercy.application.yaml_files import read_request
from gramercy.common.home import Home
from gramercy.flows.deployments import deployments, packaged, served_tag
from gramercy.schemas.errors import LateRun, RequestError
from gramercy.tasks.announce import HOME
from tests.support.factories import write_request

UTC = datetime.UTC
MONDAY = datetime.datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


def request(folder: Path, version: str, **changes: str) -> Request:
    return read_request(write_request(folder, request={"version": version, **changes}))


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
        assert request(tmp_path, pattern).on(MONDAY).version == label
    # In the zone of the schedule: two nights are two days, whatever UTC says.
    nights = [datetime.datetime(2027, 3, day, tzinfo=UTC) for day in (28, 29)]
    berlin = request(tmp_path, "%Y-%m-%d", timezone="Europe/Berlin")
    times = [nights[0].replace(minute=30), nights[1] - datetime.timedelta(minutes=30)]
    assert [berlin.on(each).version for each in times] == ["2027-03-28", "2027-03-29"]


def test_time_zone_does_not_change_the_request_key(tmp_path: Path) -> None:
    one = request(tmp_path, "v1")
    other = one.model_copy(update={"timezone": "Europe/Berlin"})
    assert make_plan(Context.default(), one).key == make_plan(Context.default(), other).key


def test_late_runs_are_refused(tmp_path: Path) -> None:
    context = Context.default()
    weekly = make_plan(context, request(tmp_path, "%G-W%V"), at=MONDAY)
    hours = datetime.timedelta(hours=1)
    for late in (0 * hours, 0.5 * hours, 5 * hours, 6 * 24 * hours):
        refuse_late(weekly, MONDAY + late)  # still the same week
    with pytest.raises(LateRun, match="planned for version '2026-W48', and it is '2026-W49'"):
        refuse_late(weekly, MONDAY + 7 * 24 * hours)
    night = MONDAY.replace(hour=23, minute=50)
    daily = make_plan(context, request(tmp_path, "%Y-%m-%d"), at=night)
    refuse_late(daily, night + 0.5 * hours)  # a run that waited for a worker
    with pytest.raises(LateRun, match="Nothing was charged"):
        refuse_late(daily, night + 2 * hours)


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server")
def test_late_run_charges_nothing(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gramercy.flows.release import release

    asked = request(tmp_path, "%G-W%V")
    monkeypatch.setattr("gramercy.flows.release.scheduled", lambda: MONDAY)
    monkeypatch.setattr("gramercy.flows.release.now", lambda: MONDAY + datetime.timedelta(days=9))
    with pytest.raises(LateRun):
        release(asked)
    assert not (home / "archive").exists()
    monkeypatch.setattr("gramercy.flows.release.now", lambda: MONDAY)
    assert release(asked) == "toy/2026-W48-r1"
    # What was published is found again, however late.
    monkeypatch.setattr("gramercy.flows.release.now", lambda: MONDAY + datetime.timedelta(days=9))
    assert release(asked) == "toy/2026-W48-r1"


def test_deployments_for_several_requests(tmp_path: Path) -> None:
    weekly, monthly = (request(tmp_path, each) for each in ("%G-W%V", "%Y-%m"))
    (tmp_path / "other").mkdir()
    other = read_request(write_request(tmp_path / "other", request={"version": "%Y"}, id="other"))
    context = Context.default()
    made = deployments(context, [weekly, monthly, other], "30 1 * * *", "Europe/Berlin")
    assert [each.full_name for each in made] == [
        *("release/toy", "release/toy.2", "release/other"),
        *("estimate/published", "report/published", "audit/weekly"),
    ]
    assert cron_of(made[0]) == ("30 1 * * *", "Europe/Berlin")
    assert made[0].parameters["request"]["timezone"] == "Europe/Berlin"
    assert made[0].concurrency_limit == 1
    assert made[0].concurrency_options is not None
    assert made[0].concurrency_options.collision_strategy == "CANCEL_NEW"
    own = request(tmp_path, "%Y-%m", timezone="Asia/Tokyo")
    (tokyo, *_) = deployments(context, [own], "30 1 * * *", None)
    assert cron_of(tokyo) == ("30 1 * * *", "Asia/Tokyo")
    assert "A toy" not in str(made)  # titles may hold what Prefect would fill in
    with pytest.raises(RequestError, match="would be published once"):
        deployments(context, [request(tmp_path, "v1")], "30 1 * * *", "UTC")


def test_deployments_in_a_pool_of_their_own(tmp_path: Path, home: Path) -> None:
    """In their own work pool, under their own names, triggered by their own home's releases."""
    context, asked = Context.default(), request(tmp_path, "%G-W%V")
    served = deployments(context, [asked], "30 1 * * *", "UTC", "cardiology")
    names = [each.name for each in served]
    assert names == ["toy@cardiology", *["published@cardiology"] * 2, "weekly@cardiology"]
    assert {each.work_pool_name for each in served} == {"cardiology"}
    assert {tuple(each.tags) for each in served} == {(served_tag(Home(home)),)}
    triggers: list[Any] = [each for one in served for each in one.triggers]
    assert [each.match.root for each in triggers] == [{HOME: Home(home).address}] * 2
    for pool in ("", "Prefect", "prefect-pool", "two words", "a/b"):
        with pytest.raises(RequestError, match="no name of a work pool"):
            deployments(context, [asked], "30 1 * * *", "UTC", pool)


def test_deployments_say_what_prefect_yaml_says() -> None:
    """Which is also what `prefect deploy` reads."""
    stated = YAML(typ="safe", pure=True).load(packaged().read_text())["deployments"][1:]
    made = deployments(Context.default(), [], "30 1 * * *", "UTC")
    for deployment, facts in zip(made, stated, strict=True):
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
