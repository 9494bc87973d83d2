"""After a failure or a loss, a release is charged again, restored or refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gramercy.archive.store.archive import Archive
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from tests.support.factories import bundle_bytes, run_release, write_request
from tests.support.problems import raises


def states() -> list[str]:
    ledger = Ledger.of(Home.default())
    return [c.state for c in ledger.charges("toy")] if ledger.datasets() else []


def broken(*_: object, **__: object) -> None:
    raise MemoryError


@pytest.mark.slow
def test_interrupted_release_needs_a_new_charge(
    tmp_path: Path, any_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = write_request(tmp_path)
    with monkeypatch.context() as failing:
        failing.setattr("gramercy.pipeline.publish.drawing.denoise", broken)
        with raises(families.STEP_FAILED, step="publish", error="MemoryError"):
            run_release(request)
    with raises(families.SPENT, release="toy/v1-r1"):
        run_release(write_request(tmp_path, request={"new_charge": "v1-r9"}))
    again = write_request(tmp_path, request={"new_charge": "v1-r1"})
    assert run_release(again) == "v1-r2"
    assert states() == ["spent", "published"]
    assert run_release(again) == run_release(write_request(tmp_path)) == "v1-r2"
    assert states() == ["spent", "published"]
    verify_release(open_archive(any_home.archive), "toy", "v1-r2", Ledger.of(any_home))


def test_every_new_charge_counts_against_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every new charge is made once, until the budget is exhausted."""
    monkeypatch.setattr("gramercy.pipeline.publish.drawing.denoise", broken)
    budget = {"epsilon": 1.9, "delta": 1e-6}
    with raises(families.STEP_FAILED, step="publish", error="MemoryError"):
        run_release(write_request(tmp_path, budget=budget))
    for turn in (1, 2):
        request = write_request(tmp_path, request={"new_charge": f"v1-r{turn}"}, budget=budget)
        with raises(families.STEP_FAILED, step="publish", error="MemoryError"):
            run_release(request)
        with raises(families.SPENT, release=f"toy/v1-r{turn + 1}"):  # by a retry
            run_release(request)
        assert states() == ["spent"] * (turn + 1)
    last = write_request(tmp_path, request={"new_charge": "v1-r3"}, budget=budget)
    with raises(families.EXCEEDED, budget="toy", epsilon=1.9):
        run_release(last)
    assert states() == ["spent"] * 3


def test_unusable_archive_costs_nothing(tmp_path: Path, home: Path) -> None:
    request = write_request(tmp_path)
    home.mkdir()
    (home / "archive").write_text("a file where the folder should be")
    with raises(families.ARCHIVE_DISK, path=str(home / "archive/.ledger")):
        run_release(request)
    assert states() == []


def test_lost_archive_is_not_drawn_again(tmp_path: Path, home: Path) -> None:
    request = write_request(tmp_path)
    run_release(request)
    (home / "archive/toy").rename(tmp_path / "elsewhere")
    with raises(families.SEAL):
        run_release(request)
    assert states() == ["published"]


def test_lost_ledger_is_detected_by_the_archive(tmp_path: Path, home: Path) -> None:
    """A new ledger lacks the charge, but the archive has an anchor of it."""
    request = write_request(tmp_path)
    run_release(request)
    sealed = bundle_bytes(home / "archive/toy/v1-r1/release")
    (home / "ledger.sqlite").unlink()
    with raises(families.UNTRUSTED, witness="the archive"):
        run_release(request)
    assert states() == []
    assert bundle_bytes(home / "archive/toy/v1-r1/release") == sealed


def test_foreign_bundle_is_not_adopted(tmp_path: Path, home: Path) -> None:
    """Only the bundle that was sealed for a charge can complete it."""
    request = write_request(tmp_path)
    run_release(request)
    bundle = home / "archive/toy/v1-r1/release"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    foreign = write_request(elsewhere)
    with pytest.MonkeyPatch.context() as other_home:
        other_home.setenv("GRAMERCY_HOME", str(elsewhere / "home"))
        run_release(foreign)
    shutil.rmtree(bundle)
    shutil.copytree(elsewhere / "home/archive/toy/v1-r1/release", bundle)
    with raises(families.SEAL):
        run_release(request)


def test_sealed_release_is_finished_by_another_request(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next release of the data set, of any version, finishes it with the same bytes."""

    def broken(*_: object, **__: object) -> None:
        raise OSError(28, "no space left")

    with monkeypatch.context() as full:
        full.setattr(Archive, "commit", broken)
        with raises(families.ARCHIVE_DISK):
            run_release(write_request(tmp_path))
    (sealed,) = Ledger.of(Home.default()).charges("toy")
    assert sealed.state == "sealed"
    assert run_release(write_request(tmp_path, request={"version": "v2"})) == "v2-r1"
    first, second = Ledger.of(Home.default()).charges("toy")
    assert (first.state, first.sha256, second.state) == ("published", sealed.sha256, "published")
    assert run_release(write_request(tmp_path)) == "v1-r1"
    assert not list((home / "archive/.staging").iterdir())
