"""Signatures: made with a private key, and accepted only from trusted keys."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

import gramercy
from gramercy.api.release import Release
from gramercy.archive.bundle import SIGNATURE, SUMS, check, seal, signer
from gramercy.archive.local import LocalArchive
from gramercy.archive.open import archive_of
from gramercy.archive.signature import key_id
from gramercy.archive.signing_keys import known_keys, new_key, signing_key, steward_key
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas.errors import ArchiveError, BundleError, RequestError
from tests.support.archives import seal_bundle
from tests.support.factories import (
    at_scale,
    run_command,
    run_json,
    run_pipeline,
    run_release,
    write_request,
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def public_of_steward(folder: str) -> str:
    return steward_key(Path(folder)).public_key().public_bytes_raw().hex()


def sign_again(place: Path, keys: Path) -> None:
    """Seal a bundle again with another key."""
    seal(place, keys)


def test_first_seal_creates_a_private_key(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []
    opened = os.open

    def noted(path: Any, flags: int, permissions: int = 0o777, **more: Any) -> int:
        if flags & os.O_CREAT:
            asked.append((str(path), permissions))
        return opened(path, flags, permissions, **more)

    monkeypatch.setattr(os, "open", noted)
    before = os.umask(0)
    try:
        seal_bundle(tmp_path / "some", "some")
    finally:
        os.umask(before)
    keys = home / "keys"
    assert mode(keys) == 0o700
    assert mode(keys / "steward.pem") == 0o600
    # From the moment it is there, under whatever name.
    private, public = [permissions for path, permissions in asked if str(keys) in path]
    assert (private, public) == (0o600, 0o644)
    (path,) = keys.glob("*.pub")
    assert sorted(os.listdir(keys)) == sorted(["steward.pem", path.name])

    key = serialization.load_pem_public_key(path.read_bytes())
    raw = key.public_bytes_raw()
    assert path.stem == hashlib.sha256(raw).hexdigest()[:16] == key_id(raw.hex())
    kind, told, signature = (tmp_path / "some" / SIGNATURE).read_text().removesuffix("\n").split()
    assert (kind, told) == ("ed25519", raw.hex())
    sums = (tmp_path / "some" / SUMS).read_bytes()
    key.verify(bytes.fromhex(signature), b"gramercy bundle\n" + sums)
    assert check(tmp_path / "some") == hashlib.sha256(sums).hexdigest()
    assert signer(tmp_path / "some") == signing_key(keys) == raw.hex()
    assert mode(tmp_path / "some" / SIGNATURE) == 0o444


@pytest.mark.slow
def test_concurrent_first_seals_create_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for turn in range(10):
            assert len(set(pool.map(public_of_steward, [str(tmp_path / f"t{turn}")] * 8))) == 1
    with ProcessPoolExecutor(at_scale(2, 4), mp_context=get_context("spawn")) as pool:
        for turn in range(4):
            folder = tmp_path / f"p{turn}"
            made = set(pool.map(public_of_steward, [str(folder)] * 4))
            assert made == {signing_key(folder)}
            assert len(os.listdir(folder)) == 2


def test_missing_public_key_file_is_recreated(tmp_path: Path) -> None:
    first = public_of_steward(str(tmp_path / "keys"))
    (path,) = (tmp_path / "keys").glob("*.pub")
    before = path.read_bytes()
    path.unlink()
    assert public_of_steward(str(tmp_path / "keys")) == first
    assert path.read_bytes() == before


def test_key_rotation_keeps_old_signatures_valid(tmp_path: Path, home: Path) -> None:
    keys, archive = home / "keys", LocalArchive(home / "archive")
    for turn in range(3):
        digest = seal_bundle(tmp_path / "staged", str(turn))
        archive.commit(tmp_path / "staged", archive.release("toy", f"v{turn}-r1"))
        private = (keys / "steward.pem").read_bytes()
        made = new_key(keys)
        assert signing_key(keys) == made.public
        assert mode(keys / "steward.pem") == 0o600
        assert private not in [path.read_bytes() for path in keys.iterdir()]
    assert len(known_keys(keys)) == 4
    assert len(os.listdir(keys)) == 5
    trusting = archive_of(Home.default())
    assert trusting.trusted == {each.public for each in known_keys(keys)}
    for turn in range(3):
        trusting.hold_to_key(archive.release("toy", f"v{turn}-r1"))
    assert check(archive.release("toy", "v2-r1")) == digest


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0o644, 0o640, 0o604, 0o660])
def test_key_readable_by_others_is_refused(wrong: int, tmp_path: Path, home: Path) -> None:
    """Refused before anything is charged, and replaceable on request."""
    seal_bundle(tmp_path / "some", "some")
    path = home / "keys/steward.pem"
    path.chmod(wrong)
    with pytest.raises(ArchiveError, match=rf"mode {wrong:o}.*chmod 600 {path}"):
        run_release(write_request(tmp_path))
    assert Ledger(Home.default().ledger).datasets() == []
    old = set((home / "keys").glob("*.pub"))
    made = new_key(home / "keys")
    assert set((home / "keys").glob("*.pub")) == {*old, made.path}
    assert mode(path) == 0o600
    assert run_release(write_request(tmp_path)) == "v1-r1"


def pem(key: Any, password: bytes | None = None) -> bytes:
    how = serialization.NoEncryption()
    if password:
        how = serialization.BestAvailableEncryption(password)
    private = serialization.PrivateFormat.PKCS8
    return bytes(key.private_bytes(serialization.Encoding.PEM, private, how))


def test_invalid_key_file_is_refused(tmp_path: Path, home: Path) -> None:
    seal_bundle(tmp_path / "some", "some")
    path = home / "keys/steward.pem"
    whole = path.read_bytes()
    for data in (
        b"",
        b"junk",
        whole[:60],
        pem(ec.generate_private_key(ec.SECP256R1())),
        pem(ed25519.Ed25519PrivateKey.generate(), b"password"),
    ):
        path.write_bytes(data)
        with pytest.raises(ArchiveError, match=r"steward\.pem: is no Ed25519 private key") as told:
            steward_key(home / "keys")
        assert told.value.__cause__ is None
        assert len(str(told.value)) < 300
    for named in (path, tmp_path / "none.pub", tmp_path / "some" / SUMS):
        with pytest.raises(RequestError, match=f"{named.name}: is no Ed25519 public key"):
            gramercy.open(str(tmp_path), key=named)
    with pytest.raises(RequestError, match="names no file"):
        gramercy.open(str(tmp_path), key=[])
    (home / "keys/other.pub").write_text("junk")
    with pytest.raises(RequestError, match=r"other\.pub: is no Ed25519 public key"):
        archive_of(Home.default())


def test_unusable_key_folder_is_refused(tmp_path: Path, home: Path) -> None:
    home.mkdir()
    (home / "keys").write_text("a file where the folder should be")
    for call in (steward_key, new_key, signing_key):
        with pytest.raises(ArchiveError, match="cannot be used for keys"):
            call(home / "keys")
    with pytest.raises(ArchiveError, match="cannot be used for keys"):
        run_release(write_request(tmp_path))
    assert Ledger(Home.default().ledger).datasets() == []


@pytest.mark.slow
def test_only_trusted_keys_are_accepted(tmp_path: Path, home: Path) -> None:
    root = run_pipeline(write_request(tmp_path))
    (own,) = (home / "keys").glob("*.pub")
    other = new_key(tmp_path / "other").path
    for key in (None, own, [own], [other, str(own)]):
        release = gramercy.open(home / "archive", key=key)["toy/v1-r1"]
        assert release.signed_by == own.stem
        assert len(release.estimates) == 2
        assert release.report is not None
    with pytest.raises(BundleError, match=rf"{SIGNATURE}: is by the key {own.stem}.*{other.stem}"):
        gramercy.open(home / "archive", key=other)["toy/v1-r1"]

    # An estimate and a report with another key next to the genuine release.
    estimate = min((root / "estimates").iterdir())
    (report,) = (root / "reports").iterdir()
    sign_again(estimate, tmp_path / "other")
    sign_again(report, tmp_path / "other")
    release = gramercy.open(home / "archive", key=own)["toy/v1-r1"]
    with pytest.raises(BundleError, match=f"{estimate}/{SIGNATURE}: is by the key {other.stem}"):
        _ = release.estimates
    assert release.report is None
    assert gramercy.open(home / "archive")["toy/v1-r1"].report is not None
    # And a release with another key, in a home with its own keys.
    sign_again(root / "release", tmp_path / "other")
    assert Release(LocalArchive(home / "archive"), "toy", "v1-r1").signed_by == other.stem
    with pytest.raises(BundleError, match=f"is by the key {other.stem}"):
        Release(archive_of(Home.default()), "toy", "v1-r1")
    shutil.copy(other, home / "keys")
    assert Release(archive_of(Home.default()), "toy", "v1-r1").signed_by == other.stem


def test_invalid_signatures_are_refused(tmp_path: Path) -> None:
    place, another = tmp_path / "some", tmp_path / "another"
    seal_bundle(place, "some")
    seal_bundle(another, "another")
    line = (place / SIGNATURE).read_bytes()
    public, signature = line.decode().split()[1:]
    (place / SIGNATURE).chmod(0o644)
    other = ed25519.Ed25519PrivateKey.generate()
    theirs = other.public_key().public_bytes_raw().hex()
    sums = (place / SUMS).read_bytes()
    for wrong in (
        (another / SIGNATURE).read_bytes(),
        b"",
        line[:-1],
        line + b"\n",
        line + line,
        b" " + line,
        line.upper(),
        line.replace(b" ", b"  "),
        line.replace(b"\n", b"\r\n"),
        f"ed25519 {public} {'0' * 128}\n".encode(),
        f"ed25519 {'0' * 64} {signature}\n".encode(),
        f"ed25519 {public} {other.sign(sums).hex()}\n".encode(),
        # By the key it names, of the list alone: made for another purpose.
        f"ed25519 {theirs} {other.sign(sums).hex()}\n".encode(),
    ):
        (place / SIGNATURE).write_bytes(wrong)
        with pytest.raises(BundleError, match=SIGNATURE):
            check(place)
    (place / SIGNATURE).unlink()
    with pytest.raises(BundleError, match=rf"{SIGNATURE}: is missing.*format 4"):
        check(place)
    (place / SIGNATURE).write_bytes(line)
    check(place)


@pytest.mark.slow
def test_genuine_bundle_in_the_wrong_place_is_refused(tmp_path: Path, home: Path) -> None:
    """Its signature is valid, but it is not the requested bundle."""
    root = run_pipeline(write_request(tmp_path))
    run_pipeline(write_request(tmp_path, request={"version": "v2"}))
    toy = home / "archive/toy"
    shutil.rmtree(root / "release")
    shutil.copytree(toy / "v2-r2/release", root / "release")
    with pytest.raises(BundleError, match="another release than its folder's"):
        gramercy.open(home / "archive")["toy/v1-r1"]
    for kind in ("estimates", "reports"):
        shutil.rmtree(toy / "v2-r2" / kind)
        shutil.copytree(root / kind, toy / "v2-r2" / kind)
    release = gramercy.open(home / "archive")["toy/v2-r2"]
    with pytest.raises(BundleError, match="is of another release than 'toy/v2-r2'"):
        _ = release.estimates
    assert release.report is None


def test_keys_command(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_command("keys", capsys=capsys)
    assert (code, "No key yet" in out) == (0, True)
    assert run_json("keys", capsys=capsys) == []
    assert not home.exists()
    first = run_json("keys", "new", capsys=capsys)
    assert first["signs"]
    assert Path(first["path"]).read_text().startswith("-----BEGIN PUBLIC KEY-----")
    code, _, err = run_command("keys", "new", capsys=capsys)
    assert (code, "Add --yes" in err) == (2, True)
    run_command("keys", "new", "--yes", capsys=capsys)
    known = run_json("keys", "list", capsys=capsys)
    assert [each["signs"] for each in known] == [False, True]
    assert known[0] == first | {"signs": False}
    assert known == run_json("keys", capsys=capsys)
    code, told, _ = run_command("keys", "--json", "list", capsys=capsys)
    assert (code, told[0]) == (0, "[")
    code, told, _ = run_command("keys", "list", capsys=capsys)
    assert [each["id"] in told and each["path"] in told for each in known] == [True, True]

    private = (home / "keys/steward.pem").read_text().splitlines()[1]
    (home / "keys/steward.pem").chmod(0o644)
    code, out, err = run_command("keys", capsys=capsys)
    assert (code, "chmod 600" in err) == (1, True)
    assert private not in told + out + err
