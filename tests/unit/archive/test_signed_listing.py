"""The signed listing, and archives over HTTP, in a folder and on S3, which it makes alike."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import time
import tracemalloc
import uuid
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import gramercy
from gramercy.archive.listing.contents import Contents
from gramercy.archive.listing.signed_listing import read_root, write_root
from gramercy.archive.seal.bundle import SUMS, file_digest, seal
from gramercy.archive.seal.signing import LISTING, create_signing_key, sign, steward_key
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import LISTING_FILE, part_name
from gramercy.archive.store.opening import archive_of, open_archive
from gramercy.common.home import Home
from gramercy.estimators.ridge import Ridge
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_estimate, withdraw
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.errors import BundleError, GramercyError
from gramercy.schemas.listing import ListingEntry
from tests.support.archives import objects_at, unknown_files, update_listing
from tests.support.factories import (
    MECHANISM,
    edit_json,
    home_at,
    run_command,
    run_json,
    run_pipeline,
    run_release,
    write_request,
)
from tests.support.problems import raises
from tests.support.servers import serve

LITTLE = MECHANISM | {"epsilon": 0.5}


@pytest.fixture(scope="module")
def published_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two releases, one of which is withdrawn, an estimate and a report; listed."""
    folder = tmp_path_factory.mktemp("listed")
    with home_at(folder / "home") as home:
        run_pipeline(write_request(folder, request={"mechanism": LITTLE}))
        run_release(write_request(folder, request={"version": "v2", "mechanism": LITTLE}))
        withdraw(Context.default(), "toy", "v2-r1", "wrong bounds")
        assert write_site(Context.default()) == 2
    return home


@pytest.fixture
def home_copy(published_home: Path, home: Path) -> Path:
    """A copy of that home which a test may change, and which is in use."""
    shutil.copytree(published_home, home)
    return home


@pytest.fixture
def address(home_copy: Path) -> Iterator[str]:
    """The HTTP address of the archive of the copy."""
    with serve(home_copy) as url:
        yield f"{url}/archive"


def public_key(home: Path) -> Path:
    return next((home / "keys").glob("*.pub"))


def uploaded(archive: Path, bucket: str) -> str:
    """The URL of a copy of an archive on S3."""
    url = f"{bucket}/{uuid.uuid4().hex}"
    for path in archive.rglob("*"):
        if path.is_file():
            objects_at(url).upload(path.relative_to(archive).as_posix(), path)
    return url


def own(entry: ListingEntry) -> dict[str, str]:
    """The facts of an estimate that say of which release it is."""
    return {"release": entry.facts.release, "release_sha256": entry.sha256}


def sign_root(home: Path, change: object = None, key: Path | None = None) -> None:
    """Write the root of the listing again, with other content or signed by another key."""
    stated = json.dumps(change).encode() + b"\n"
    line = sign(steward_key(key or home / "keys"), stated, LISTING)
    (home / "archive" / LISTING_FILE).write_bytes(stated + line)


@pytest.mark.slow
def test_folder_http_and_s3_give_the_same_catalogue(home_copy: Path, address: str, s3: str) -> None:
    key = public_key(home_copy)
    places = [str(home_copy / "archive"), address, uploaded(home_copy / "archive", s3)]
    local, *others = (gramercy.open(place, key=key) for place in places)
    assert list(local) == ["toy/v1-r1", "toy/v2-r1"]
    release = local["toy/v1-r1"]
    assert len(release.estimates) > 0
    for other in others:
        assert list(other) == list(local)
        assert other.datasets == local.datasets == ["toy"]
        pd.testing.assert_frame_equal(other.search(), local.search())
        pd.testing.assert_frame_equal(other.history("toy"), local.history("toy"))
        assert other.search()["withdrawn"].fillna("").tolist() == ["", "wrong bounds"]
        assert len(other.search("c1 gaussian")) == 2
        assert len(other.search("nothing of this kind")) == 0
        assert other.latest("toy").id == "toy/v1-r1"
        copy = other["toy/v1-r1"]
        pd.testing.assert_frame_equal(copy.second_moment, release.second_moment)
        assert copy.estimates.keys() == release.estimates.keys()
        assert copy.report.read_bytes() == release.report.read_bytes()
        with pytest.warns(gramercy.WithdrawnRelease):
            assert other["toy/v2-r1"].withdrawn == "wrong bounds"
        with raises(families.UNKNOWN_RELEASE, release="toy/v3-r1"):
            other["toy/v3-r1"]


