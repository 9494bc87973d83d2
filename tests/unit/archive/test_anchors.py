"""Anchors of the ledger and notices of withdrawal in an archive."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import gramercy
from gramercy.archive.bundle import seal
from gramercy.archive.local import LocalArchive
from gramercy.archive.objects import Objects, is_url
from gramercy.archive.open import archive_of
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import read_release
from gramercy.archive.withdrawal_notice import NOTICE, read_withdrawal, write_withdrawal
from gramercy.common.disk import Files
from gramercy.common.home import Home
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.errors import ArchiveError, BundleError, ContractError
from gramercy.schemas.manifest import FORMAT, WithdrawalManifest
from gramercy.schemas.model import parse
from tests.support.archives import archive_at
from tests.support.factories import edit_json, run_release, write_request

LEDGER = "0123456789abcdef" * 2


def anchor(seq: int, hash_: str = "ab", ledger: str = LEDGER) -> Anchor:
    return Anchor(ledger=ledger, seq=seq, hash=hash_ * 32)


def files(url: str) -> Any:
    return Objects(url) if is_url(url) else Files(Path(url))


def name(seq: int, hash_: str = "ab", ledger: str = LEDGER) -> str:
    return f".ledger/{ledger}/{seq:012d}-{hash_ * 32}.json"


@pytest.mark.slow
def test_newest_anchor_counts(url: str, tmp_path: Path) -> None:
    archive = archive_at(url, tmp_path)
    assert archive.anchor() is None
    archive.write_anchor(anchor(1))
    archive.write_anchor(anchor(2, "cd"))
    archive.write_anchor(anchor(2, "cd"))
    assert archive_at(url, tmp_path).anchor() == anchor(2, "cd")
    assert files(url).names(".ledger") == [name(2, "cd")]
    text = f'{{"hash":"{"cd" * 32}","ledger":"{LEDGER}","seq":2}}'
    assert files(url).read(name(2, "cd")) == text.encode()
    # Whoever is late changes nothing, and is removed in time.
    archive.write_anchor(anchor(1))
    assert archive.anchor() == anchor(2, "cd")
    archive.write_anchor(anchor(10**12 - 1))
    assert files(url).names(".ledger") == [name(10**12 - 1)]
    assert archive.releases() == []


def test_invalid_anchors_are_refused_or_ignored(url: str, tmp_path: Path) -> None:
    archive, store = archive_at(url, tmp_path), files(url)
    archive.write_anchor(anchor(7))
    text = store.read(name(7))
    for other in (text.replace(b"7", b"8"), text + b"\n", text[:-1], b""):
        store.write(name(7), other)
        with pytest.raises(BundleError, match=f"{name(7)}: does not say what its name says"):
            archive.anchor()
    store.write(name(7), text)
    for stray in (
        f".ledger/{LEDGER}/notes.txt",
        f".ledger/{LEDGER}/7-{'ab' * 32}.json",
        ".ledger/notes.txt",
        ".ledger/x/000000000009-" + "ab" * 32 + ".json",
        name(0),
        name(7) + "x",
    ):
        store.write(stray, text)
        with pytest.raises(BundleError, match=f"{url}/{stray}: is no anchor"):
            archive.anchor()
        store.remove(stray)
    store.write(f".ledger/{LEDGER}/.on-its-way", b"{")
    assert archive.anchor() == anchor(7)


def test_forked_ledger_is_refused(url: str, tmp_path: Path) -> None:
    archive, store = archive_at(url, tmp_path), files(url)
    archive.write_anchor(anchor(7))
    archive.write_anchor(anchor(7, "cd"))
    with pytest.raises(BundleError, match="forked") as told:
        archive.anchor()
    assert name(7) in str(told.value)
    assert name(7, "cd") in str(told.value)
    archive.write_anchor(anchor(8))
    assert archive.anchor() == anchor(8)
    other = "f" * 32
    archive.write_anchor(anchor(3, "ef", other))
    with pytest.raises(BundleError, match="two ledgers") as told:
        archive.anchor()
    assert name(8) in str(told.value)
    assert name(3, "ef", other) in str(told.value)
    assert len(store.names(".ledger")) == 2


@pytest.mark.slow
def test_concurrent_anchors_keep_the_newest(url: str, tmp_path: Path) -> None:
    archive = archive_at(url, tmp_path)
    archive.write_anchor(anchor(1))
    with ThreadPoolExecutor(6) as pool:
        writing = [pool.submit(archive.write_anchor, anchor(k)) for k in range(2, 40)]
        seen = []
        while not all(each.done() for each in writing):
            seen.append(archive.anchor())
        for each in writing:
            each.result()
    assert all(seen)
    assert archive.anchor() == anchor(39)


@pytest.mark.slow
def test_unwritable_anchor_is_an_archive_error(tmp_path: Path, s3: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive/.ledger").write_text("")
    for root in (tmp_path / "file", tmp_path / "archive"):
        with pytest.raises(ArchiveError, match="cannot write to the archive"):
            LocalArchive(root).write_anchor(anchor(1))
    with pytest.raises(ArchiveError, match="cannot read the archive"):
        LocalArchive(tmp_path / "archive").anchor()

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(30, "Read-only file system")

    with pytest.MonkeyPatch.context() as disk:
        disk.setattr("gramercy.common.disk.os.open", refused)
        with pytest.raises(ArchiveError, match="cannot write to the archive"):
            LocalArchive(tmp_path / "another").write_anchor(anchor(1))
    with pytest.raises(ArchiveError, match=r"no-such-bucket/a/\.ledger/.*cannot be written"):
        archive_at("s3://no-such-bucket/a", tmp_path).write_anchor(anchor(1))


@pytest.mark.parametrize(
    "facts",
    [
        {"ledger": LEDGER.upper()},
        {"ledger": LEDGER[:-1]},
        {"seq": 0},
        {"seq": 10**12},
        {"seq": "1"},
        {"seq": 1.0},
        {"hash": "ab"},
        {"more": 1},
    ],
)
def test_invalid_anchor_facts_are_refused(facts: dict[str, Any]) -> None:
    with pytest.raises(ContractError, match=next(iter(facts))):
        parse(Anchor, anchor(1).model_dump() | facts, "anchor", ContractError)


def notice_of(archive: Archive, **changes: Any) -> WithdrawalManifest:
    bundle = read_release(archive.release("toy", "v1-r1"))
    facts = {
        "format": FORMAT,
        "kind": "withdrawal",
        "dataset": bundle.manifest.dataset.model_dump(),
        "release": "v1-r1",
        "release_sha256": bundle.sha256,
        "reason": "Bounds of 'c0' were in centimetres; größer als 5.",
        "on": "2031-01-31",
    }
    return parse(WithdrawalManifest, facts | changes, "notice", ContractError)


def withdraw(archive: Archive, **changes: Any) -> Path:
    place = archive.withdrawal("toy", "v1-r1")
    with archive.staging("toy") as staged:
        write_withdrawal(staged, notice_of(archive, **changes))
        archive.seal(staged)
        archive.commit(staged, place)
    return place


@pytest.mark.slow
def test_withdrawal_notice_is_seen_by_readers(url: str, tmp_path: Path, home: Path) -> None:
    run_release(write_request(tmp_path))
    archive = archive_at(url, tmp_path)
    source = home / "archive/toy/v1-r1/release"
    archive.commit(source, archive.root / "toy/v1-r1/release")
    (key,) = (home / "keys").glob("*.pub")
    release = gramercy.open(url, key=key)["toy/v1-r1"]
    assert release.withdrawn is None
    assert "withdrawn" not in repr(release)
    withdraw(archive)
    release = gramercy.open(url, key=key)["toy/v1-r1"]
    assert release.withdrawn == "Bounds of 'c0' were in centimetres; größer als 5."
    assert repr(release).endswith(f"; withdrawn: {release.withdrawn}>")
    assert len(release.second_moment) == 3
    fresh = archive_at(url, tmp_path)
    page = (fresh.withdrawal("toy", "v1-r1") / NOTICE).read_text(encoding="utf-8")
    assert "Nobody has withdrawn the release `toy/v1-r1` on 2031-01-31." in page
    assert f"> {release.withdrawn}" in page
    assert fresh.releases() == [("toy", "v1-r1")]


def test_damaged_or_foreign_notices_are_refused(tmp_path: Path, home: Path) -> None:
    run_release(write_request(tmp_path))
    archive = LocalArchive(home / "archive")
    place = withdraw(archive)
    read_withdrawal(place)

    def opened(**more: Any) -> Any:
        return gramercy.open(archive.root, **more)["toy/v1-r1"]

    whole = {path: path.read_bytes() for path in place.iterdir()}
    for path, data in whole.items():
        path.chmod(0o644)
        for damage in (data[:-1], b"", data.replace(b"2031", b"2032") + b" "):
            path.write_bytes(damage)
            with pytest.raises(BundleError, match=path.name):
                _ = opened().withdrawn
            assert "cannot be read" in repr(opened())
        path.write_bytes(data)
    # Sealed again, with a page that says something else.
    (place / NOTICE).write_text("Never mind.")
    seal(place)
    with pytest.raises(BundleError, match=f"{NOTICE}: does not say"):
        _ = opened().withdrawn
    for path, data in whole.items():
        path.chmod(0o644)
        path.write_bytes(data)
    edit_json(place / "datapackage.json", lambda facts: facts.update(title="Another"))
    seal(place)
    with pytest.raises(BundleError, match="does not follow from its manifest"):
        _ = opened().withdrawn
    # Of another release, or with an untrusted key.
    for path in place.iterdir():
        path.unlink()
    write_withdrawal(place, notice_of(archive, release_sha256="0" * 64))
    seal(place)
    with pytest.raises(BundleError, match="is of another release"):
        _ = opened().withdrawn
    for path in place.iterdir():
        path.unlink()
    write_withdrawal(place, notice_of(archive))
    seal(place, tmp_path / "other")
    assert opened().withdrawn
    with pytest.raises(BundleError, match="none of those that are trusted"):
        _ = opened(key=next((home / "keys").glob("*.pub"))).withdrawn
    assert archive_of(Home.default()).trusted


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *itertools.product(
            ["reason"],
            ["", "   ", "x" * 501, "a\nb", "a\x00b", "a\x1b[2Jb", "a\u2028b", "a\u202eb", "\ud800"],
        ),
        *itertools.product(["on"], ["today", "2031-1-31", "2031-02-30", "20310131", 2031]),
        ("release_sha256", "0"),
        ("kind", "release"),
    ],
)
def test_invalid_notice_facts_are_refused(key: str, value: Any, tmp_path: Path, home: Path) -> None:
    facts = {
        "format": FORMAT,
        "kind": "withdrawal",
        "dataset": {"id": "toy", "title": "T", "curator": "C", "version": "v1", "rows": 4},
        "release": "v1-r1",
        "release_sha256": "0" * 64,
        "reason": "x" * 500,
        "on": "2031-01-31",
    }
    parse(WithdrawalManifest, facts, "notice", ContractError)
    with pytest.raises(ContractError, match=key):
        parse(WithdrawalManifest, facts | {key: value}, "notice", ContractError)
