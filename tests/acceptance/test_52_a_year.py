"""A year of an office: weekly releases of three data sets, losses, failures, and an upgrade.

Prefect's scheduler, `gramercy serve`, its worker and every run are processes with one clock, which
the test moves from Monday to Monday.
"""

from __future__ import annotations

import datetime
import errno
import functools
import math
import re
import shlex
import tarfile
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.acceptance.test_39_golden_release import GOLDEN
from tests.support.clocks import can_move_clocks
from tests.support.factories import FULL, contract_facts, write_yaml
from tests.support.office import Office
from tests.support.servers import ROOT
from tests.support.sinks import sinks

pytestmark = [
    pytest.mark.skipif(not can_move_clocks(), reason="needs libfaketime on Linux"),
    pytest.mark.skipif(not FULL, reason="twenty minutes of work: in `make acceptance`"),
    # Apprise tries whether Python still has this module.
    pytest.mark.filterwarnings("ignore:'imghdr' is deprecated"),
]
FIRST = datetime.datetime(2027, 1, 4, 6, 5, tzinfo=datetime.UTC)  # a Monday, as its runs start
WEEK = datetime.timedelta(weeks=1)
HOURS = datetime.timedelta(hours=1)
# After ten minutes there is an alert; Prefect forgets to send it if its clock is a minute ahead.
PATIENCE = datetime.timedelta(minutes=10, seconds=50)
WEEKS = 52
DATA_SETS = ("toy", "visits", "emergencies")
EARLIER = "79e7a60e43d8"  # a revision of Prefect's tables on SQLite, of June 2026
PAGE = ROOT / "docs" / "how-to" / "backup.md"


