"""A home that was made once, in format 1 of manifests and schema 1 of the ledger, stays readable.

``python -m tests.acceptance.test_39_golden_release`` makes it, as `make_golden` says. Until version
0.2.0 is released, a change of the format makes it again; from then on it is kept, and a changed
format gets a number and a golden home of its own.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pytest

import gramercy
from gramercy.archive.seal.signing import STEWARD
from gramercy.archive.store.opening import archive_of
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas.manifest import FORMAT
from tests.support.archives import update_listing
from tests.support.factories import run_pipeline, run_release, write_request

GOLDEN = Path(__file__).parents[1] / "golden" / f"format-{FORMAT}.tar.gz"
RELEASES = [("toy", "v1-r1"), ("toy", "v2-r1")]


def make_golden() -> None:
    """A matrix with estimated constants, folds, an estimate and a report; and noisy rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["GRAMERCY_HOME"] = str(folder / "home")
        facts = {"rows": 2000, "intercept": True, "budget": {"epsilon": 20.0, "delta": 1e-6}}
        values = np.random.default_rng(7).normal(size=(2000, 3)).round(2)
        lines = [",".join(map(str, row)) for row in values]
        (folder / "table.csv").write_text("\n".join(["c0,c1,c2", *lines]) + "\n")
        first = {"scaling": "private", "folds": 2, "estimates": [{"name": "graphical-lasso"}]}
        run_pipeline(write_request(folder, request=first, **facts))
        rows = {"name": "rows", "epsilon": 4.0, "delta": 1e-7}
        run_release(write_request(folder, request={"version": "v2", "mechanism": rows}, **facts))
        for dataset, release in RELEASES:
            update_listing(Context.default(), dataset, release)
        with tarfile.open(GOLDEN, "w:gz") as packed:
            for part in ("archive", "keys", "ledger.sqlite"):
                packed.add(folder / "home" / part, part, filter=_published)


def _published(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if member.name.endswith(STEWARD):
        return None
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


@pytest.fixture
def golden(home: Path) -> Home:
    """The home, without its private key."""
    home.mkdir()
    with tarfile.open(GOLDEN) as packed:
        packed.extractall(home, filter="data")
    return Home.default()


def test_golden_releases_are_read_and_verified(golden: Home) -> None:
    archive, ledger = archive_of(golden), Ledger.of(golden)
    assert archive.releases() == RELEASES
    for dataset, release in RELEASES:
        result = verify_release(archive, dataset, release, ledger)
        assert "guarantee: recomputed from the request, and exactly as stated" in result.checks
        assert not result.unchecked
        derived = (*archive.estimates(dataset, release), *archive.reports(dataset, release))
        for name in derived:
            assert any(name in check for check in result.checks)
    release = gramercy.open(golden.archive)["toy/v1-r1"]
    assert release.manifest.format == FORMAT
    assert release.denoised.shape == (4, 4)


def test_golden_ledger_is_a_copy_until_it_is_declared_as_moved(golden: Home) -> None:
    ledger = Ledger.of(golden)
    assert ledger.find_inconsistencies() == []
    assert [charge.release for charge in ledger.charges("toy")] == ["v1-r1", "v2-r1"]
    assert ledger.original_location() is not None
    ledger.move("unpacked")
    assert ledger.original_location() is None
    assert make_audit(Context.default()).discrepancies == []


if __name__ == "__main__":
    make_golden()
