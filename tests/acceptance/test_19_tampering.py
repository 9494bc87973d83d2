"""Any truncation or flipped bit in a bundle is refused on load, and the file is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.archive.bundles.bundle_kinds import read_estimate, read_release, read_report
from gramercy.archive.seal.bundle import SEAL
from gramercy.schemas import families
from gramercy.schemas.errors import BundleError
from tests.support.factories import at_scale, run_pipeline, write_request
from tests.support.problems import raises

Bundles = list[tuple[Path, Callable[[Path], Any]]]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Bundles:
    """One bundle of each kind, and the function that reads it."""
    folder = tmp_path_factory.mktemp("bundles")
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("GRAMERCY_HOME", str(folder / "home"))
        root = run_pipeline(write_request(folder))
    estimates, reports = (sorted((root / kind).iterdir()) for kind in ("estimates", "reports"))
    sealed: Bundles = [(root / "release", read_release)]
    sealed += [(place, read_estimate) for place in estimates]
    sealed += [(place, read_report) for place in reports]
    for place, read in sealed:
        read(place)
    return sealed


@pytest.fixture(autouse=True)
def home(bundles: Bundles, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the bundles, whose key has signed them."""
    place = bundles[0][0].parents[3]
    monkeypatch.setenv("GRAMERCY_HOME", str(place))
    return place


def refusal(sealed: Path, read: Callable[[Path], Any], name: str, data: bytes) -> set[str]:
    """The names of files in the error for a copy in which one file is changed."""
    copy = sealed.parents[4] / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sealed, copy)
    (copy / name).chmod(0o644)
    (copy / name).write_bytes(data)
    with pytest.raises(BundleError) as caught:
        read(copy)
    return {Path(str(fact)).name for fact in caught.value.facts.values()}


@pytest.mark.parametrize("of_the_seal", [False, True])
def test_damaged_file_is_refused_by_name(of_the_seal: bool, bundles: Bundles) -> None:
    """Any file; and the list with its signature, which protect each other: one of them is named."""
    rng = np.random.default_rng(int(of_the_seal))
    for turn in range(at_scale(200, 1000)):
        sealed, read = bundles[turn % len(bundles)]
        names = sorted(SEAL if of_the_seal else (p.name for p in sealed.iterdir()))
        name = names[rng.integers(len(names))]
        data = bytearray((sealed / name).read_bytes())
        at = int(rng.integers(len(data)))
        if rng.random() < 0.6:
            data[at] ^= 1 << int(rng.integers(8))
        else:
            data = data[:at]
        assert name in refusal(sealed, read, name, bytes(data))


def test_every_bit_of_a_signature_is_checked(bundles: Bundles) -> None:
    sealed, read = bundles[-1]
    line = (sealed / "SHA256SUMS.sig").read_bytes()
    for bit in range(0, 8 * len(line), at_scale(7, 1)):
        data = bytearray(line)
        data[bit // 8] ^= 1 << bit % 8
        assert "SHA256SUMS.sig" in refusal(sealed, read, "SHA256SUMS.sig", bytes(data))


def test_missing_and_added_files_are_refused(bundles: Bundles, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for sealed, read in bundles:
        for name in sorted(p.name for p in sealed.iterdir()):
            shutil.copytree(sealed, copy)
            (copy / name).unlink()
            problem = families.SEAL
            with raises(problem, path=str(copy / name)):
                read(copy)
            shutil.rmtree(copy)
        shutil.copytree(sealed, copy)
        (copy / "extra.csv").write_text("x")
        with raises(families.SEAL, path=str(copy / "extra.csv")):
            read(copy)
        shutil.rmtree(copy)
