"""Anchors of the ledger and notices of withdrawal in an archive."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gramercy
from gramercy.archive.bundles.bundle_kinds import (
    NOTICE,
    read_release,
    read_withdrawal,
    write_withdrawal,
)
from gramercy.archive.seal.anchors import remove_anchors
from gramercy.archive.seal.bundle import seal
from gramercy.archive.seal.signing import ANCHOR, BUNDLE, signer, signing_public_key
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.object_store import is_url
from gramercy.archive.store.opening import archive_of, open_archive
from gramercy.archive.store.storage import FolderStore
from gramercy.common.home import Home
from gramercy.schemas import families
from gramercy.schemas.errors import ContractError
from gramercy.schemas.ledger_history import Anchor
from gramercy.schemas.manifest import FORMAT, WithdrawalManifest
from gramercy.schemas.model import parse
from tests.support.archives import archive_at, objects_at
from tests.support.factories import edit_json, run_release, write_request
from tests.support.problems import raises

LEDGER = "0123456789abcdef" * 2


def anchor(seq: int, hash_: str = "ab", ledger: str = LEDGER) -> Anchor:
    return Anchor(ledger=ledger, seq=seq, hash=hash_ * 32)


def files(url: str) -> Any:
    return objects_at(url) if is_url(url) else FolderStore(Path(url))


def name(seq: int, hash_: str = "ab", ledger: str = LEDGER) -> str:
    return f".ledger/{ledger}/{seq // 100:010d}/{seq:012d}-{hash_ * 32}.json"


@pytest.mark.slow
def test_newest_anchor_is_returned(url: str, tmp_path: Path) -> None:
    archive = archive_at(url, tmp_path)
    assert archive.anchor() is None
    archive.write_anchor(anchor(1))
    archive.write_anchor(anchor(2, "cd"))
    archive.write_anchor(anchor(2, "cd"))
    assert archive_at(url, tmp_path).anchor() == anchor(2, "cd")
    assert files(url).names(".ledger") == [name(1), name(2, "cd")]
    text = f'{{"hash":"{"cd" * 32}","ledger":"{LEDGER}","seq":2}}'
    stated, line, end = files(url).read(name(2, "cd")).split(b"\n")
    assert (stated, end) == (text.encode(), b"")
    public = signing_public_key(Home.default().keys)
    assert signer(line + b"\n", stated, ANCHOR) == public
    assert signer(line + b"\n", stated, BUNDLE) is None  # a signature has one purpose
    # An older anchor that is written late is ignored.
    archive.write_anchor(anchor(1))
    assert archive.anchor() == anchor(2, "cd")
    archive.write_anchor(anchor(10**12 - 1))
    assert [*archive.anchors()] == [name(1), name(2, "cd"), name(10**12 - 1)]
    remove_anchors(files(url), archive.anchors(), 10**12 - 1)
    assert files(url).names(".ledger") == [name(10**12 - 1)]
    assert archive.releases() == []


def test_invalid_anchors_are_refused_or_ignored(url: str, tmp_path: Path) -> None:
    archive, store = archive_at(url, tmp_path), files(url)
    archive.write_anchor(anchor(7))
    text = store.read(name(7))
    stated, line, _ = text.split(b"\n")
    for damaged in (text.replace(b":7", b":8"), stated[:-1] + b"\n" + line, b""):
        store.write(name(7), damaged)
        with raises(families.ANCHOR, path=f"{url}/{name(7)}"):
            archive.anchor()
    for damaged in (
        stated,
        stated + b"\n",
        text + b"\n",
        text[:-1],
        text.replace(line[-9:], b"0" * 9),
    ):
        store.write(name(7), damaged)
        with raises(families.ANCHOR, path=f"{url}/{name(7)}"):
            archive.anchor()
    store.write(name(7), text)
    for stray in (
        f".ledger/{LEDGER}/notes.txt",
        f".ledger/{LEDGER}/0000000000/7-{'ab' * 32}.json",
        ".ledger/notes.txt",
        f".ledger/{LEDGER}/x",
        name(0),
        name(7) + "x",
    ):
        store.write(stray, text)
        with raises(families.ANCHOR, path=f"{url}/{stray}"):
            archive.anchor()
        store.remove(stray)
    store.write(f".ledger/{LEDGER}/.being-written", b"{")
    assert archive.anchor() == anchor(7)


def test_anchor_of_an_unknown_key_is_refused(tmp_path: Path) -> None:
    mine = replace(archive_at(str(tmp_path), tmp_path), trusted=frozenset({"ab" * 32}))
    mine.write_anchor(anchor(7))
    with raises(families.SIGNER):
        mine.anchor()


def test_forked_ledger_is_refused(url: str, tmp_path: Path) -> None:
    archive, store = archive_at(url, tmp_path), files(url)
    archive.write_anchor(anchor(7))
    archive.write_anchor(anchor(7, "cd"))
    with raises(families.ANCHOR) as raised:
        archive.anchor()
    assert set(raised.value.facts.values()) == {f"{url}/{name(7)}", f"{url}/{name(7, 'cd')}"}
    archive.write_anchor(anchor(8))
    assert archive.anchor() == anchor(8)
    other = "f" * 32
    archive.write_anchor(anchor(3, "ef", other))
    with raises(families.ANCHOR) as raised:
        archive.anchor()
    paths = {f"{url}/{name(8)}", f"{url}/{name(3, 'ef', other)}"}
    assert set(raised.value.facts.values()) == paths
    assert len(store.names(".ledger")) == 4


def test_only_the_newest_parts_are_listed(url: str, tmp_path: Path) -> None:
    archive, store = archive_at(url, tmp_path), files(url)
    archive.write_anchor(anchor(7))
    old = name(7).replace("/0000000000/", "/")  # as earlier versions have written it
    store.write(old, store.read(name(7)))
    store.remove(name(7))
    assert archive.anchors() == {old: anchor(7)}
    for seq in (99, 100, 250, 301):
        archive.write_anchor(anchor(seq))
    assert [each.seq for each in archive.anchors().values()] == [7, 250, 301]


@pytest.mark.slow
def test_concurrent_anchors_keep_the_newest(url: str, tmp_path: Path) -> None:
    archive = archive_at(url, tmp_path)
    archive.write_anchor(anchor(1))
    with ThreadPoolExecutor(6) as pool:
        writing = [pool.submit(archive.write_anchor, anchor(k)) for k in range(2, 20)]
        seen = []
        while not all(write.done() for write in writing):
            seen.append(archive.anchor())
        for write in writing:
            write.result()
    assert all(seen)
    assert archive.anchor() == anchor(19)


@pytest.mark.slow
def test_unwritable_anchor_is_an_archive_error(tmp_path: Path, s3: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive/.ledger").write_text("")
    for root in (tmp_path / "file", tmp_path / "archive"):
        with raises(families.ARCHIVE_DISK):
            open_archive(root).write_anchor(anchor(1))
    with raises(families.ARCHIVE_DISK):
        open_archive(tmp_path / "archive").anchor()

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(30, "Read-only file system")

    with pytest.MonkeyPatch.context() as disk:
        disk.setattr("gramercy.common.disk.os.open", refused)
        with raises(families.ARCHIVE_DISK):
            open_archive(tmp_path / "another").write_anchor(anchor(1))
    with raises(families.STORE, action="write") as raised:
        archive_at("s3://no-such-bucket/a", tmp_path).write_anchor(anchor(1))
    assert raised.value.facts["url"].startswith("s3://no-such-bucket/a/.ledger/")


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
    with raises(families.CONTRACT_FILE) as raised:
        parse(Anchor, anchor(1).model_dump() | facts, "anchor", ContractError)
    assert next(iter(facts)) in str(raised.value)


def notice_of(archive: Archive, **changes: Any) -> WithdrawalManifest:
    bundle = read_release(archive.release("toy", "v1-r1"))
    facts = {
        "format": FORMAT,
        "kind": "withdrawal",
        "dataset": bundle.manifest.dataset.model_dump(),
        "release": "v1-r1",
        "release_sha256": bundle.sha256,
        "reason": "Bounds of 'c0' were in centimetres; größer als 5.",
        "date": "2031-01-31",
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
    with pytest.warns(gramercy.WithdrawnRelease):
        release = gramercy.open(url, key=key)["toy/v1-r1"]
    assert release.withdrawn == "Bounds of 'c0' were in centimetres; größer als 5."
    assert repr(release).endswith(f"; withdrawn: {release.withdrawn}>")
    assert len(release.second_moment) == 3
    fresh = archive_at(url, tmp_path)
    page = (fresh.withdrawal("toy", "v1-r1") / NOTICE).read_text(encoding="utf-8")
    curator = release.manifest.dataset.curator
    assert f"{curator} has withdrawn the release `toy/v1-r1` on 2031-01-31." in page
    assert f"> {release.withdrawn}" in page
    assert fresh.releases() == [("toy", "v1-r1")]


@pytest.mark.slow
def test_damaged_or_foreign_notices_are_refused(tmp_path: Path, home: Path) -> None:
    run_release(write_request(tmp_path))
    archive = open_archive(home / "archive")
    place = withdraw(archive)
    read_withdrawal(place)

    def open_release(**options: Any) -> Any:
        with pytest.warns(gramercy.WithdrawnRelease):
            return gramercy.open(archive.root, **options)["toy/v1-r1"]

    contents = {path: path.read_bytes() for path in place.iterdir()}
    for path, data in contents.items():
        path.chmod(0o644)
        for damage in (data[:-1], b"", data.replace(b"2031", b"2032") + b" "):
            path.write_bytes(damage)
            with pytest.raises(gramercy.BundleError) as caught:
                _ = open_release().withdrawn
            assert str(path) in caught.value.facts.values()
            assert "cannot be read" in repr(open_release())
        path.write_bytes(data)
    # A notice with another text or description, sealed again.
    (place / NOTICE).write_text("Never mind.")
    seal(place)
    with raises(families.DESCRIPTION, path=str(place / NOTICE)):
        _ = open_release().withdrawn
    for path, data in contents.items():
        path.chmod(0o644)
        path.write_bytes(data)
    edit_json(place / "datapackage.json", lambda facts: facts.update(title="Another"))
    seal(place)
    with raises(families.DESCRIPTION):
        _ = open_release().withdrawn
    # A notice of another release, and one signed with an untrusted key.
    for path in place.iterdir():
        path.unlink()
    write_withdrawal(place, notice_of(archive, release_sha256="0" * 64))
    seal(place)
    with raises(families.DESCRIPTION, release="toy/v1-r1"):
        _ = open_release().withdrawn
    for path in place.iterdir():
        path.unlink()
    write_withdrawal(place, notice_of(archive))
    seal(place, tmp_path / "other")
    assert open_release().withdrawn
    with raises(families.SIGNER):
        _ = open_release(key=next((home / "keys").glob("*.pub"))).withdrawn
    assert archive_of(Home.default()).trusted


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *itertools.product(
            ["reason"],
            ["", "   ", "x" * 501, "a\nb", "a\x00b", "a\x1b[2Jb", "a\u2028b", "a\u202eb", "\ud800"],
        ),
        *itertools.product(["date"], ["today", "2031-1-31", "2031-02-30", "20310131", 2031]),
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
        "date": "2031-01-31",
    }
    parse(WithdrawalManifest, facts, "notice", ContractError)
    with raises(families.CONTRACT_FILE) as raised:
        parse(WithdrawalManifest, facts | {key: value}, "notice", ContractError)
    assert [detail.key for detail in raised.value.details] == [key]
