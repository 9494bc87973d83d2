"""Item 39: what earlier versions have published and charged is read, verified and carried on."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import gramercy
from gramercy.application.auditing import make_audit
from gramercy.application.verification import verify_release
from gramercy.archive.store import Archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def version_0_1(home: Path) -> Home:
    """A home of version 0.1: bundles of format 5, a ledger of schema 2, and no private key."""
    home.mkdir()
    with tarfile.open(GOLDEN / "v0.1.tar.gz") as packed:
        packed.extractall(home, filter="data")
    return Home.default()


def test_every_bundle_is_verified(version_0_1: Home) -> None:
    archive, ledger = Archive.of(version_0_1), Ledger.of(version_0_1)
    releases = archive.releases()
    assert len(releases) == 12
    for dataset, release in releases:
        assert verify_release(archive, dataset, release, ledger).checks
    found = verify_release(archive, "rows-ro", "v2-r2", ledger)
    assert any(check.startswith("estimate ridge") for check in found.checks)
    assert any(check.startswith("report") for check in found.checks)


def test_rows_that_were_told_apart_by_place_are_named(version_0_1: Home) -> None:
    archive = Archive.of(version_0_1)
    folds = verify_release(archive, "rows-ro", "v2-r2", None).unchecked
    plain = verify_release(archive, "rows-ro", "v1-r1", None).unchecked
    assert len(folds) > len(plain)


def test_analysts_read_them(version_0_1: Home) -> None:
    release = gramercy.open(version_0_1.archive)["rows-ro/v2-r2"]
    assert release.manifest.format == 5
    assert release.denoised.shape == (3, 3)


def test_the_ledger_is_upgraded_and_goes_on(version_0_1: Home) -> None:
    ledger = Ledger.of(version_0_1)
    assert ledger.examine() == []
    statement = ledger.statement("rows-ro")
    assert len(ledger.charges("rows-ro")) == 6
    assert statement.facts()["failures"] == statement.budget.delta / 10
    assert ledger.elsewhere() is not None  # a copy, until somebody says that it was moved
    ledger.move("unpacked")
    assert ledger.elsewhere() is None


def test_an_audit_names_what_may_be_affected(version_0_1: Home) -> None:
    Ledger.of(version_0_1).move("unpacked")
    audit = make_audit()
    assert audit.discrepancies == []
    named = {note.partition(":")[0] for note in audit.notes}
    assert {"rows-ro/v2-r2", "whole/v1-r1", "yearly/2025-r1", "rows-ro", "rows-ar"} <= named
    assert not {"rows-ro/v1-r1", "rows-ar/v2-r2", "people", "yearly, data of 2025"} & named