class Year:
    """The events of a year, in weeks that are counted from 1."""

    def __init__(self, office: Office, weeks: int) -> None:
        self.office, self.weeks, self.week = office, weeks, 0
        self.alerts, self.lost_charges = 0, 0
        self.tables = office.folder / "tables"
        self.tables.mkdir()
        office.backups.mkdir()
        office.faults.mkdir()
        self._write_requests()

    # Data sets and their tables

    def _write_requests(self) -> None:
        """A table of today, a table a week with a budget a week, and a table that grows."""
        gaussian = {"name": "gaussian", "delta": 1e-7}
        dates = {"neighbours": "add-remove", "period": {"column": "visited"}}
        facts: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
            "toy": (
                # The data set of an earlier version's home.
                {"rows": 2000, "intercept": True, "budget": {"epsilon": 20.0, "delta": 1e-6}},
                {"version": "%G-W%V", "mechanism": gaussian | {"epsilon": 0.2}},
            ),
            "visits": (
                {"budget": {"epsilon": 1.0, "delta": 1e-6, "per": "week"}, "rows": 300}
                | {"source": str(self.tables / "visits-{year}-W{week}.csv")},
                {"version": "{period}", "mechanism": gaussian | {"epsilon": 0.5}},
            ),
            "emergencies": (
                dates | {"budget": {"epsilon": 3.0, "delta": 1e-5}, "rows": 300},
                {"version": "{period}", "mechanism": gaussian | {"epsilon": 1.0}}
                | {"cumulative": {"every": "week", "from": "2026-12-28", "steps": self.weeks}},
            ),
        }
        paths = []
        for name, (terms, request) in facts.items():
            contract = contract_facts(self.tables / f"{name}.csv") | {"id": name} | terms
            write_yaml(self.office.folder / f"{name}.contract.yaml", contract)
            path = self.office.folder / f"{name}.yaml"
            paths.append(write_yaml(path, {"dataset": name, "estimates": []} | request))
        self.office.requests = paths
        values = np.random.default_rng(1).normal(size=(40 * self.weeks, 3)).clip(-4, 4).round(2)
        first = (FIRST - WEEK).date()
        days = [first + datetime.timedelta(days=n * 7 // 40) for n in range(len(values))]
        lines = [f"{','.join(map(str, row))},{day}" for row, day in zip(values, days, strict=True)]
        header = "c0,c1,c2,visited"
        (self.tables / "emergencies.csv").write_text("\n".join([header, *lines]) + "\n")

    def write_tables(self) -> None:
        """The tables of this week."""
        for name, rows in (("toy", 2000), (f"visits-{self.versions('visits')[-1]}", 300)):
            stream = np.random.default_rng(self.week)
            values = stream.normal(size=(rows, 3)).clip(-4, 4).round(2)
            lines = [",".join(map(str, row)) for row in values]
            (self.tables / f"{name}.csv").write_text("\n".join(["c0,c1,c2", *lines]) + "\n")

    def versions(self, dataset: str) -> list[str]:
        """The versions that are due until this week, oldest first."""
        last = dataset != "toy"  # the week that has ended
        days = [FIRST + WEEK * (n - last) for n in range(self.week)]
        return [f"{day:%G-W%V}" for day in days]

    # Weeks

    def set_up(self) -> None:
        """A home of an earlier version, with a data set and two releases, is put into use."""
        office = self.office
        office.new_machine()
        office.home.mkdir()
        with tarfile.open(GOLDEN) as packed:
            packed.extractall(office.home, filter="data")
        (office.home / "archive").rename(office.archive)
        office.command("keys", "new", "--yes")
        office.command("budget", "--moved", "--reason", "unpacked")
        for name in DATA_SETS:
            office.command("register", office.folder / f"{name}.contract.yaml")
        office.serve()

    def check(self) -> None:
        """What an auditor sees at the end of the year."""
        office = self.office
        draws, bundles = office.draws(), self.bundles()
        # Runs of the past are run again.
        for dataset in DATA_SETS:
            for run in office.runs(type=["COMPLETED"], dataset=dataset)[:2]:
                office.retry(run["id"])
        office.settle()
        assert (office.draws(), self.bundles()) == (draws, bundles)

        charged = [(name, each) for name in DATA_SETS for each in self.charges(name)]
        drawn = Counter(f"{name}/{each['release']}" for name, each in charged)
        assert draws == drawn
        assert set(draws.values()) == {1}
        assert len(charged) == len(DATA_SETS) * self.weeks + self.lost_charges
        noisy = [
            digest for name, digest in bundles.items() if name.endswith("/second_moment.parquet")
        ]
        assert len(noisy) == len({*noisy}) == len(DATA_SETS) * self.weeks + 2

        for window in office.facts("budget"):
            assert window["spent_mu"] > 0
            assert window["spent_epsilon"] <= window["epsilon"]
            if window["dataset"] != "emergencies":
                squares = math.fsum(each["mu"] ** 2 for each in window["charges"])
                assert window["spent_mu"] ** 2 == pytest.approx(squares, rel=1e-9)
        verified = office.facts("verify")
        assert len(verified) >= len(DATA_SETS) * self.weeks + 2
        assert not [each for each in verified if "error" in each]
        assert office.facts("audit", "--runs")["discrepancies"] == []

        office.command("backup", office.backups / "last")
        office.lose_machine()
        office.new_machine()
        self.bring_back("last")
        assert office.facts("audit", "--runs")["discrepancies"] == []
        assert self.alerts == ALERTS

    def bundles(self) -> dict[str, str]:
        """The digests of all files of releases."""
        return {
            path.relative_to(self.office.archive).as_posix(): sha256(path.read_bytes()).hexdigest()
            for path in self.office.archive.glob("*/*/release/*")
        }

    def pass_week(self) -> None:
        """The releases of a Monday; then audit, status and backup."""
        self.begin_week()
        self.office.settle()
        self.end_week()

    def begin_week(self, *failures: Failure) -> None:
        """The releases of a Monday are due."""
        self.week += 1
        self.write_tables()
        self.office.received.clear()
        for each in failures:
            each.begin(self)
        self.office.move_to(self.monday)

    @property
    def monday(self) -> datetime.datetime:
        return FIRST + WEEK * (self.week - 1)

    def end_week(self) -> None:
        """All releases are there, audit and status have run, and nothing needs a person."""
        office = self.office
        office.move_to(self.monday + 2 * HOURS)
        office.settle()
        for dataset in DATA_SETS:
            assert self.published(dataset) == self.versions(dataset), dataset
        office.command("status")
        office.command("backup", office.backups / str(self.week))

    def charges(self, dataset: str) -> list[dict[str, Any]]:
        """The charges of a data set in this year, in order."""
        windows = self.office.facts("budget", dataset)
        charges = [each for window in windows for each in window["charges"]]
        return [each for each in charges if each["at"] >= f"{FIRST:%Y-%m-%d}"]

    def published(self, dataset: str) -> list[str]:
        """The versions that were published in this year."""
        return [each["version"] for each in self.charges(dataset) if each["state"] == "published"]

    def unwell(self) -> set[tuple[str, str]]:
        """Subjects and data sets that need a person."""
        facts = self.office.facts("status", code=1)
        return {(each["subject"], each["dataset"]) for each in facts if not each["well"]}

    def fail(self, *failures: Failure) -> None:
        """A week in which runs fail: of each there is an alert, a person sees to it, it runs again.

        Runs are of different data sets.
        """
        office = self.office
        self.begin_week(*failures)
        office.settle()
        assert self.unwell() == {
            (subject, each.dataset) for each in failures for subject in ("release", *each.also)
        }
        for each in failures:
            (run,) = office.runs(type=["FAILED", "CRASHED"], dataset=each.dataset)
            office.wait_for(functools.partial(office.alerted, each.dataset, "has failed"))
            self.alerts += 1
            each.fix(self)
            office.retry(run["id"])
        office.settle()
        for each in failures:
            each.end(self)
        self.end_week()

    # Events

    def failed_runs(self) -> None:
        self.fail(KilledBeforePublication(), UnreadableTable(), KilledAfterDraw())

    def new_key(self) -> None:
        """And a budget that is exhausted, and an archive on a full disk."""
        self.office.command("keys", "new", "--yes")
        exhausted = ExhaustedBudget()
        exhausted.lower(self)
        self.fail(exhausted, FullArchive())

    def upgrade(self) -> None:
        """The page on upgrades, from tables of Prefect's that an earlier version has made."""
        office = self.office
        before = office.scheduled()
        (section,) = re.findall(r"## Upgrade\n(.*?)\n## ", PAGE.read_text(), re.DOTALL)
        (shell,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
        for program, *words in map(shlex.split, shell.splitlines()):
            if program == "gramercy":
                office.command(*(x.replace("/mnt/backup", str(office.backups)) for x in words))
            elif words == ["stop", "gramercy"]:
                office.stop_serving()
            elif words == ["start", "gramercy"]:
                assert office.scheduled() == before
                office.serve()
            else:
                assert program.endswith("/pip")
                office.upgrade_server(EARLIER)
        assert office.scheduled() == before
        self.pass_week()

    def lost_machine(self) -> None:
        """No worker starts the runs of Monday, and a backup of three weeks ago is restored."""
        office = self.office
        office.lose_machine()
        self.begin_week()
        office.wait_for_late_runs(len(DATA_SETS))
        office.move_to(self.monday + PATIENCE)
        office.wait_for(lambda: office.alerted("release", "has not started"))
        self.alerts += 1
        office.new_machine()
        self.bring_back(max(1, self.week - 4))
        office.settle()
        self.end_week()

    def lost_machine_and_server(self) -> None:
        """The newest backup is of two weeks ago, and Prefect's database is lost as well."""
        office = self.office
        office.lose_machine()
        office.lose_server()
        office.new_machine()
        self.bring_back(self.week - 1)
        self.pass_week()

    def bring_back(self, week: int | str) -> None:
        """Restore the backup of a week: it charges nothing until it is up to date."""
        office = self.office
        draws = office.draws()
        office.command("restore", office.backups / str(week))
        office.command("release", office.requests[0], "--yes", "--despite", code=2)
        office.command("serve", *office.requests, code=2)
        office.command("status", code=1)
        office.command("budget", "--moved", "--reason", "the machine was lost")
        assert office.draws() == draws
        office.serve()


class Failure:
    """Why a run of a data set fails, and what a person does about it."""

    dataset: str
    also: tuple[str, ...] = ()  # what else of the data set needs a person

    def begin(self, year: Year) -> None:
        """Before the runs of the week are due."""

    def fix(self, year: Year) -> None:
        """After the alert, before the run is run again."""

    def end(self, year: Year) -> None:
        """After that."""


class UnreadableTable(Failure):
    dataset = "toy"

    def begin(self, year: Year) -> None:
        (year.tables / "toy.csv").write_bytes(b"PK\x03\x04" + bytes(64))

    def fix(self, year: Year) -> None:
        year.write_tables()


class ExhaustedBudget(Failure):
    dataset, also = "toy", ("budget",)

    def lower(self, year: Year) -> None:
        """Leave less than a release needs, which status says before the run is due."""
        (toy,) = year.office.facts("budget", "toy")
        least = 1.0001 * toy["spent_epsilon"]
        year.office.command("budget", "toy", "--lower", least, 1e-6, "--reason", "ethics board")
        assert year.unwell() == {("budget", "toy")}

    def fix(self, year: Year) -> None:
        year.office.command("budget", "toy", "--raise", 20, 1e-6, "--reason", "ethics board")


class FullArchive(Failure):
    """Nothing is charged."""

    dataset = "visits"

    def begin(self, year: Year) -> None:
        year.office.plan_fault("visits", "before anchor", errno.ENOSPC)

    def fix(self, year: Year) -> None:
        assert [each["version"] for each in year.charges("visits")] == year.versions("visits")[:-1]


class KilledBeforePublication(Failure):
    """The bundle is sealed: the next run finishes it, byte for byte."""

    dataset = "visits"

    def begin(self, year: Year) -> None:
        year.office.plan_fault("visits", "before commit of the bundle")

    def fix(self, year: Year) -> None:
        self.sealed = year.charges("visits")[-1]
        assert self.sealed["state"] == "sealed"

    def end(self, year: Year) -> None:
        assert year.charges("visits")[-1] == self.sealed | {"state": "published"}


class KilledAfterDraw(Failure):
    """The charge is spent, and the step is drawn again for another one."""

    dataset = "emergencies"

    def begin(self, year: Year) -> None:
        year.office.plan_fault("emergencies", "after draw")

    def end(self, year: Year) -> None:
        office = year.office
        assert year.charges("emergencies")[-1]["state"] == "spent"
        period = ("--period", year.versions("emergencies")[-1], "--new-charge")
        office.command("release", office.requests[2], *period, "--yes", "--despite")
        year.lost_charges += 1


EVENTS: tuple[tuple[int, Callable[[Year], None]], ...] = (  # in which week
    (8, Year.failed_runs),
    (16, Year.lost_machine),
    (25, Year.new_key),
    (34, Year.upgrade),
    (43, Year.lost_machine_and_server),
)
ALERTS = 6  # of five runs that failed, and of runs that have not started


def test_a_year(tmp_path: Path) -> None:
    """No overspend, no second draw, no lost release, and no discrepancy at the end."""
    events = dict(EVENTS)
    with sinks() as received:
        office = Office(tmp_path, received, FIRST - 2 * HOURS)
        year = Year(office, WEEKS)
        with office.open():
            year.set_up()
            for week in range(1, WEEKS + 1):
                events.get(week, Year.pass_week)(year)
            year.check()
