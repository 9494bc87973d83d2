"""Analysts see one constant answer for a refused release, and public files say nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramercy
from gramercy.application.internal_record import page, recall
from gramercy.archive.signing_keys import new_key
from gramercy.common.home import Home
from gramercy.mechanisms.additive import Noisy
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.schemas.errors import GramercyError
from tests.support.factories import run_pipeline, run_release, write_request, write_table


def write_spoilt_table(path: Path, rows: int = 40) -> None:
    """Write a table full of cells that need repair."""
    lines = ["c0,c1,c2"] + ["junk,1e99,", '"open,1,2', "1,2,3,4", "", "-7,nan,8"] * (rows // 5)
    path.write_text("\n".join(lines) + "\n")


def refused(folder: Path, change: Callable[[Path], Any], **facts: Any) -> None:
    request = write_request(folder, **facts)
    change(folder / "table.csv")
    with pytest.raises(GramercyError):
        run_release(request)


def interrupted(folder: Path) -> None:
    def broken(*_: Any) -> None:
        raise OSError(28, "no space left")

    with pytest.MonkeyPatch.context() as broke:
        broke.setattr("gramercy.application.drawing.denoise", broken)
        refused(folder, lambda _: None)
    with pytest.raises(GramercyError, match="spent"):
        run_release(folder / "request.yaml")


REFUSALS: dict[str, Callable[[Path], None]] = {
    "budget": lambda f: refused(f, lambda _: None, budget={"epsilon": 0.01, "delta": 1e-5}),
    "rows": lambda f: refused(f, lambda _: None, rows=41),
    "one row less": lambda f: refused(f, lambda path: write_table(path, rows=39)),
    "unreadable": lambda f: refused(f, lambda path: path.write_bytes(b"\x00\xff" * 99)),
    "gone": lambda f: refused(f, Path.unlink),
    "column": lambda f: refused(f, lambda path: path.write_text("a,b\n1,2\n")),
    "interrupted": interrupted,
    "never asked for": lambda f: None,
}


def analyst_answer(home: Path) -> tuple[list[str], str]:
    """What an analyst sees of the archive and of the release."""
    (home / "archive").mkdir(parents=True, exist_ok=True)
    catalogue = gramercy.open(str(home / "archive"))
    with pytest.raises(gramercy.UnknownRelease) as told:
        catalogue["toy/v1-r1"]
    # How far the ledger has come, and work that is under way, are for its owner's eyes.
    closed = {p for p in (home / "archive").glob(".*") if p.stat().st_mode & 0o077 == 0}
    everything = [p for p in (home / "archive").rglob("*") if p.is_file()]
    files = [str(p.relative_to(home)) for p in everything if not closed & {*p.parents}]
    return files + list(catalogue), str(told.value).replace(str(home), "")


@pytest.mark.parametrize("reason", REFUSALS)
def test_every_refusal_looks_the_same_to_analysts(reason: str, tmp_path: Path, home: Path) -> None:
    REFUSALS[reason](tmp_path)
    assert analyst_answer(home) == (
        [],
        "/archive: holds no release 'toy/v1-r1'. See 'gramercy list'.",
    )


def public(request: Path) -> dict[str, bytes]:
    """Publish a release, its estimates and its report; return all published files."""
    root = run_pipeline(request)
    files = sorted(p for p in root.rglob("*") if p.is_file())
    return {str(p.relative_to(root)): p.read_bytes() for p in files}


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_public_files_depend_on_data_only_through_the_noisy_matrix(
    neighbours: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = np.random.default_rng(1).integers(-(10**7), 10**7, size=(3, 3))
    frozen = half + half.T + 10**8 * np.eye(3, dtype=np.int64)
    monkeypatch.setattr(Gaussian, "perturb", lambda *_: Noisy(frozen, None))
    new_key(tmp_path / "keys")  # one curator, whose signature is the same for the same bytes
    seen = []
    for name, fill in (
        ("clean", write_table),
        ("other", lambda p: write_table(p, seed=9)),
        ("bad", write_spoilt_table),
    ):
        folder, home = tmp_path / name, tmp_path / f"home-{name}"
        folder.mkdir()
        fill(folder / "table.csv")
        shutil.copytree(tmp_path / "keys", home / "keys")
        monkeypatch.setenv("GRAMERCY_HOME", str(home))
        seen.append(public(write_request(folder, neighbours=neighbours)))
    assert any(name.startswith("reports/") for name in seen[0])
    assert seen[0] == seen[1] == seen[2]
    # The steward does hear of it, and only there.
    assert Home.default().root == tmp_path / "home-bad"
    facts = recall(Home.default(), "toy", "v1-r1")
    assert facts["malformed_rows"] == 24
    assert facts["filled_cells"] == {"c0": 8, "c1": 8, "c2": 8}
    shown = page(Home.default(), "toy", "v1-r1").read_text()
    assert "INTERNAL" in shown
    assert "24 lines were blank" in shown
