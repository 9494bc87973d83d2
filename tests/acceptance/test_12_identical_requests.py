"""Analysts get the same answer for every refused release, and public files reveal no more."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramercy
from gramercy.archive.seal.signing import create_signing_key
from gramercy.common.home import Home
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.mechanism import NoisyGram
from gramercy.pipeline.publish.internal_record import page_path, read_record
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError
from tests.support.factories import (
    run_pipeline,
    run_release,
    without_salts,
    write_request,
    write_table,
)
from tests.support.problems import raises


def write_malformed_table(path: Path, rows: int = 40) -> None:
    """Write a table with many cells and lines that need repair."""
    lines = ["c0,c1,c2"] + ["junk,1e99,", '"open,1,2', "1,2,3,4", "", "-7,nan,8"] * (rows // 5)
    path.write_text("\n".join(lines) + "\n")


def assert_refused(folder: Path, change: Callable[[Path], Any], **facts: Any) -> None:
    request = write_request(folder, **facts)
    change(folder / "table.csv")
    with pytest.raises(GramercyError):
        run_release(request)


def interrupt(folder: Path) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OSError(28, "no space left")

    with pytest.MonkeyPatch.context() as broke:
        broke.setattr("gramercy.pipeline.publish.drawing.denoise", broken)
        assert_refused(folder, lambda _: None)
    with raises(families.SPENT):
        run_release(folder / "request.yaml")


REFUSALS: dict[str, Callable[[Path], None]] = {
    "budget": lambda f: assert_refused(f, lambda _: None, budget={"epsilon": 0.01, "delta": 1e-5}),
    "rows": lambda f: assert_refused(f, lambda _: None, rows=41),
    "one row less": lambda f: assert_refused(f, lambda path: write_table(path, rows=39)),
    "unreadable": lambda f: assert_refused(f, lambda path: path.write_bytes(b"\x00\xff" * 99)),
    "gone": lambda f: assert_refused(f, Path.unlink),
    "column": lambda f: assert_refused(f, lambda path: path.write_text("a,b\n1,2\n")),
    "interrupted": interrupt,
    "never requested": lambda f: None,
}


def analyst_answer(home: Path) -> tuple[list[str], dict[str, Any]]:
    """The files that an analyst sees in the archive, and the facts of the error for the release."""
    (home / "archive").mkdir(parents=True, exist_ok=True)
    catalogue = gramercy.open(str(home / "archive"))
    with raises(families.UNKNOWN_RELEASE) as raised:
        catalogue["toy/v1-r1"]
    # Anchors of the ledger and the staging area are readable by their owner only.
    private = {p for p in (home / "archive").glob(".*") if p.stat().st_mode & 0o077 == 0}
    everything = [p for p in (home / "archive").rglob("*") if p.is_file()]
    files = [str(p.relative_to(home)) for p in everything if not private & {*p.parents}]
    return files + list(catalogue), raised.value.facts


@pytest.mark.parametrize("reason", REFUSALS)
def test_every_refusal_looks_the_same_to_analysts(reason: str, tmp_path: Path, home: Path) -> None:
    REFUSALS[reason](tmp_path)
    assert analyst_answer(home) == (
        [],
        {"archive": str(home / "archive"), "release": "toy/v1-r1", "known": ("none",)},
    )


def publish_all(request: Path) -> dict[str, bytes]:
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
    monkeypatch.setattr(Gaussian, "perturb", lambda *_: NoisyGram(frozen, None))
    without_salts(monkeypatch)
    create_signing_key(tmp_path / "keys")  # one key, so that equal bytes have equal signatures
    published = []
    for name, write in (
        ("clean", write_table),
        ("other", lambda p: write_table(p, seed=9)),
        ("bad", write_malformed_table),
    ):
        folder, home = tmp_path / name, tmp_path / f"home-{name}"
        folder.mkdir()
        write(folder / "table.csv")
        shutil.copytree(tmp_path / "keys", home / "keys")
        monkeypatch.setenv("GRAMERCY_HOME", str(home))
        published.append(publish_all(write_request(folder, neighbours=neighbours)))
    assert any(name.startswith("reports/") for name in published[0])
    assert published[0] == published[1] == published[2]
    # Only the steward's internal record states the repairs.
    assert Home.default().root == tmp_path / "home-bad"
    facts = read_record(Home.default(), "toy", "v1-r1")
    assert facts["malformed_rows"] == 24
    assert facts["filled_cells"] == {"c0": 8, "c1": 8, "c2": 8}
    page = page_path(Home.default(), "toy", "v1-r1").read_text()
    assert "INTERNAL" in page
