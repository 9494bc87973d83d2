"""Killed at any step: no charge is lost, no noise drawn without one, and none drawn twice."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from archive.store import Archive
from ledger import Ledger
from mechanisms import sampler
from schemas.errors import (
    ArchiveError,
    BudgetRefused,
    BundleError,
    LedgerError,
    SpentFailure,
    StepFailed,
)
from schemas.home import Home
from tasks.verify import verify_release
from tests.faults.kill_at import POINTS, UNCHARGED, VISIBLE
from tests.making import bundle_bytes, run_steps, scene

ROOT = Path(__file__).parents[2]


def states() -> list[str]:
    ledger = Ledger(Home.default().ledger)
    return [c.state for c in ledger.charges("toy")] if ledger.datasets() else []


@pytest.mark.parametrize("point", list(POINTS))
def test_killed(point: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = scene(tmp_path)
    script = [sys.executable, "-m", "tests.faults.kill_at", point, str(request)]
    died = subprocess.run(script, cwd=ROOT, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    place = home / "archive/toy/v1-r1/release"
    assert place.exists() == (point in VISIBLE)

    if point in UNCHARGED:
        assert states() == []
        assert run_steps(request) == "v1-r1"
        return

    draws = []
    drawn = sampler.rounded_gaussian
    monkeypatch.setattr(sampler, "rounded_gaussian", lambda *a: draws.append(a) or drawn(*a))
    if point in VISIBLE:
        sealed = bundle_bytes(place)
        assert run_steps(request) == "v1-r1"
        assert bundle_bytes(place) == sealed
        assert (draws, states()) == ([], ["published"])
        return

    for _ in range(2):  # the answer stays the same
        with pytest.raises(SpentFailure, match=r"toy/v1-r1.*spent.*--new-charge"):
            run_steps(request)
        assert (draws, states()) == ([], ["spent"])
        assert not place.exists()

    with pytest.raises(SpentFailure):
        run_steps(scene(tmp_path, request={"new_charge": "v1-r9"}))
    again = scene(tmp_path, request={"new_charge": "v1-r1"})
    assert run_steps(again) == "v1-r2"
    assert states() == ["spent", "published"]
    assert run_steps(again) == run_steps(request) == "v1-r2"
    assert states() == ["spent", "published"]
    verify_release(Archive(home / "archive"), "toy", "v1-r2", Ledger(home / "ledger.sqlite"))


def test_new_charges_are_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paying again is paying, once each time it is asked for, until the budget refuses."""

    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("tasks.draw.denoise", broken)
    budget = {"epsilon": 1.9, "delta": 1e-6}
    with pytest.raises(StepFailed, match=r"^publish: MemoryError\.$"):
        run_steps(scene(tmp_path, budget=budget))
    for turn in (1, 2):
        request = scene(tmp_path, request={"new_charge": f"v1-r{turn}"}, budget=budget)
        with pytest.raises(StepFailed, match=r"^publish: MemoryError\.$"):
            run_steps(request)
        with pytest.raises(SpentFailure, match=f"v1-r{turn + 1}"):  # a retry of the very same
            run_steps(request)
        assert states() == ["spent"] * (turn + 1)
    last = scene(tmp_path, request={"new_charge": "v1-r3"}, budget=budget)
    with pytest.raises(BudgetRefused, match=r"asked .* spent .* remaining"):
        run_steps(last)
    assert states() == ["spent"] * 3


def test_an_archive_that_cannot_be_written_costs_nothing(tmp_path: Path, home: Path) -> None:
    request = scene(tmp_path)
    home.mkdir()
    (home / "archive").write_text("a file where the folder should be")
    with pytest.raises(ArchiveError, match="cannot write"):
        run_steps(request)
    assert states() == []


def test_a_lost_archive_is_not_drawn_again(tmp_path: Path, home: Path) -> None:
    request = scene(tmp_path)
    run_steps(request)
    (home / "archive/toy").rename(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match="never drawn again"):
        run_steps(request)
    assert states() == ["published"]


def test_an_older_ledger_is_found(tmp_path: Path, home: Path) -> None:
    """A ledger restored from before a release has forgotten its charge; the archive has not."""
    request = scene(tmp_path)
    run_steps(request)
    sealed = bundle_bytes(home / "archive/toy/v1-r1/release")
    (home / "ledger.sqlite").unlink()
    with pytest.raises(LedgerError, match="older than the archive"):
        run_steps(request)
    assert states() == []
    assert bundle_bytes(home / "archive/toy/v1-r1/release") == sealed


def test_a_foreign_bundle_is_not_adopted(tmp_path: Path, home: Path) -> None:
    """Only the very bundle that was sealed for a charge can complete it."""
    request = scene(tmp_path)
    run_steps(request)
    place = home / "archive/toy/v1-r1/release"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = scene(elsewhere)
    with pytest.MonkeyPatch.context() as away:
        away.setenv("GRAMERCY_HOME", str(elsewhere / "home"))
        run_steps(other)
    shutil.rmtree(place)
    shutil.copytree(elsewhere / "home/archive/toy/v1-r1/release", place)
    with pytest.raises(BundleError, match="not the bundle that was published"):
        run_steps(request)
