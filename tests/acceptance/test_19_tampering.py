"""Any truncation or flipped bit in a bundle is refused on load, and the file is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from archive.release import read_release
from schemas.errors import BundleError
from tests.making import at_scale, run_steps, scene


def test_damage_is_found(tmp_path: Path, home: Path) -> None:
    run_steps(scene(tmp_path))
    sealed = home / "archive/toy/v1-r1/release"
    read_release(sealed)
    rng = np.random.default_rng(0)
    names = sorted(p.name for p in sealed.iterdir())
    for _ in range(at_scale(150, 1000)):
        copy = tmp_path / "copy"
        shutil.copytree(sealed, copy)
        name = names[rng.integers(len(names))]
        data = bytearray((copy / name).read_bytes())
        at = int(rng.integers(len(data)))
        if rng.random() < 0.5:
            data[at] ^= 1 << int(rng.integers(8))
        else:
            data = data[:at]
        (copy / name).chmod(0o644)
        (copy / name).write_bytes(bytes(data))
        with pytest.raises(BundleError) as caught:
            read_release(copy)
        # A damaged list of digests may accuse the file whose line was hit; never nothing.
        assert name in str(caught.value) or name == "SHA256SUMS"
        shutil.rmtree(copy)


def test_missing_and_added_files_are_found(tmp_path: Path, home: Path) -> None:
    run_steps(scene(tmp_path))
    sealed = home / "archive/toy/v1-r1/release"
    for name in sorted(p.name for p in sealed.iterdir()):
        copy = tmp_path / "copy"
        shutil.copytree(sealed, copy)
        (copy / name).unlink()
        with pytest.raises(BundleError, match=name):
            read_release(copy)
        shutil.rmtree(copy)
    shutil.copytree(sealed, copy)
    (copy / "extra.csv").write_text("x")
    with pytest.raises(BundleError, match=r"extra\.csv"):
        read_release(copy)
