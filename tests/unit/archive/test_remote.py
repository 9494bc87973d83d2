"""Archives at URLs: bundles are complete or absent, tamper-evident, and the same as in a folder."""

from __future__ import annotations

import gc
import importlib
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import gramercy
from gramercy.api.release import Release
from gramercy.archive.seal.bundle import SIGNATURE, check
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.object_store import UrlStore
from gramercy.archive.store.opening import archive_of, open_archive
from gramercy.common.home import Home
from gramercy.estimators.ridge import Ridge
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_estimate
from gramercy.schemas import families
from gramercy.schemas.errors import ArchiveError, BundleError
from tests.support.archives import (
    CrashingStore,
    SimulatedCrash,
    archive_at,
    commit_copy,
    objects_at,
    publish_and_die,
    publish_bundle,
    seal_bundle,
)
from tests.support.factories import at_scale
from tests.support.problems import raises
from tests.support.processes import processes

pytestmark = pytest.mark.slow


def public_key(home: Path) -> Path:
    (path,) = (home / "keys").glob("*.pub")
    return path


def copy_all(archive: Archive, home: Path) -> None:
    """Commit all bundles of a home's archive to another archive."""
    root = home / "archive/toy/v1-r1"
    for bundle in (root / "release", *root.glob("estimates/*"), *root.glob("reports/*")):
        commit_copy(archive, bundle, archive.root / bundle.relative_to(home / "archive"))


def test_bundles_are_listed_and_read_at_any_url(
    url: str, published_home: Path, tmp_path: Path
) -> None:
    archive, source = archive_at(url, tmp_path), open_archive(published_home / "archive")
    assert archive.releases() == []
    copy_all(archive, published_home)
    assert archive.releases() == [("toy", "v1-r1")]
    assert archive.estimates("toy", "v1-r1") == source.estimates("toy", "v1-r1") != []
    assert archive.reports("toy", "v1-r1") == source.reports("toy", "v1-r1") != []

    catalogue = gramercy.open(url, key=public_key(published_home))
    assert list(catalogue) == ["toy/v1-r1"]
    release, original = catalogue["toy/v1-r1"], Release(source, "toy", "v1-r1")
    assert (release.second_moment == original.second_moment).all(axis=None)
    assert release.estimates.keys() == original.estimates.keys()
    assert release.report.read_bytes() == original.report.read_bytes()
    assert public_key(published_home).stem == release.signed_by
    assert release.withdrawn is None
    assert release.where == f"{url}/toy/v1-r1/release"
    with raises(families.UNKNOWN_RELEASE, archive=url, release="toy/v2-r1"):
        catalogue["toy/v2-r1"]
    # The staging area is empty.
    assert not list((tmp_path / "staging").glob("*"))


def test_concurrent_threads_publish_one_bundle(url: str, tmp_path: Path) -> None:
    for turn in range(3):
        folder = tmp_path / str(turn)
        with ThreadPoolExecutor(4) as pool:
            digests = pool.map(
                publish_bundle,
                [f"{url}/{turn}"] * 4,
                [str(folder)] * 4,
                [f"t{k}" for k in range(4)],
            )
            (digest,) = filter(None, digests)
        archive = archive_at(f"{url}/{turn}", folder)
        assert archive.releases() == [("toy", "v1-r1")]
        assert check(archive.release("toy", "v1-r1")) == digest


@pytest.mark.parametrize("url", ["local", "s3"], indirect=True)
def test_concurrent_processes_publish_one_bundle(url: str, tmp_path: Path) -> None:
    turns = [f"{url}/{turn}" for turn in range(2) for _ in range(2)]
    with processes(2) as pool:
        folders = [str(tmp_path / str(k)) for k in range(len(turns))]
        digests = list(pool.map(publish_bundle, turns, folders, ["one", "two"] * 2))
    for turn in range(2):
        (digest,) = filter(None, digests[2 * turn : 2 * turn + 2])
        archive = archive_at(f"{url}/{turn}", tmp_path)
        assert check(archive.release("toy", "v1-r1")) == digest


def test_readers_never_see_an_incomplete_bundle(url: str, tmp_path: Path) -> None:
    digest = seal_bundle(tmp_path / "staged", "slowly", files=12)
    seen: list[str | None] = []
    done = threading.Event()

    def read() -> None:
        while not seen or seen[-1] is None:
            archive = archive_at(url, tmp_path)
            listed = archive.releases()
            release = archive.release("toy", "v1-r1")
            assert release.exists() or not listed
            seen.append(check(release) if release.exists() else None)
            if done.is_set():
                assert seen[-1] is not None

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        while not seen:
            done.wait(0.01)
        publisher = archive_at(url, tmp_path)
        publisher.commit(tmp_path / "staged", publisher.root / "toy/v1-r1/release")
        for reader in readers:
            reader.result(60)
    assert set(seen) == {None, digest}


