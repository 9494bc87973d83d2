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


@pytest.fixture
def bundles(tmp_path: Path) -> Bundles:
    """One bundle of each kind, and the function that reads it."""
    root = run_pipeline(write_request(tmp_path))
    estimates, reports = (sorted((root / kind).iterdir()) for kind in ("estimates", "reports"))
    sealed: Bundles = [(root / "release", read_release)]
    sealed += [(place, read_estimate) for place in estimates]
    sealed += [(place, read_report) for place in reports]
    for place, read in sealed:
        read(place)
    return sealed


def refusal(sealed: Path, read: Callable[[Path], Any], name: str, data: bytes) -> set[str]:
    """The names of files in the error for a copy in which one file is changed."""
    copy = sealed.parents[4] / "copy"
    shutil.copytree(sealed, copy)
    (copy / name).chmod(0o644)
    (copy / name).write_bytes(data)
    with pytest.raises(BundleError) as caught:
        read(copy)
    shutil.rmtree(copy)
    return {Path(str(fact)).name for fact in caught.value.facts.values()}


def test_damaged_file_is_refused_by_name(bundles: Bundles) -> None:
    rng = np.random.default_rng(0)
    for turn in range(at_scale(200, 1000)):
        sealed, read = bundles[turn % len(bundles)]
        names = sorted(p.name for p in sealed.iterdir())
        name = names[rng.integers(len(names))]
        data = bytearray((sealed / name).read_bytes())
        at = int(rng.integers(len(data)))
        if rng.random() < 0.5:
            data[at] ^= 1 << int(rng.integers(8))
        else:
            data = data[:at]
        assert name in refusal(sealed, read, name, bytes(data))


def test_damaged_seal_is_refused(bundles: Bundles) -> None:
    """The list and its signature protect each other: the error names one of them or both."""
    rng = np.random.default_rng(1)
    for turn in range(at_scale(200, 1000)):
        sealed, read = bundles[turn % len(bundles)]
        name = sorted(SEAL)[turn // len(bundles) % 2]
        data = bytearray((sealed / name).read_bytes())
        at = int(rng.integers(len(data)))
        if rng.random() < 0.7:
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
