"""Months of a table in PostgreSQL, by region, published by Prefect's scheduler and worker.

The server, the worker and its runs are processes with one clock, which the tests move.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from prefect.settings import PREFECT_API_URL, temporary_settings

import gramercy
from gramercy.archive.store.layout import INDEX
from gramercy.common.home import Home
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.publish.charging import replay
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.tasks.history import read_history
from tests.support.clocks import can_move_clocks
from tests.support.factories import FULL, MECHANISM, write_request
from tests.support.schedules import Schedule
from tests.support.servers import flow_runs, post
from tests.support.source_tables import engine_of, execute, new_url

UTC = datetime.UTC

CONTRACT: dict[str, Any] = {
    "columns": {
        "glucose": {"lower": -6.0, "upper": 6.0},
        "sodium": {"lower": -6.0, "upper": 6.0},
        "region": {"levels": ["north", "south"]},
    },
    "rows": 900,
    "intercept": True,
    "neighbours": "add-remove",
    "budget": {"epsilon": 20.0, "delta": 1e-5, "per": "month"},
    "source": {"url": "env:CLINIC_DB", "table": "visits"},
    "period": {"column": "visited", "timezone": "Europe/Berlin"},
}
REQUEST = {
    "version": "{period}",
    "mechanism": MECHANISM | {"epsilon": 15.0},
    "normalisation": {"kind": "clip", "radius": 3.0},
    "by": "region",
    "estimates": [],
}
CREATE = (
    "CREATE TABLE visits (glucose DOUBLE PRECISION, sodium DOUBLE PRECISION, region TEXT, "
    "visited TIMESTAMPTZ)"
)
CRON, TIMEZONE = "0 6 2 * *", "Europe/Berlin"  # in the morning of the second of every month
needs_clock = pytest.mark.skipif(not can_move_clocks(), reason="needs libfaketime on Linux")
in_acceptance = pytest.mark.skipif(not FULL, reason="a minute of work: in `make acceptance`")
INSERT = "INSERT INTO visits VALUES (:glucose, :sodium, :region, :visited)"


def visits(month: int, rows: int = 900) -> list[dict[str, Any]]:
    """Visits of one month of 2026 in Berlin; glucose is higher in the south, and in December."""
    stream = np.random.default_rng(month)
    south = stream.random(rows) < 0.4
    glucose = stream.normal(size=rows) + south + 0.7 * (month == 12)
    sodium = 0.5 * glucose + stream.normal(size=rows)
    # In Berlin the first of a month begins an hour earlier than in UTC.
    first = datetime.datetime(2026, month, 1, tzinfo=UTC) - datetime.timedelta(hours=1)
    return [
        {
            "glucose": float(glucose[k]),
            "sodium": float(sodium[k]),
            "region": "south" if south[k] else "north",
            "visited": first + datetime.timedelta(minutes=45 * k),
        }
        for k in range(rows)
    ]


def monthly(folder: Path, home: Path, *start: int, triggers: bool = False) -> Schedule:
    """A schedule of visits in a database, of which each month is published."""
    request = write_request(folder, request=REQUEST, **CONTRACT)
    database = new_url("postgresql", folder)
    return Schedule(
        folder, home, request, CRON, TIMEZONE, *start, triggers=triggers, CLINIC_DB=database
    )


def charges(*states: str) -> list[tuple[str, str]]:
    """Version and window of every charge, or of those in these states."""
    of_dataset = Context.default().ledger.charges("toy")
    return [
        (each.version, each.window) for each in of_dataset if not states or each.state in states
    ]


def check_publications(months: list[str]) -> None:
    """One charge a month in its own window, groups, comparison, pool, page over time, audit."""
    assert sorted(charges()) == [(month, month) for month in months]
    periods = gramercy.open(Home.default().archive).periods("toy")
    assert list(periods) == months
    for opened in periods.values():
        rows = opened.manifest.rows
        assert abs(rows.observed - 900) < 10 * rows.sd
        north, south = opened.groups["north"], opened.groups["south"]
        assert abs(north.rows - 540) < 100 + 10 * north.rows_error
        assert south.means["glucose"] - north.means["glucose"] == pytest.approx(1, abs=0.9)
        assert opened.groups.compare("north", "south").p_value < 0.01
    changed = periods.changes().query("kind == 'mean' and column == 'glucose'")
    assert changed["adjusted"].item() < 0.01
    assert periods.pooled.rows == pytest.approx(900 * len(months), rel=0.1)
    write_site(Context.default())
    page = (Home.default().archive / "toy" / INDEX).read_text()
    assert "<h2>Over time</h2>" in page
    assert "mean of glucose" in page


def _make_pool(schedule: Schedule) -> None:
    """Seal a pool of December and the other months, by the deployment for estimates."""
    *others, last = (
        each.id for each in gramercy.open(Home.default().archive).periods("toy").values()
    )
    (deployment,) = post(
        schedule.api, "/deployments/filter", {"flows": {"name": {"any_": ["estimate"]}}}
    )
    parameters = {
        "release": last,
        "estimates": [{"name": "pool", "releases": others, "rows": "disjoint"}],
    }
    post(
        schedule.api, f"/deployments/{deployment['id']}/create_flow_run", {"parameters": parameters}
    )


@needs_clock
@in_acceptance
def test_months_that_are_due_at_once(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a month without a worker, two runs are late: each publishes the month that it is for.

    Prefect's own history of the runs agrees with the ledger.
    """
    schedule = monthly(tmp_path, home, 2026, 12, 1)
    execute(schedule.environment["CLINIC_DB"], CREATE, INSERT, rows=visits(11) + visits(12))
    with schedule.server(), schedule.worker():
        schedule.move_to(2027, 1, 5, 9)
        schedule.wait_for_releases("2026-12-02", "2027-01-02")
        check_publications(["2026-11", "2026-12"])
        runs = flow_runs(schedule.api, "release", "COMPLETED")
        with temporary_settings({PREFECT_API_URL: schedule.api}):
            history = read_history(Context.default().ledger)
    # The same month once more, by hand.
    monkeypatch.setenv("CLINIC_DB", schedule.environment["CLINIC_DB"])
    again = make_plan(Context.default(), read_request(schedule.request, "2026-11"))
    releases = {each.version: each.release for each in Context.default().ledger.charges("toy")}
    assert replay(Context.default(), again) == releases["2026-11"]
    assert all(run["auto_scheduled"] for run in runs)
    audit = make_audit(Context.default(), history)
    assert not audit.discrepancies
    names = {name: len(runs) for name, runs in history.runs.items()}
    assert sorted(names.values()) == [1, 1]
    assert sorted(name[:11] for name in names) == ["toy/2026-11", "toy/2026-12"]