@pytest.mark.slow
def test_commands_read_an_archive_over_http(
    address: str, home_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = run_json("list", capsys=capsys)
    there = run_json("list", "--archive", address, "--key", public_key(home_copy), capsys=capsys)
    assert [each | {"path": ""} for each in there] == [each | {"path": ""} for each in here]
    assert there[0]["path"] == f"{address}/toy/v1-r1/release"
    code, out, err = run_command("verify", "toy/v1-r1", "--archive", address, capsys=capsys)
    assert code == 0, err
    assert "signed listing" in out


@pytest.mark.slow
def test_damage_is_named_by_its_url(address: str, home_copy: Path) -> None:
    path = home_copy / "archive/toy/v1-r1/release/CARD.md"
    path.chmod(0o644)
    path.write_text("changed")
    with pytest.raises(BundleError) as refused:
        gramercy.open(address)["toy/v1-r1"]
    assert refused.value.facts["path"] == f"{address}/toy/v1-r1/release/CARD.md"


def test_archive_over_http_is_read_only(address: str) -> None:
    archive = open_archive(address)
    with raises(families.STORE, url=address), archive.staging("toy"):
        pass
    with raises(families.STORE):
        archive.write_file("index.html", b"")
    assert unknown_files(archive) == []
    anchor = archive.anchor()
    assert anchor is not None
    assert anchor == Context.default().ledger.head()


def test_wrong_addresses_are_errors_with_suggestions(address: str, tmp_path: Path) -> None:
    base = address.removesuffix("/archive")
    for near in (base, f"{address}/toy"):
        with raises(families.NOT_AN_ARCHIVE, address=near, similar=(address,)):
            gramercy.open(near)
    with raises(families.NOT_AN_ARCHIVE, address=f"{base}/archiv", similar=(address,)):
        gramercy.open(f"{base}/archiv")
    with raises(families.NOT_AN_ARCHIVE, url=f"{base}/a/b/c"):
        gramercy.open(f"{base}/a/b/c")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with raises(families.STORE, reason="Connection refused"):
        gramercy.open(f"http://127.0.0.1:{port}/archive")
    with raises(families.STORE, reason="the host is not known"):
        gramercy.open("http://archive.invalid/archive")
    with raises(families.NOT_AN_ARCHIVE, url="http://127.0.0.1/archive"):
        gramercy.open("http://127.0.0.1/archive?token=SECRET")
    with raises(families.NOT_AN_ARCHIVE, url="http://127.0.0.1/archive"):
        gramercy.open("http://user:SECRET@127.0.0.1/archive")


def test_wrong_folders_are_errors_with_suggestions(home_copy: Path, tmp_path: Path) -> None:
    archive = home_copy / "archive"
    for near in (home_copy, archive / "toy", home_copy / "archives"):
        with raises(families.NOT_AN_ARCHIVE, address=str(near)) as refused:
            gramercy.open(near)
        assert str(archive) in refused.value.facts["similar"]
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "letter.txt").write_text("")
    with raises(families.NOT_AN_ARCHIVE):
        gramercy.open(tmp_path / "documents" / "letter.txt" / "nothing")
    (tmp_path / "empty").mkdir()
    assert list(gramercy.open(tmp_path / "empty")) == []


@pytest.mark.slow
def test_wrong_urls_of_stores_are_errors_with_suggestions(home_copy: Path, s3: str) -> None:
    url = uploaded(home_copy / "archive", s3)
    assert list(gramercy.open(url)) == ["toy/v1-r1", "toy/v2-r1"]
    for near in (f"{url[:-1]}", f"{url}/toy"):
        with raises(families.NOT_AN_ARCHIVE, address=near) as refused:
            gramercy.open(near)
        assert url in refused.value.facts["similar"]
    with raises(families.STORE):
        gramercy.open("s3://no-such-bucket-here/archive")
    with raises(families.NOT_AN_ARCHIVE):
        gramercy.open(f"{s3}/a/b/c")


