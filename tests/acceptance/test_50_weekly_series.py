"""A quarter of weekly steps of a growing table, by Prefect's scheduler and worker.

Server, worker and runs are processes with one clock, which the test moves. Runs are on time, early,
late, missed and retried; one is killed while it draws its noise, and one after it has sealed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gramercy.common.prefix_sums import PrefixSums
from gramercy.ledger import Charge
from gramercy.pipeline.context import Context
from tests.support.clocks import can_move_clocks
from tests.support.factories import FULL, bundle_bytes, write_request
from tests.support.schedules import Schedule
from tests.support.servers import ROOT, flow_runs

pytestmark = [
    pytest.mark.skipif(not can_move_clocks(), reason="needs libfaketime on Linux"),
    pytest.mark.skipif(not FULL, reason="minutes of work: in `make acceptance`"),
]
STEPS = 13
LABELS = [f"2026-W{week}" for week in range(41, 41 + STEPS)]
REQUEST: dict[str, Any] = {
    "version": "{period}",
    # A step is published a week after its end, when its rows are complete.
    "cumulative": {"every": "week", "from": "2026-10-05", "steps": STEPS, "lag": 7},
    "estimates": [],
}
CONTRACT: dict[str, Any] = {
    "neighbours": "add-remove",
    "period": {"column": "visited", "timezone": "Europe/Berlin"},
    "budget": {"epsilon": 3.0, "delta": 1e-5},
}
# Run in every process: it kills a run at a point that a file names, once.
KILL = """
import sys
from pathlib import Path

armed = Path({armed!r})
if "gramercy.flows.run" in sys.orig_argv and armed.exists():
    from tests.support.faults.kill_points import KillPoints

    point = armed.read_text()
    armed.unlink()
    KillPoints(lambda *_: None, (point, 1)).install()
"""


class Quarter:
    """The schedule of the series, every Monday at six in the morning in Berlin."""

    def __init__(self, folder: Path, home: Path) -> None:
        days = pd.date_range("2026-10-01", "2027-01-10", periods=700).date
        columns = {f"c{k}": [(7 * i + k) % 5 - 2.0 for i in range(700)] for k in range(3)}
        pd.DataFrame(columns | {"visited": days}).to_csv(folder / "table.csv", index=False)
        request = write_request(folder, request=REQUEST, **CONTRACT)
        code = folder / "code"
        code.mkdir()
        self._armed = folder / "die_at"
        (code / "sitecustomize.py").write_text(KILL.format(armed=str(self._armed)))
        self.schedule = Schedule(
            folder,
            home,
            request,
            "0 6 * * 1",
            "Europe/Berlin",
            *(2026, 10, 8),
            PYTHONPATH=f"{code}:{ROOT}",
        )
        self._folder = folder

    def wait_for(self, state: str, runs: int) -> None:
        """Wait until there are so many runs in a state."""
        self.schedule.wait_for(lambda: len(flow_runs(self.schedule.api, "release", state)) == runs)

    def run_on(self, *day: int, state: str = "COMPLETED") -> None:
        """Let the run of a Monday end in a state."""
        before = len(flow_runs(self.schedule.api, "release", state))
        self.schedule.move_to(*day, 7)
        self.wait_for(state, before + 1)

    def kill_on(self, *day: int, at: str) -> None:
        """Kill the run of a Monday at a point."""
        self._armed.write_text(at)
        self.run_on(*day, state="CRASHED")
        assert not self._armed.exists()

    def command(self, *words: str) -> str:
        """Run a command of Gramercy at the present time of the schedule."""
        done = subprocess.run(
            [sys.executable, "-m", "gramercy", *words],
            env=self.schedule.environment,
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def steps(state: str = "published") -> list[str]:
    """The versions of the charges in a state, in order."""
    return [each.version for each in charges() if each.state == state]


def charges() -> tuple[Charge, ...]:
    return Context.default().ledger.charges("toy")


def test_thirteen_weeks_with_failures(tmp_path: Path, home: Path) -> None:
    """One charge of the window, and the exact growth by the step that was drawn twice."""
    quarter = Quarter(tmp_path, home)
    with quarter.schedule.server():
        with quarter.schedule.worker():
            quarter.run_on(2026, 10, 12)  # the first week is over, but not its lag
            assert charges() == ()
            quarter.run_on(2026, 10, 19)
            assert steps() == LABELS[:1]
        # Two Mondays without a worker: its runs are late.
        quarter.schedule.move_to(2026, 11, 4, 12)
        with quarter.schedule.worker():
            quarter.wait_for("COMPLETED", 4)
            assert steps() == LABELS[:3]
            quarter.kill_on(2026, 11, 9, at="before seal")
            quarter.run_on(2026, 11, 16, state="FAILED")  # it finds the spent step, and stops
            assert steps() == LABELS[:3]
            assert steps("spent") == LABELS[3:4]
            options = ("--period", LABELS[3], "--new-charge", "--yes", "--despite")
            quarter.command("release", str(quarter.schedule.request), *options)
            quarter.run_on(2026, 11, 23)
            assert steps() == LABELS[:6]  # also the one that was blocked
            quarter.kill_on(2026, 11, 30, at="before commit of the bundle")
            (sealed,) = (each for each in charges() if each.state == "sealed")
            assert sealed.version == LABELS[6]
            quarter.run_on(2026, 12, 7)
            assert steps() == LABELS[:8]
            finished = next(each for each in charges() if each.version == LABELS[6])
            assert finished.sha256 == sealed.sha256
        # Prefect had planned the next three runs; the one of 4 January is missed.
        quarter.schedule.move_to(2027, 1, 6, 12)
        with quarter.schedule.worker():
            quarter.wait_for("COMPLETED", 10)  # one of them by the command
            assert steps() == LABELS[:11]
            quarter.run_on(2027, 1, 11)
            assert steps() == LABELS
            before = {each.name: bundle_bytes(each / "release") for each in folders(home)}
            first = flow_runs(quarter.schedule.api, "release", "COMPLETED")[1]
            quarter.schedule.retry(first["id"])
            quarter.schedule.wait_for(
                lambda: flow_runs(quarter.schedule.api, "release", "COMPLETED")[1]["run_count"] == 2
            )
            assert {each.name: bundle_bytes(each / "release") for each in folders(home)} == before
        facts = json.loads(quarter.command("audit", "--runs", "--json"))
    assert (facts["discrepancies"], facts["runs"]) == ([], True)
    verified = json.loads(quarter.command("verify", "--json"))
    assert sum("error" not in each for each in verified) >= STEPS
    assert not any("error" in each for each in verified)
    assert len(charges()) == STEPS + 1
    window = charges()[0].guarantee.mu
    draws = [1 + (step == 4) for step in range(1, STEPS + 1)]
    series = PrefixSums(STEPS)
    growth = series.squared_norm(draws) / series.squared_norm()
    (statement,) = Context.default().ledger.statements("toy")
    assert statement.total.mu**2 == pytest.approx(growth * window**2, rel=1e-12)


def folders(home: Path) -> list[Path]:
    """The releases in the archive."""
    return [each.parent for each in sorted((home / "archive" / "toy").glob("*/release"))]