@needs_clock
@in_acceptance
def test_three_months_with_failures(tmp_path: Path, home: Path) -> None:
    """A run on time, a late one, and one that is killed twice: three charges in all."""
    schedule = monthly(tmp_path, home, 2026, 11, 1, 12, triggers=True)
    archive = home / "archive" / "toy"
    execute(schedule.environment["CLINIC_DB"], CREATE, INSERT, rows=visits(10))
    with schedule.server():
        with schedule.serve():
            schedule.move_to(2026, 11, 2, 5)  # six in the morning in Berlin
            schedule.wait_for_releases("2026-11-02")
            execute(schedule.environment["CLINIC_DB"], INSERT, rows=visits(11))
            schedule.wait_for(lambda: any(archive.glob("2026-10-*/reports/*")))
        # No worker runs on the second of December.
        schedule.move_to(2026, 12, 5, 9)
        with schedule.serve():
            schedule.wait_for_releases("2026-11-02", "2026-12-02")
            execute(schedule.environment["CLINIC_DB"], INSERT, rows=visits(12))
            # The table is locked, so that the run for December waits, and is killed.
            with engine_of(schedule.environment["CLINIC_DB"]).begin() as connection:
                connection.execute(sa.text("LOCK TABLE visits IN ACCESS EXCLUSIVE MODE"))
                schedule.move_to(2027, 1, 2, 5)
                waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
                schedule.wait_for(lambda: bool(connection.execute(waiting).scalar()))
                schedule.kill_worker()
        assert len(charges()) == 2
        (killed,) = flow_runs(schedule.api, "release", "RUNNING")
        schedule.move_to(2027, 1, 3, 12)
        with schedule.serve():
            schedule.retry(killed["id"])
            schedule.wait_for(lambda: len(charges("published")) == 3)
            schedule.kill_worker()  # after the publication, before the run is complete
        schedule.move_to(2027, 1, 4, 12)
        with schedule.serve():
            schedule.retry(killed["id"])
            schedule.wait_for_releases("2026-11-02", "2026-12-02", "2027-01-02")
            first, *_ = flow_runs(schedule.api, "release", "COMPLETED")
            schedule.retry(first["id"])
            schedule.wait_for(lambda: flow_runs(schedule.api, "release")[0]["run_count"] == 2)
            schedule.wait_for_releases("2026-11-02", "2026-12-02", "2027-01-02")
            _make_pool(schedule)
            schedule.wait_for(lambda: any(archive.glob("2026-12-*/estimates/pool-*")))
        check_publications(["2026-10", "2026-11", "2026-12"])
        done = subprocess.run(
            [sys.executable, "-m", "gramercy", "audit", "--runs", "--json"],
            env=schedule.environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads(done.stdout)
    assert (facts["discrepancies"], facts["runs"]) == ([], True)
    periods = gramercy.open(Home.default().archive).periods("toy")
    days = [str(each)[:10] for each in periods.table["published"]]
    assert days == ["2026-11-02", "2026-12-05", "2027-01-03"]
    report = periods["2026-10"].report  # those of other months may be killed with the worker
    assert report is not None
    assert "north" in report.read_text()
