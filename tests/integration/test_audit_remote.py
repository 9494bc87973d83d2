"""The pipeline with its ledger on a database server and its archive at a URL."""

from __future__ import annotations

from pathlib import Path

import pytest

import gramercy
from gramercy.archive.seal.signing import public_keys
from gramercy.archive.store.opening import archive_of, open_archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import withdraw
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.schemas import families
from gramercy.schemas.ledger_history import ChargeState
from tests.support.archives import update_listing
from tests.support.databases import ledger_location
from tests.support.factories import run_command, run_pipeline, run_release, write_request
from tests.support.problems import raises

pytestmark = pytest.mark.slow


@pytest.fixture
def archive_url(home: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the archive; the ledger is on PostgreSQL."""
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", url)
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", str(ledger_location("postgresql", home)))
    return url


def test_release_and_audit_with_remote_stores(
    archive_url: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = write_request(tmp_path)
    run_pipeline(request)
    assert run_release(request) == "v1-r1"
    assert run_release(write_request(tmp_path, request={"version": "v2"})) == "v2-r1"
    withdraw(Context.default(), "toy", "v2-r1", "wrong file")
    update_listing(Context.default(), "toy", "v2-r1")
    audit = make_audit(Context.default())
    assert audit.discrepancies == []
    assert audit.archive == archive_of(Home.default()).location
    assert not (home / "archive").exists()
    assert not (home / "ledger.sqlite").exists()
    assert run_command("verify", capsys=capsys)[0] == 0

    public = public_keys(home / "keys")[0].path
    release = gramercy.open(archive_url, key=public)["toy/v1-r1"]
    assert release.denoised.shape == (3, 3)
    assert len(release.estimates) == 2
    with pytest.warns(gramercy.WithdrawnRelease):
        assert gramercy.open(archive_url)["toy/v2-r1"].withdrawn == "wrong file"


def test_release_signed_by_an_untrusted_key_is_refused(
    archive_url: str, home: Path, tmp_path: Path
) -> None:
    run_release(write_request(tmp_path))
    stranger = open_archive(tmp_path / "strangers", keys=tmp_path / "keys")
    with stranger.staging("toy") as staged:
        (staged / "a").write_text("b")
        stranger.seal(staged)
    with raises(families.SIGNER):
        gramercy.open(archive_url, key=public_keys(tmp_path / "keys")[0].path)["toy/v1-r1"]


def test_sealed_release_is_uploaded_by_the_next_run(
    archive_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is unreachable after sealing: the next run uploads the same bytes."""
    request = write_request(tmp_path)

    def unreachable(*_: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as broken:
        kind = type(archive_of(Home.default()))
        broken.setattr(kind, "commit", unreachable)
        with raises(families.ARCHIVE_DISK):
            run_release(request)
    ledger = Ledger.of(Home.default())
    (sealed,) = ledger.charges("toy")
    assert sealed.state == "sealed"
    assert [each.subject for each in make_audit(Context.default()).discrepancies] == ["toy/v1-r1"]
    assert run_release(request) == "v1-r1"
    (done,) = ledger.charges("toy")
    assert (done.state, done.sha256) == ("published", sealed.sha256)
    update_listing(Context.default(), "toy", "v1-r1")
    assert make_audit(Context.default()).discrepancies == []
    with raises(families.SPENT, release="toy/v1-r1", state="published"):
        ledger.mark("toy", "v1-r1", ChargeState.DRAWN)
