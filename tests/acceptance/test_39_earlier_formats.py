"""Releases and ledgers of earlier versions are read, verified and upgraded."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import gramercy
from gramercy.application.auditing import make_audit
from gramercy.application.context import Context
from gramercy.application.verification import verify_release
from gramercy.archive.opening import archive_of
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas.problem import Notice
from gramercy.schemas.problems import verification
from tests.support.archives import update_listing

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def version_0_1(home: Path) -> Home:
    """A home of version 0.1: bundles of format 5, a ledger of schema 2, and no private key."""
    home.mkdir()
    with tarfile.open(GOLDEN / "v0.1.tar.gz") as packed:
        packed.extractall(home, filter="data")
    return Home.default()


def test_bundles_of_version_0_1_are_verified(version_0_1: Home) -> None:
    archive, ledger = archive_of(version_0_1), Ledger.of(version_0_1)
    releases = archive.releases()
    assert len(releases) == 12
    for dataset, release in releases:
        assert verify_release(archive, dataset, release, ledger).checks
    checks = verify_release(archive, "rows-ro", "v2-r2", ledger).checks
    for name in (*archive.estimates("rows-ro", "v2-r2"), *archive.reports("rows-ro", "v2-r2")):
        assert any(name in check for check in checks)


def test_folds_by_row_order_are_reported_as_unchecked(version_0_1: Home) -> None:
    archive = archive_of(version_0_1)
    folds = verify_release(archive, "rows-ro", "v2-r2", None).unchecked
    plain = verify_release(archive, "rows-ro", "v1-r1", None).unchecked
    code = verification.rows_assigned_by_position.code
    assert code in {notice.code for notice in folds}
    assert code not in {notice.code for notice in plain}


def test_release_of_version_0_1_is_read(version_0_1: Home) -> None:
    release = gramercy.open(version_0_1.archive)["rows-ro/v2-r2"]
    assert release.manifest.format == 5
    assert release.denoised.shape == (3, 3)


def test_ledger_of_version_0_1_is_upgraded(version_0_1: Home) -> None:
    ledger = Ledger.of(version_0_1)
    assert ledger.find_inconsistencies() == []
    statement = ledger.statement("rows-ro")
    assert len(ledger.charges("rows-ro")) == 6
    assert statement.facts()["failures"] == statement.budget.delta / 10
    # It counts as a copy until it is declared as moved.
    assert ledger.original_location() is not None
    ledger.move("unpacked")
    assert ledger.original_location() is None


def test_audit_names_what_old_versions_may_affect(version_0_1: Home) -> None:
    Ledger.of(version_0_1).move("unpacked")
    update_listing(Context.default(), "whole", "v1-r1")
    audit = make_audit(Context.default())
    assert audit.discrepancies == []
    notices = [note for note in audit.notes if isinstance(note, Notice)]
    named = {note.facts.get("release", note.facts.get("dataset")) for note in notices}
    assert {"rows-ro/v2-r2", "whole/v1-r1", "yearly/2025-r1", "rows-ro", "rows-ar"} <= named
    assert not {"rows-ro/v1-r1", "rows-ar/v2-r2", "people", "yearly, data of 2025"} & named
