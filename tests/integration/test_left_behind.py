"""After a loss or a failure, a release is charged again, restored, or refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gramercy.application.verification import verify_release
from gramercy.archive.local import LocalArchive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas.errors import (
    ArchiveError,
    BudgetRefused,
    BundleError,
    SpentFailure,
    StepFailed,
    UntrustedLedger,
)
from tests.support.factories import bundle_bytes, run_release, write_request


def states() -> list[str]:
    ledger = Ledger.of(Home.default())
    return [c.state for c in ledger.charges("toy")] if ledger.datasets() else []


def broken(*_: object) -> None:
    raise MemoryError


@pytest.mark.slow
def test_interrupted_release_needs_a_new_charge(
    tmp_path: Path, any_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = write_request(tmp_path)
    with monkeypatch.context() as failing:
        failing.setattr("gramercy.application.drawing.denoise", broken)
        with pytest.raises(StepFailed):
            run_release(request)
    with pytest.raises(SpentFailure):
        run_release(write_request(tmp_path, request={"new_charge": "v1-r9"}))
    again = write_request(tmp_path, request={"new_charge": "v1-r1"})
    assert run_release(again) == "v1-r2"
    assert states() == ["spent", "published"]
    assert run_release(again) == run_release(write_request(tmp_path)) == "v1-r2"
    assert states() == ["spent", "published"]
    verify_release(LocalArchive(any_home.archive), "toy", "v1-r2", Ledger.of(any_home))


def test_every_new_charge_counts_against_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every new charge is charged once, until the budget refuses."""
    monkeypatch.setattr("gramercy.application.drawing.denoise", broken)
    budget = {"epsilon": 1.9, "delta": 1e-6}
    with pytest.raises(StepFailed, match=r"^publish: MemoryError\.$"):
        run_release(write_request(tmp_path, budget=budget))
    for turn in (1, 2):
        request = write_request(tmp_path, request={"new_charge": f"v1-r{turn}"}, budget=budget)
        with pytest.raises(StepFailed, match=r"^publish: MemoryError\.$"):
            run_release(request)
        with pytest.raises(SpentFailure, match=f"v1-r{turn + 1}"):  # a retry of the very same
            run_release(request)
        assert states() == ["spent"] * (turn + 1)
    last = write_request(tmp_path, request={"new_charge": "v1-r3"}, budget=budget)
    with pytest.raises(BudgetRefused, match=r"asked .* spent .* remaining"):
        run_release(last)
    assert states() == ["spent"] * 3


def test_unusable_archive_costs_nothing(tmp_path: Path, home: Path) -> None:
    request = write_request(tmp_path)
    home.mkdir()
    (home / "archive").write_text("a file where the folder should be")
    with pytest.raises(ArchiveError, match=r"archive.*cannot read the archive \(Not a directory\)"):
        run_release(request)
    assert states() == []


def test_lost_archive_is_not_drawn_again(tmp_path: Path, home: Path) -> None:
    request = write_request(tmp_path)
    run_release(request)
    (home / "archive/toy").rename(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match="never drawn again"):
        run_release(request)
    assert states() == ["published"]


def test_lost_ledger_is_found_by_the_archive(tmp_path: Path, home: Path) -> None:
    """A new ledger lacks the charge, but the archive has an anchor of it."""
    request = write_request(tmp_path)
    run_release(request)
    sealed = bundle_bytes(home / "archive/toy/v1-r1/release")
    (home / "ledger.sqlite").unlink()
    with pytest.raises(UntrustedLedger, match="archive belongs to another ledger"):
        run_release(request)
    assert states() == []
    assert bundle_bytes(home / "archive/toy/v1-r1/release") == sealed


def test_foreign_bundle_is_not_adopted(tmp_path: Path, home: Path) -> None:
    """Only the bundle that was sealed for a charge can complete it."""
    request = write_request(tmp_path)
    run_release(request)
    place = home / "archive/toy/v1-r1/release"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = write_request(elsewhere)
    with pytest.MonkeyPatch.context() as away:
        away.setenv("GRAMERCY_HOME", str(elsewhere / "home"))
        run_release(other)
    shutil.rmtree(place)
    shutil.copytree(elsewhere / "home/archive/toy/v1-r1/release", place)
    with pytest.raises(BundleError, match="not the bundle that was published"):
        run_release(request)


def test_sealed_release_is_finished_by_another_request(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next release of the data set, of any version, finishes it with the same bytes."""

    def broken(*_: object) -> None:
        raise OSError(28, "no space left")

    with monkeypatch.context() as full:
        full.setattr(LocalArchive, "commit", broken)
        with pytest.raises(ArchiveError):
            run_release(write_request(tmp_path))
    (sealed,) = Ledger.of(Home.default()).charges("toy")
    assert sealed.state == "sealed"
    assert run_release(write_request(tmp_path, request={"version": "v2"})) == "v2-r2"
    first, second = Ledger.of(Home.default()).charges("toy")
    assert (first.state, first.sha256, second.state) == ("published", sealed.sha256, "published")
    assert run_release(write_request(tmp_path)) == "v1-r1"
    assert not list((home / "archive/.staging").iterdir())