@pytest.mark.slow
def test_publishing_lists_what_is_new(home_copy: Path, tmp_path: Path) -> None:
    archive = archive_of(Home.default())
    before = read_root(archive)
    (old,) = before.root.datasets["toy"].parts
    Context.default().ledger.move("a copy for this test")
    run_release(write_request(tmp_path, request={"version": "v3", "mechanism": LITTLE}))
    assert Contents(archive).entry("toy", "v3-r1") is None  # a crash before it was listed
    assert ("toy", "v3-r1") in Contents(archive).names()
    made = make_estimate(Context.default(), "toy", "v3-r1", Ridge()).manifest.estimate
    update_listing(Context.default(), "toy", "v3-r1")
    entry = Contents(archive).entry("toy", "v3-r1")
    assert entry.estimates.keys() == {made}
    after = read_root(archive)
    assert after.root.ledger == Context.default().ledger.head()
    listing = after.root.datasets["toy"]
    assert listing.superseded == (old,)
    assert (archive.root / part_name("toy", old)).exists()  # for readers of the root before
    # An estimate of another digest, as newer software would make it, replaces the listed one.
    place = archive.estimate("toy", "v3-r1", made)
    shutil.rmtree(place)
    shutil.copytree(next((archive.root / "toy/v1-r1/estimates").iterdir()), place)
    edit_json(place / "datapackage.json", lambda facts: facts["dp"].update(own(entry)))
    seal(place)
    update_listing(Context.default(), "toy", "v3-r1")
    changed = Contents(archive).entry("toy", "v3-r1")
    assert changed.estimates == {made: file_digest(place / SUMS)}
    withdraw(Context.default(), "toy", "v3-r1", "wrong")
    update_listing(Context.default(), "toy", "v1-r1")
    assert not (archive.root / part_name("toy", old)).exists()
    entry = Contents(archive).entry("toy", "v3-r1")
    assert entry.withdrawn.reason == "wrong"
    assert unknown_files(archive) == []