def test_interrupted_publish_can_be_finished_at_every_step(tmp_path: Path) -> None:
    """After each step, readers see nothing, and the same bytes can complete the bundle.

    The process is killed on S3 below, and in the acceptance tests.
    """
    url = "memory://interrupted"
    complete = CrashingStore(url + "/complete", tmp_path / "mirror")
    digest = seal_bundle(tmp_path / "staging/toy.dead", "dead")
    shutil.copytree(tmp_path / "staging/toy.dead", tmp_path / "staging/other.dead")
    archive = archive_at(url, tmp_path, objects=complete)
    archive.commit(tmp_path / "staging/other.dead", archive.root / "toy/v1-r1/release")
    steps = len(complete.taken)
    assert steps == 2 + 3 + 4  # claim and signature, 3 files, 4 files read back
    for step in range(1, steps + 1):
        step_url = f"{url}/{step}"
        shutil.copytree(tmp_path / "staging/toy.dead", tmp_path / f"{step}/staging/toy.dead")
        crashing = CrashingStore(step_url, tmp_path / f"mirror-{step}", step)
        interrupted_archive = archive_at(step_url, tmp_path / str(step), objects=crashing)
        place = interrupted_archive.root / "toy/v1-r1/release"
        with pytest.raises(SimulatedCrash):
            interrupted_archive.commit(tmp_path / f"{step}/staging/toy.dead", place)
        if step < steps:
            fresh = archive_at(step_url, tmp_path / str(step))
            assert fresh.releases() == []
            assert not fresh.contains(fresh.root / "toy/v1-r1/release")
            # No other bundle can take its place.
            seal_bundle(tmp_path / f"{step}/other", "other")
            with raises(families.EXISTS, claim=f"{step_url}/toy/v1-r1/release/SHA256SUMS"):
                fresh.commit(tmp_path / f"{step}/other", fresh.root / "toy/v1-r1/release")
        again = archive_at(step_url, tmp_path / str(step))
        assert again.sealed_leftover("toy", "0" * 64) is None
        assert again.sealed_leftover("toyish", digest) is None
        leftover = again.sealed_leftover("toy", digest)
        assert leftover is not None
        again.commit(leftover, again.root / "toy/v1-r1/release")
        assert again.sealed_leftover("toy", digest) is None
        fresh = archive_at(step_url, tmp_path / str(step))
        assert fresh.releases() == [("toy", "v1-r1")]
        assert check(fresh.release("toy", "v1-r1")) == digest


def test_killed_publisher_can_be_finished(s3: str, tmp_path: Path) -> None:
    url = f"{s3}/killed"
    digest = seal_bundle(tmp_path / "staging/toy.dead", "dead")
    staged = str(tmp_path / "staging/toy.dead")
    arguments = (url, str(tmp_path), staged, 3)
    child = get_context("spawn").Process(target=publish_and_die, args=arguments)
    child.start()
    child.join(120)
    assert child.exitcode == 9
    archive = archive_at(url, tmp_path)
    assert archive.releases() == []
    assert len(archive.store.sizes()) == 3
    archive.commit(archive.sealed_leftover("toy", digest), archive.root / "toy/v1-r1/release")
    assert archive_at(url, tmp_path).releases() == [("toy", "v1-r1")]


