"""Exports of the catalogue: timelines of budgets, registry entries, one data package."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from gramercy.api.release import Release
from gramercy.archive.bundles.descriptions import read_withdrawal
from gramercy.archive.export.data_package import CollectedRelease, write_collection
from gramercy.archive.export.registry_entry import (
    RegistryAnswers,
    entry_file_name,
    entry_text,
    registry_entry,
)
from gramercy.archive.seal.bundle import SUMS, file_digest
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.staging import StagingArea
from gramercy.cli.output.output_files import write_errors
from gramercy.common import disk
from gramercy.schemas import families
from gramercy.schemas.ledger_history import Timeline

_STAGING, _OWNER = ".gramercy-staging", "package"


def sealed_releases(archive: Archive, chosen: Sequence[tuple[str, str]]) -> list[CollectedRelease]:
    """Releases with their withdrawal notices, after verifying their seals.

    Raises
    ------
    BundleError
        If a file differs from what was sealed; the error names it.
    """
    return [_sealed_release(archive, *each) for each in chosen]


def _sealed_release(archive: Archive, dataset: str, name: str) -> CollectedRelease:
    release = Release(archive, dataset, name)
    notice = None
    if release.withdrawn is not None:
        notice = read_withdrawal(archive.withdrawal(dataset, name)).manifest
    digest = file_digest(release.path / SUMS)
    return CollectedRelease(release.manifest, digest, release.path, release.signed_by, notice)


def write_registry(
    folder: Path, releases: Sequence[CollectedRelease], answers: RegistryAnswers
) -> list[Path]:
    """Write an entry of the OpenDP Deployments Registry for each release; keep other files."""
    entries = [registry_entry(e.manifest, e.sha256, answers, e.withdrawn) for e in releases]
    paths = [folder / entry_file_name(each) for each in entries]
    with write_errors("--registry", folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path, entry in zip(paths, entries, strict=True):
            disk.write_atomically(path, entry_text(entry).encode())
    return paths


def write_package(
    folder: Path, releases: Sequence[CollectedRelease], timelines: Sequence[Timeline] | None
) -> None:
    """Write one data package of all releases; see `archive.export.data_package.write_collection`.

    It is written next to its folder and moved there when it is complete. What an export that was
    killed has left there is removed.

    Raises
    ------
    RequestError
        If the folder is not empty, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise families.EXPORT(
            "--package: {path} is not an empty folder.",
            "Choose a new folder.",
            path=str(folder),
        )
    target = folder.resolve()
    area = StagingArea(target.with_name(_STAGING))
    area.sweep(_OWNER)
    with write_errors("--package", folder):
        try:
            with area.new(_OWNER) as staging:
                write_collection(staging, releases, timelines)
                staging.replace(target)
        finally:
            with contextlib.suppress(OSError):  # another export uses it
                area.folder.rmdir()