@pytest.mark.slow
def test_listed_release_that_was_replaced_or_deleted_is_refused(
    home_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = home_copy / "archive"
    estimate = next((root / "toy/v1-r1/estimates").iterdir())
    shutil.rmtree(estimate)
    with raises(families.LISTING, path=str(estimate)):
        _ = gramercy.open(root)["toy/v1-r1"].estimates
    shutil.rmtree(root / "toy/v2-r1/withdrawn")
    with pytest.warns(gramercy.WithdrawnRelease):  # the reason is lost
        opened = gramercy.open(root)["toy/v2-r1"]
    with raises(families.LISTING):
        _ = opened.withdrawn
    shutil.rmtree(root / "toy/v2-r1/release")
    with raises(families.LISTING):
        gramercy.open(root)["toy/v2-r1"]
    # Also in a copy, where there is no ledger; and writing the listing again does not forget it.
    write_site(Context.default())
    errors = [each.get("error", "") for each in run_json("list", capsys=capsys)]
    assert [families.LISTING.code in each for each in errors] == [False, True]
    code, out, _ = run_command("verify", "--archive", root, capsys=capsys)
    assert code == 2
    assert families.SEAL.code in out


@pytest.mark.slow
def test_replaced_release_is_refused_by_its_digest(home_copy: Path, tmp_path: Path) -> None:
    """The same key has signed another release of the same id."""
    other = tmp_path / "other"
    with home_at(other):
        shutil.copytree(home_copy / "keys", other / "keys")
        (tmp_path / "again").mkdir()
        run_release(write_request(tmp_path / "again", request={"mechanism": LITTLE}))
    place = home_copy / "archive/toy/v1-r1/release"
    shutil.rmtree(place)
    shutil.copytree(other / "archive/toy/v1-r1/release", place)
    with raises(families.LISTING, path=str(place)):
        gramercy.open(home_copy / "archive")["toy/v1-r1"]
    with serve(home_copy) as url, raises(families.LISTING):
        gramercy.open(f"{url}/archive")["toy/v1-r1"]


def test_listing_of_an_untrusted_key_is_not_used(
    home_copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = public_key(home_copy)
    archive = open_archive(home_copy / "archive", keys=tmp_path / "stranger")
    signed = read_root(archive)
    write_root(archive, signed.root.model_copy(update={"datasets": {}}))
    # In a folder, the releases themselves are read.
    catalogue = gramercy.open(home_copy / "archive", key=key)
    assert len(catalogue.search()) == 2
    assert catalogue["toy/v1-r1"].id == "toy/v1-r1"
    code, _, err = run_command("list", capsys=capsys)
    assert code == 0
    assert "GRM-818" in err
    with serve(home_copy) as url:
        with raises(families.SIGNER):
            list(gramercy.open(f"{url}/archive", key=key))
        assert list(gramercy.open(f"{url}/archive")) == []
    # The steward's next listing replaces it.
    update_listing(Context.default(), "toy", "v1-r1")
    signed = read_root(archive_of(Home.default()))
    assert [*signed.root.datasets] == ["toy"]


def test_listing_survives_a_new_signing_key(home_copy: Path) -> None:
    create_signing_key(home_copy / "keys")
    archive = archive_of(Home.default())
    before = Contents(archive).entries()
    update_listing(Context.default(), "toy", "v1-r1")
    assert Contents(archive).entries() == before


@pytest.mark.parametrize("damage", ["root", "signature", "part", "no part"])
def test_damaged_listing_is_refused_and_made_again(
    home_copy: Path, address: str, damage: str
) -> None:
    root = home_copy / "archive" / LISTING_FILE
    (part,) = (home_copy / "archive/toy").glob("listing-*.json")
    content = root.read_bytes()
    expected = families.LISTING
    if damage == "root":
        root.write_bytes(content.replace(b'"releases":2', b'"releases":3'))
    elif damage == "signature":
        root.write_bytes(content.partition(b"\n")[0])
    elif damage == "part":
        part.write_bytes(part.read_bytes().replace(b"wrong bounds", b"right bounds"))
    else:
        part.unlink()
        expected = families.STORE
    with raises(expected):
        list(gramercy.open(address))
    assert len(gramercy.open(home_copy / "archive").search()) == 2
    update_listing(Context.default(), "toy", "v1-r1")
    assert list(gramercy.open(address)) == ["toy/v1-r1", "toy/v2-r1"]
    assert gramercy.open(address).search()["withdrawn"].fillna("").tolist() == ["", "wrong bounds"]


def test_reader_of_an_older_root_reads_the_newer_one(
    home_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts of a root may disappear while it is read."""
    archive = open_archive(home_copy / "archive")
    newest = (archive.root / LISTING_FILE).read_bytes()
    digest = read_root(archive).root.datasets["toy"].parts[0]  # type: ignore[union-attr]
    sign_root(home_copy, json.loads(newest.partition(b"\n")[0].replace(digest.encode(), b"0" * 64)))
    read_file, older = Archive.read_file, (archive.root / LISTING_FILE).read_bytes()
    served = [older, older, newest]
    monkeypatch.setattr(
        Archive,
        "read_file",
        lambda self, name, most: (
            served.pop(0) if name == LISTING_FILE else read_file(self, name, most)
        ),
    )
    assert len(Contents(archive).entries()) == 2
    assert served == []


HOSTILE = {
    "lists": b'{"format":1,"datasets":' + b"[" * 5_000_000,
    "nested": b'{"format":1,"datasets":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "many": b'{"format":1,"datasets":{' + b",".join(b'"%d":0' % k for k in range(150_000)) + b"}}",
    "large": b'{"format":1,"datasets":{},"ledger":"' + b"a" * (1 << 24) + b'"}',
    "number": b'{"format":1,"datasets":{"toy":{"parts":[],"newest":{},"releases":1e400}}}',
    "digits": b'{"format":1,"datasets":{},"ledger":' + b"9" * 1_000_000 + b"}",
    "path": json.dumps(
        {"format": 1, "datasets": {"../../etc": {"parts": ["a" * 64], "releases": 1, "newest": {}}}}
    ).encode(),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_listing_is_refused_cheaply(home_copy: Path, tmp_path: Path, kind: str) -> None:
    stated = HOSTILE[kind] + b"\n"
    line = sign(steward_key(tmp_path / "attacker"), stated, LISTING)
    (home_copy / "archive" / LISTING_FILE).write_bytes(stated + line)
    archive = open_archive(home_copy / "archive")
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(GramercyError):
        read_root(archive)
    seconds, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 30  # with tracing, on a busy machine
    assert peak < 300e6


def test_part_of_another_data_set_is_refused(home_copy: Path, address: str) -> None:
    root = home_copy / "archive"
    stated = json.loads((root / LISTING_FILE).read_bytes().partition(b"\n")[0])
    stated["datasets"]["ward"] = stated["datasets"].pop("toy")
    (part,) = (root / "toy").glob("listing-*.json")
    (root / "ward").mkdir()
    (root / "ward" / part.name).write_bytes(part.read_bytes())
    sign_root(home_copy, stated)
    with raises(families.LISTING):
        list(gramercy.open(address))
    content = part.read_bytes().replace(b'"columns":0', b'"columns":7')
    digest = hashlib.sha256(content).hexdigest()
    (root / part_name("toy", digest)).write_bytes(content)
    stated["datasets"]["toy"] = stated["datasets"].pop("ward") | {"parts": [digest]}
    sign_root(home_copy, stated)
    with raises(families.LISTING):
        list(gramercy.open(address))


def test_file_that_is_larger_than_stated_is_not_read(home_copy: Path, address: str) -> None:
    archive = open_archive(address)
    with raises(families.FILE_TOO_LARGE, most=10):
        archive.read_file(LISTING_FILE, 10)
    with raises(families.FILE_TOO_LARGE, most=10):
        archive.store.read(LISTING_FILE, 10)
    with raises(families.FILE_TOO_LARGE, most=10):
        list(archive.store.chunks(LISTING_FILE, 10))  # type: ignore[attr-defined]
    with raises(families.FILE_TOO_LARGE, most=10):
        open_archive(home_copy / "archive").read_file(LISTING_FILE, 10)


def test_listing_of_many_data_sets_can_be_read(
    home_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers refused the root of a thousand data sets, with ten releases of each."""
    archive = open_archive(home_copy / "archive")
    signed = read_root(archive)
    listing = signed.root.datasets["toy"]
    assert len(listing.newest.releases) == 2
    many = {f"toy-{number:02d}": listing for number in range(20)}
    monkeypatch.setattr("gramercy.archive.listing.signed_listing._MOST_VALUES", 1500)
    write_root(archive, signed.root.model_copy(update={"datasets": many}))
    written = read_root(archive)
    for each in written.root.datasets.values():
        assert each.model_copy(update={"newest": listing.newest}) == listing
        assert [entry.facts.release for entry in each.newest.releases] == ["v2-r1"]


def test_deleted_notice_of_withdrawal_is_found(home_copy: Path) -> None:
    """By `verify` as well, even if the listing, which names the notice, is deleted with it."""
    context = Context.default()
    shutil.rmtree(home_copy / "archive/toy/v2-r1/withdrawn")
    (home_copy / "archive" / LISTING_FILE).unlink()
    with raises(families.STATE):
        verify_release(context.archive, "toy", "v2-r1", context.existing_ledger)


def test_reader_learns_that_a_listing_is_missing(
    home_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the curator's ledger, nothing else shows that a withdrawal was deleted."""

    def unchecked() -> list[str]:
        words = ("verify", "toy/v2-r1", "--archive", home_copy / "archive", "--json")
        code, out, _ = run_command(*words, capsys=capsys)
        (verified,) = json.loads(out)
        assert code == 0
        return [each.split(":")[0] for each in verified["unchecked"]]

    before = unchecked()
    shutil.rmtree(home_copy / "archive/toy/v2-r1/withdrawn")
    (home_copy / "archive" / LISTING_FILE).unlink()
    assert sorted(unchecked()) == sorted([*before, families.NOT_CHECKED.code])
