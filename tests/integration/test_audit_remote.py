"""The main job with its ledger on a database server and its archive at a URL."""

from __future__ import annotations

from pathlib import Path

import pytest

import gramercy
from gramercy.application.auditing import make_audit
from gramercy.application.withdrawal import withdraw
from gramercy.archive.signing_keys import known_keys
from gramercy.archive.store import Archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas.errors import BundleError, SpentFailure
from tests.support.databases import fresh
from tests.support.factories import run, run_all, run_steps, scene


@pytest.fixture
def elsewhere(home: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the archive; the ledger is on PostgreSQL."""
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", url)
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", str(fresh("postgresql", home)))
    return url


def test_the_main_job(
    elsewhere: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = scene(tmp_path)
    run_all(request)
    assert run_steps(request) == "v1-r1"
    assert run_steps(scene(tmp_path, request={"version": "v2"})) == "v2-r2"
    withdraw("toy", "v2-r2", "wrong file")
    audit = make_audit()
    assert audit.discrepancies == []
    assert audit.archive == Archive.of(Home.default()).where
    assert not (home / "archive").exists()
    assert not (home / "ledger.sqlite").exists()
    assert run("verify", capsys=capsys)[0] == 0

    public = known_keys(home / "keys")[0].path
    release = gramercy.open(elsewhere, key=public)["toy/v1-r1"]
    assert release.denoised.shape == (3, 3)
    assert len(release.estimates) == 2
    assert gramercy.open(elsewhere)["toy/v2-r2"].withdrawn == "wrong file"


def test_a_key_of_nobody_that_is_known(elsewhere: str, home: Path, tmp_path: Path) -> None:
    run_steps(scene(tmp_path))
    stranger = Archive(tmp_path / "strangers", keys=tmp_path / "keys")
    with stranger.staging("toy") as staged:
        (staged / "a").write_text("b")
        stranger.seal(staged)
    with pytest.raises(BundleError, match="none of those that are trusted"):
        gramercy.open(elsewhere, key=known_keys(tmp_path / "keys")[0].path)["toy/v1-r1"]


def test_what_was_sealed_is_finished(
    elsewhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that cannot be reached when all is sealed: the next run uploads those bytes."""
    request = scene(tmp_path)

    def unreachable(*_: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as broken:
        kind = type(Archive.of(Home.default()))
        broken.setattr(kind, "commit", unreachable)
        with pytest.raises(gramercy.ArchiveError, match="cannot write to the archive"):
            run_steps(request)
    ledger = Ledger.of(Home.default())
    (sealed,) = ledger.charges("toy")
    assert sealed.state == "sealed"
    assert [each.subject for each in make_audit().discrepancies] == ["toy/v1-r1"]
    assert run_steps(request) == "v1-r1"
    (done,) = ledger.charges("toy")
    assert (done.state, done.sha256) == ("published", sealed.sha256)
    assert make_audit().discrepancies == []
    with pytest.raises(SpentFailure):
        ledger.mark("toy", "v1-r1", "drawn")