def test_errors_name_the_tampered_file(published_home: Path, tmp_path: Path) -> None:
    url = "memory://tampered"
    copy_all(archive_at(url, tmp_path), published_home)
    objects, rng = objects_at(url), np.random.default_rng(3)
    names = [name for name in objects.sizes() if name.startswith("toy/")]
    assert len(names) > 15
    for name in names:
        place, _, file = name.rpartition("/")
        before = objects.read(name)
        changed = bytearray(before)
        changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
        for damage in (bytes(changed), before[: len(before) // 2], b"")[: at_scale(1, 3)]:
            objects.write(name, damage)
            fresh = archive_at(url, tmp_path)
            with pytest.raises(BundleError) as caught:
                fresh.contains(fresh.root / place)
            assert f"{url}/{place}/" in str(caught.value)
            assert file in str(caught.value)
            assert str(tmp_path) not in str(caught.value)
        objects.remove(name)
        fresh = archive_at(url, tmp_path)
        if file == SIGNATURE:  # a bundle without a signature is not committed
            assert not fresh.contains(fresh.root / place)
        else:
            with raises(families.SEAL, path=f"{url}/{name}"):
                fresh.contains(fresh.root / place)
        objects.write(name, before)
        fresh = archive_at(url, tmp_path)
        assert fresh.contains(fresh.root / place)
    for added in ("extra.csv", "a/b.csv", "..", "x\\y"):
        objects.write(f"toy/v1-r1/release/{added}", b"x")
        with raises(families.SEAL, url=f"{url}/toy/v1-r1/release/{added}"):
            gramercy.open(url)["toy/v1-r1"] if added == "extra.csv" else archive_at(
                url, tmp_path
            ).release("toy", "v1-r1")
        objects.remove(f"toy/v1-r1/release/{added}")


@pytest.mark.parametrize("url", ["memory", "s3"], indirect=True)
def test_creation_is_exclusive(url: str) -> None:
    objects = objects_at(url)
    for turn in range(4):
        with ThreadPoolExecutor(8) as pool:
            created = list(
                pool.map(lambda k, t=turn: objects.create(f"claim{t}", b"%d" % k), range(8))
            )
        assert created.count(True) == 1
        assert objects.read(f"claim{turn}") == b"%d" % created.index(True)
        assert objects.ensure(f"claim{turn}", b"%d" % created.index(True))
        assert not objects.ensure(f"claim{turn}", b"another")


def test_creation_is_exclusive_between_processes(s3: str) -> None:
    url = f"{s3}/exclusive"
    with processes(2) as pool:
        for turn in range(10):
            both = [pool.submit(objects_at(url).create, f"claim{turn}", b"%d" % k) for k in (0, 1)]
            assert sorted(each.result() for each in both) == [False, True]


def test_lost_response_is_not_a_failure(s3: str, tmp_path: Path) -> None:
    """The signature is stored, but the connection fails before the response arrives."""

    class LosesResponse(UrlStore):
        def create(self, name: str, data: bytes) -> bool:
            super().create(name, data)
            raise ArchiveError("lost")

    url = f"{s3}/lossy"
    archive = archive_at(url, tmp_path, objects=LosesResponse(url, tmp_path / "mirror"))
    digest = seal_bundle(tmp_path / "staged", "lossy")
    archive.commit(tmp_path / "staged", archive.root / "toy/v1-r1/release")
    assert check(archive_at(url, tmp_path).release("toy", "v1-r1")) == digest


def test_store_that_alters_data_is_refused(tmp_path: Path) -> None:
    class AlteringStore(UrlStore):
        def upload(self, name: str, source: Path) -> None:
            self.write(name, b"something else")

    url = "memory://forgetful"
    archive = archive_at(url, tmp_path, objects=AlteringStore(url, tmp_path / "mirror"))
    seal_bundle(tmp_path / "staged", "kept")
    with raises(families.STORE, url=f"{url}/toy/v1-r1/release/part0.csv"):
        archive.commit(tmp_path / "staged", archive.root / "toy/v1-r1/release")
    assert archive_at(url, tmp_path).releases() == []
    archive = archive_at(url, tmp_path)
    archive.store.write("toy/v1-r1/release/extra.csv", b"x")
    with raises(families.STORE, url=f"{url}/toy/v1-r1/release/extra.csv"):
        archive.commit(tmp_path / "staged", archive.root / "toy/v1-r1/release")


def test_home_with_archive_at_a_url(
    published_home: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "memory://estimated"
    shutil.copytree(published_home, home)
    shutil.rmtree(home / "archive")
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", url)
    archive = archive_of(Home.default())
    assert archive.trusted
    source = open_archive(published_home / "archive")
    commit_copy(archive, source.release("toy", "v1-r1"), archive.release("toy", "v1-r1"))
    done = make_estimate(Context.default(), "toy", "v1-r1", Ridge()).manifest.estimate
    again = make_estimate(Context.default(), "toy", "v1-r1", Ridge())
    assert again.manifest.estimate == done
    assert archive_at(url, tmp_path).estimates("toy", "v1-r1") == [done]
    assert list(gramercy.open(url, key=public_key(home))["toy/v1-r1"].estimates) == [done]
    assert (home / "staging").stat().st_mode & 0o777 == 0o700
    assert not list((home / "staging").iterdir())
    assert not (home / "archive").exists()


def test_mirrors_are_private_and_removed(s3: str, tmp_path: Path) -> None:
    code = (
        "from gramercy.archive.store.opening import open_archive as o; "
        f"a = o('{s3}/m'); a.releases(); "
        f"assert o('{s3}/m').root == a.root != o('{s3}/n').root; "
        "assert a.root.stat().st_mode & 0o777 == 0o700; "
        # A fork has its own mirror, and does not remove that of its parent.
        "import os, sys; pid = os.fork(); print(a.root, flush=True) if pid else None; "
        f"b = a if pid else o('{s3}/m'); assert b.releases() == []; "
        "assert pid or b.root != a.root; "
        "assert not pid or os.waitpid(pid, 0)[1] == 0; assert a.root.exists()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).exists()


def test_paths_of_a_url_stay_until_the_process_ends(published_home: Path, tmp_path: Path) -> None:
    url = "memory://lasting"
    copy_all(archive_at(url, tmp_path), published_home)
    release = gramercy.open(url)["toy/v1-r1"]
    path, report = release.path, release.report
    shown = release.shown(report)
    del release
    gc.collect()
    again = gramercy.open(url)["toy/v1-r1"]
    assert (again.path, again.report) == (path, report)
    assert report.is_file()
    assert path.is_dir()
    assert shown == f"{url}/toy/v1-r1/reports/{report.parent.name}/report.html"


def test_folder_archive_loads_no_driver(published_home: Path) -> None:
    """Drivers that only some archives need do not slow down the import."""
    code = (
        "import sys, gramercy.api.catalogue; "
        "light = {'fsspec', 'cryptography'} - sys.modules.keys(); "
        f"release = gramercy.open({str(published_home / 'archive')!r})['toy/v1-r1']; "
        "print(sorted(light), 'fsspec' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['cryptography', 'fsspec'] False"


def test_file_urls_open_folders(tmp_path: Path) -> None:
    for where in (tmp_path, str(tmp_path), tmp_path.as_uri(), f"file://localhost{tmp_path}"):
        assert open_archive(where) == open_archive(tmp_path)
    (tmp_path / "with space").mkdir()
    assert open_archive((tmp_path / "with space").as_uri()).root == tmp_path / "with space"
    with raises(families.NOT_AN_ARCHIVE, url="file://elsewhere/archive"):
        open_archive("file://elsewhere/archive")


def test_unusable_archive_url_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with raises(families.DRIVER, url="nosuch://user/a"):
        gramercy.open("nosuch://me:SECRET@user/a?token=SECRET")
    with raises(families.NOT_AN_ARCHIVE):
        gramercy.open("simplecache::s3://archives")
    # As if the extra were not installed.
    drivers = importlib.import_module("fsspec.registry")._registry
    monkeypatch.delitem(drivers, "s3", raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with raises(families.DRIVER):
        gramercy.open("s3://archives/without-driver")


def test_missing_bucket_or_credentials_are_archive_errors(
    s3: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for call in (
        lambda: gramercy.open("s3://no-such-bucket/a"),
        lambda: open_archive("s3://no-such-bucket/a").releases(),
        lambda: open_archive("s3://no-such-bucket/a").anchor(),
        lambda: open_archive("s3://no-such-bucket/a").release("toy", "v1-r1"),
        lambda: open_archive("s3://no-such-bucket/a").staging("toy").__enter__(),
    ):
        with raises(families.STORE) as raised:
            call()
        assert raised.value.facts["url"].startswith("s3://no-such-bucket/a")
    assert open_archive("s3://archives").anchor() is None  # there is the bucket, without a ledger
    with raises(families.STORE):
        open_archive("s3://no-such-bucket").anchor()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    with raises(families.STORE, reason="NoCredentialsError"):
        gramercy.open("s3://archives/none")


def test_unreachable_store_is_an_archive_error(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    before = time.monotonic()
    with raises(families.STORE, action="read") as raised:
        gramercy.open("s3://archives/silent")
    assert "Connection" in raised.value.facts["reason"]
    assert raised.value.facts["url"].startswith("s3://archives/silent")
    assert time.monotonic() - before < 60
    assert "SECRET" not in str(raised.value)


def test_credentials_are_never_shown(tmp_path: Path) -> None:
    for url, displayed in {
        "s3://AKIA:se/cr@et@bucket/a": "s3://bucket/a",
        "sftp://user@host/a/": "sftp://host/a",
        "https://host/a?X-Signature=secret": "https://host/a",
        "s3://bucket/a@b": "s3://bucket/a@b",
        "memory://a": "memory://a",
    }.items():
        assert objects_at(url).location() == displayed
        assert "se" not in repr(objects_at(url))
    archive = archive_at("memory://me:SECRET@here/a", tmp_path)
    shown = repr(archive) + archive.location + archive.display_path(archive.root / "x")
    assert "SECRET" not in shown


def test_archive_location_comes_from_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archive_of(Home.default()) == open_archive(home / "archive", keys=home / "keys")
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", "")
    assert Home.default().archive_url is None
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", "memory://here")
    assert archive_of(Home.default()).location == "memory://here"
