"""Signatures: the steward's key makes them, and only trusted keys are accepted."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

import gramercy
from gramercy.api.release import Release
from gramercy.archive.seal.bundle import SIGNATURE, SUMS, check, seal, signer
from gramercy.archive.seal.signing import (
    create_signing_key,
    key_id,
    public_keys,
    signing_public_key,
    steward_key,
)
from gramercy.archive.store.opening import archive_of, open_archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas import families
from gramercy.schemas.errors import BundleError
from tests.support.archives import seal_bundle
from tests.support.factories import (
    at_scale,
    run_command,
    run_json,
    run_pipeline,
    run_release,
    write_request,
)
from tests.support.problems import raises
from tests.support.processes import processes


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def steward_public_key(folder: str) -> str:
    return steward_key(Path(folder)).public_key().public_bytes_raw().hex()


def test_first_seal_creates_a_private_key(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created: list[tuple[str, int]] = []
    os_open = os.open

    def recording_open(path: Any, flags: int, permissions: int = 0o777, **more: Any) -> int:
        if flags & os.O_CREAT:
            created.append((str(path), permissions))
        return os_open(path, flags, permissions, **more)

    monkeypatch.setattr(os, "open", recording_open)
    before = os.umask(0)
    try:
        seal_bundle(tmp_path / "some", "some")
    finally:
        os.umask(before)
    keys = home / "keys"
    assert mode(keys) == 0o700
    assert mode(keys / "steward.pem") == 0o600
    # Files have these permissions when they are created, even under a temporary name.
    private, public = [permissions for path, permissions in created if str(keys) in path]
    assert (private, public) == (0o600, 0o644)
    (path,) = keys.glob("*.pub")
    assert sorted(os.listdir(keys)) == sorted(["steward.pem", path.name])

    key = serialization.load_pem_public_key(path.read_bytes())
    raw = key.public_bytes_raw()
    assert path.stem == hashlib.sha256(raw).hexdigest()[:16] == key_id(raw.hex())
    kind, signer_key, signature = (
        (tmp_path / "some" / SIGNATURE).read_text().removesuffix("\n").split()
    )
    assert (kind, signer_key) == ("ed25519", raw.hex())
    sums = (tmp_path / "some" / SUMS).read_bytes()
    key.verify(bytes.fromhex(signature), b"gramercy bundle\n" + sums)
    assert check(tmp_path / "some") == hashlib.sha256(sums).hexdigest()
    assert signer(tmp_path / "some") == signing_public_key(keys) == raw.hex()
    assert mode(tmp_path / "some" / SIGNATURE) == 0o444


@pytest.mark.slow
def test_concurrent_first_seals_create_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for turn in range(10):
            assert len(set(pool.map(steward_public_key, [str(tmp_path / f"t{turn}")] * 8))) == 1
    with processes(at_scale(2, 4)) as pool:
        for turn in range(4):
            folder = tmp_path / f"p{turn}"
            keys = set(pool.map(steward_public_key, [str(folder)] * 4))
            assert keys == {signing_public_key(folder)}
            assert len(os.listdir(folder)) == 2


def test_missing_public_key_file_is_recreated(tmp_path: Path) -> None:
    first = steward_public_key(str(tmp_path / "keys"))
    (path,) = (tmp_path / "keys").glob("*.pub")
    before = path.read_bytes()
    path.unlink()
    assert steward_public_key(str(tmp_path / "keys")) == first
    assert path.read_bytes() == before


def test_key_rotation_keeps_old_signatures_valid(tmp_path: Path, home: Path) -> None:
    keys, archive = home / "keys", open_archive(home / "archive")
    for turn in range(3):
        digest = seal_bundle(tmp_path / "staged", str(turn))
        archive.commit(tmp_path / "staged", archive.release("toy", f"v{turn}-r1"))
        private = (keys / "steward.pem").read_bytes()
        key = create_signing_key(keys)
        assert signing_public_key(keys) == key.public
        assert mode(keys / "steward.pem") == 0o600
        assert private not in [path.read_bytes() for path in keys.iterdir()]
    assert len(public_keys(keys)) == 4
    assert len(os.listdir(keys)) == 5
    trusting = archive_of(Home.default())
    assert trusting.trusted == {key.public for key in public_keys(keys)}
    for turn in range(3):
        trusting.verify_signer(archive.release("toy", f"v{turn}-r1"))
    assert check(archive.release("toy", "v2-r1")) == digest


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0o644, 0o640, 0o604, 0o660])
def test_key_readable_by_others_is_refused(wrong: int, tmp_path: Path, home: Path) -> None:
    """It is refused before anything is charged; 'gramercy keys new' replaces it."""
    seal_bundle(tmp_path / "some", "some")
    path = home / "keys/steward.pem"
    path.chmod(wrong)
    with raises(families.PRIVATE_KEY, mode=f"{wrong:o}", path=str(path)):
        run_release(write_request(tmp_path))
    assert Ledger(Home.default().ledger).datasets() == []
    old = set((home / "keys").glob("*.pub"))
    key = create_signing_key(home / "keys")
    assert set((home / "keys").glob("*.pub")) == {*old, key.path}
    assert mode(path) == 0o600
    assert run_release(write_request(tmp_path)) == "v1-r1"


def pem(key: Any, password: bytes | None = None) -> bytes:
    encryption = serialization.NoEncryption()
    if password:
        encryption = serialization.BestAvailableEncryption(password)
    private = serialization.PrivateFormat.PKCS8
    return bytes(key.private_bytes(serialization.Encoding.PEM, private, encryption))


def test_invalid_key_file_is_refused(tmp_path: Path, home: Path) -> None:
    seal_bundle(tmp_path / "some", "some")
    path = home / "keys/steward.pem"
    valid = path.read_bytes()
    for data in (
        b"",
        b"junk",
        valid[:60],
        pem(ec.generate_private_key(ec.SECP256R1())),
        pem(ed25519.Ed25519PrivateKey.generate(), b"password"),
    ):
        path.write_bytes(data)
        with raises(families.PRIVATE_KEY, path=str(path)) as raised:
            steward_key(home / "keys")
        assert raised.value.__cause__ is None
        assert len(str(raised.value)) < 300
    with raises(families.KEY_FILE, path=str(tmp_path / "none.pub")):
        gramercy.open(str(tmp_path), key=tmp_path / "none.pub")
    for file in (path, tmp_path / "some" / SUMS):
        with raises(families.KEY_FILE, path=str(file)):
            gramercy.open(str(tmp_path), key=file)
    with raises(families.KEY_FILE):
        gramercy.open(str(tmp_path), key=[])
    (home / "keys/other.pub").write_text("junk")
    with raises(families.KEY_FILE, path=str(home / "keys/other.pub")):
        archive_of(Home.default())


def test_unusable_key_folder_is_refused(tmp_path: Path, home: Path) -> None:
    home.mkdir()
    (home / "keys").write_text("a file where the folder should be")
    for call in (steward_key, create_signing_key, signing_public_key):
        with raises(families.PRIVATE_KEY, folder=str(home / "keys")):
            call(home / "keys")
    with raises(families.PRIVATE_KEY, folder=str(home / "keys")):
        run_release(write_request(tmp_path))
    assert Ledger(Home.default().ledger).datasets() == []


@pytest.mark.slow
def test_only_trusted_keys_are_accepted(tmp_path: Path, home: Path, published_home: Path) -> None:
    root = shutil.copytree(published_home, home) / "archive/toy/v1-r1"
    (own,) = (home / "keys").glob("*.pub")
    other = create_signing_key(tmp_path / "other").path
    for key in (None, own, [own], [other, str(own)]):
        release = gramercy.open(home / "archive", key=key)["toy/v1-r1"]
        assert release.signed_by == own.stem
        assert len(release.estimates) == 2
        assert release.report is not None
    with raises(families.SIGNER, signer=own.stem, trusted=(other.stem,)):
        gramercy.open(home / "archive", key=other)["toy/v1-r1"]

    # An estimate and a report signed by another key, of a genuine release.
    estimate = min((root / "estimates").iterdir())
    (report,) = (root / "reports").iterdir()
    seal(estimate, tmp_path / "other")
    seal(report, tmp_path / "other")
    release = gramercy.open(home / "archive", key=own)["toy/v1-r1"]
    with raises(families.SIGNER, path=f"{estimate}/{SIGNATURE}", signer=other.stem):
        _ = release.estimates
    assert release.report is None
    assert gramercy.open(home / "archive")["toy/v1-r1"].report is not None
    # A release signed by another key, opened without trusted keys and with those of the home.
    seal(root / "release", tmp_path / "other")
    assert Release(open_archive(home / "archive"), "toy", "v1-r1").signed_by == other.stem
    with raises(families.SIGNER, signer=other.stem):
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
        # A valid signature of the list without the prefix for bundles, as for another purpose.
        f"ed25519 {theirs} {other.sign(sums).hex()}\n".encode(),
    ):
        (place / SIGNATURE).write_bytes(wrong)
        with pytest.raises(BundleError) as caught:
            check(place)
        assert SIGNATURE in caught.value.sentence
    (place / SIGNATURE).unlink()
    with raises(families.SEAL, path=str(place / SIGNATURE)):
        check(place)
    (place / SIGNATURE).write_bytes(line)
    check(place)


@pytest.mark.slow
def test_genuine_bundle_in_the_wrong_place_is_refused(tmp_path: Path, home: Path) -> None:
    """The signature is valid, but the bundle is not the requested one."""
    root = run_pipeline(write_request(tmp_path))
    run_pipeline(write_request(tmp_path, request={"version": "v2"}))
    toy = home / "archive/toy"
    shutil.rmtree(root / "release")
    shutil.copytree(toy / "v2-r1/release", root / "release")
    with raises(families.DESCRIPTION, release="toy/v1-r1"):
        gramercy.open(home / "archive")["toy/v1-r1"]
    for kind in ("estimates", "reports"):
        shutil.rmtree(toy / "v2-r1" / kind)
        shutil.copytree(root / kind, toy / "v2-r1" / kind)
    release = gramercy.open(home / "archive")["toy/v2-r1"]
    with raises(families.DESCRIPTION, release="toy/v2-r1"):
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
    assert (code, families.NOT_A_TERMINAL.code in err) == (2, True)
    run_command("keys", "new", "--yes", capsys=capsys)
    keys = run_json("keys", "list", capsys=capsys)
    assert [key["signs"] for key in keys] == [False, True]
    assert keys[0] == first | {"signs": False}
    assert keys == run_json("keys", capsys=capsys)
    code, listed, _ = run_command("keys", "--json", "list", capsys=capsys)
    assert (code, listed[0]) == (0, "[")
    code, listed, _ = run_command("keys", "list", capsys=capsys)
    assert [key["id"] in listed and key["path"] in listed for key in keys] == [True, True]

    private = (home / "keys/steward.pem").read_text().splitlines()[1]
    (home / "keys/steward.pem").chmod(0o644)
    code, out, err = run_command("keys", capsys=capsys)
    assert (code, families.PRIVATE_KEY.code in err) == (1, True)
    assert private not in listed + out + err
