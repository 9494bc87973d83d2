"""Versions from the date, late runs, and the deployments of prefect.yaml."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from gramercy.application.planning import refuse_late
from gramercy.application.request_model import Request, read_request
from gramercy.common.home import Home
from gramercy.flows.deployments import deployments
from gramercy.schemas.errors import LateRun, RequestError
from gramercy.tasks.announce import HOME
from tests.support.factories import scene

UTC = datetime.UTC
MONDAY = datetime.datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


def request(folder: Path, version: str, **changes: str) -> Request:
    return read_request(scene(folder, request={"version": version, **changes}))


def test_a_version_comes_from_the_day(tmp_path: Path) -> None:
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


def test_the_time_zone_is_no_part_of_what_was_asked(tmp_path: Path) -> None:
    one = request(tmp_path, "v1")
    from gramercy.application.planning import make_plan

    other = one.model_copy(update={"timezone": "Europe/Berlin"})
    assert make_plan(one).key == make_plan(other).key


def test_late_runs_are_refused(tmp_path: Path) -> None:
    weekly = request(tmp_path, "%G-W%V")
    hours = datetime.timedelta(hours=1)
    for late in (0 * hours, 0.5 * hours, 5 * hours, 6 * 24 * hours):
        refuse_late(weekly, MONDAY, MONDAY + late)  # still the same week
    with pytest.raises(LateRun, match="planned for version '2026-W48', and it is '2026-W49'"):
        refuse_late(weekly, MONDAY, MONDAY + 7 * 24 * hours)
    night = MONDAY.replace(hour=23, minute=50)
    daily = request(tmp_path, "%Y-%m-%d")
    refuse_late(daily, night, night + 0.5 * hours)  # a run that waited for a worker
    with pytest.raises(LateRun, match="Nothing was charged"):
        refuse_late(daily, night, night + 2 * hours)


@pytest.mark.usefixtures("prefect_server")
def test_a_late_run_charges_nothing(
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
    other = read_request(scene(tmp_path / "other", request={"version": "%Y"}, id="other"))
    facts = deployments([weekly, monthly, other], "30 1 * * *", "Europe/Berlin")
    names = [each["name"] for each in facts["deployments"]]
    assert names == ["toy", "toy.2", "other", "published", "published", "weekly"]
    first = facts["deployments"][0]
    assert first["schedules"] == [
        {"slug": "schedule", "cron": "30 1 * * *", "timezone": "Europe/Berlin"}
    ]
    assert first["parameters"]["request"]["timezone"] == "Europe/Berlin"
    assert first["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}
    own = request(tmp_path, "%Y-%m", timezone="Asia/Tokyo")
    (tokyo, *_) = deployments([own], "30 1 * * *", None)["deployments"]
    assert tokyo["schedules"][0]["timezone"] == "Asia/Tokyo"
    assert "A toy" not in str(facts)  # titles may hold what Prefect would fill in
    with pytest.raises(RequestError, match="would be published once"):
        deployments([request(tmp_path, "v1")], "30 1 * * *", "UTC")


def test_deployments_of_one_of_many_stewards(tmp_path: Path, home: Path) -> None:
    """Run by a pool of its own, under names of its own, after releases of its own home."""
    asked = request(tmp_path, "%G-W%V")
    served = deployments([asked], "30 1 * * *", "UTC", "cardiology")["deployments"]
    names = [each["name"] for each in served]
    assert names == ["toy@cardiology", *["published@cardiology"] * 2, "weekly@cardiology"]
    assert {each["work_pool"]["name"] for each in served} == {"cardiology"}
    triggers = [each for one in served for each in one.get("triggers", [])]
    assert [each["match"] for each in triggers] == [{HOME: Home(home).address}] * 2
    for pool in ("", "Prefect", "prefect-pool", "two words", "a/b"):
        with pytest.raises(RequestError, match="no name of a work pool"):
            deployments([asked], "30 1 * * *", "UTC", pool)
