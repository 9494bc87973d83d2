"""The whole pipeline with its ledger on a database server and its archive at a URL."""

from __future__ import annotations

from pathlib import Path

import pytest

import gramercy
from gramercy.application.auditing import make_audit
from gramercy.application.context import Context
from gramercy.application.withdrawal import withdraw
from gramercy.archive.local import LocalArchive
from gramercy.archive.open import archive_of
from gramercy.archive.signing_keys import known_keys
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas.errors import BundleError, SpentFailure
from tests.support.databases import ledger_location
from tests.support.factories import run_command, run_pipeline, run_release, write_request

pytestmark = pytest.mark.slow


@pytest.fixture
def elsewhere(home: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the archive; the ledger is on PostgreSQL."""
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", url)
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", str(ledger_location("postgresql", home)))
    return url


def test_release_and_audit_with_remote_stores(
    elsewhere: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path)
    run_pipeline(request)
    assert run_release(request) == "v1-r1"
    assert run_release(write_request(tmp_path, request={"version": "v2"})) == "v2-r2"
    withdraw(Context.default(), "toy", "v2-r2", "wrong file")
    audit = make_audit(Context.default())
    assert audit.discrepancies == []
    assert audit.archive == archive_of(Home.default()).where
    assert not (home / "archive").exists()
    assert not (home / "ledger.sqlite").exists()
    assert run_command("verify", capsys=capsys)[0] == 0

    public = known_keys(home / "keys")[0].path
    release = gramercy.open(elsewhere, key=public)["toy/v1-r1"]
    assert release.denoised.shape == (3, 3)
    assert len(release.estimates) == 2
    assert gramercy.open(elsewhere)["toy/v2-r2"].withdrawn == "wrong file"


def test_release_signed_by_an_untrusted_key_is_refused(
    elsewhere: str, home: Path, tmp_path: Path
) -> None:
    run_release(write_request(tmp_path))
    stranger = LocalArchive(tmp_path / "strangers", keys=tmp_path / "keys")
    with stranger.staging("toy") as staged:
        (staged / "a").write_text("b")
        stranger.seal(staged)
    with pytest.raises(BundleError, match="none of those that are trusted"):
        gramercy.open(elsewhere, key=known_keys(tmp_path / "keys")[0].path)["toy/v1-r1"]


def test_sealed_release_is_uploaded_by_the_next_run(
    elsewhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is unreachable after sealing: the next run uploads the same bytes."""
    request = write_request(tmp_path)

    def unreachable(*_: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as broken:
        kind = type(archive_of(Home.default()))
        broken.setattr(kind, "commit", unreachable)
        with pytest.raises(gramercy.ArchiveError, match="cannot write to the archive"):
            run_release(request)
    ledger = Ledger.of(Home.default())
    (sealed,) = ledger.charges("toy")
    assert sealed.state == "sealed"
    assert [each.subject for each in make_audit(Context.default()).discrepancies] == ["toy/v1-r1"]
    assert run_release(request) == "v1-r1"
    (done,) = ledger.charges("toy")
    assert (done.state, done.sha256) == ("published", sealed.sha256)
    assert make_audit(Context.default()).discrepancies == []
    with pytest.raises(SpentFailure):
        ledger.mark("toy", "v1-r1", "drawn")
