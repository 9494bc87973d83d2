"""The catalogue in forms that others read: what was spent, the registry, one data package."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gramercy.api.release import Release
from gramercy.archive.bundle import SUMS, file_digest
from gramercy.archive.collection import Held, write_collection
from gramercy.archive.listing import listed
from gramercy.archive.protocol import Archive
from gramercy.archive.registry_entry import Stated, entry_text, file_name, registry_entry
from gramercy.archive.withdrawal_notice import read_withdrawal
from gramercy.cli.output.page_file import written
from gramercy.common import disk
from gramercy.schemas.errors import GramercyError, RequestError
from gramercy.schemas.timeline import Timeline

if TYPE_CHECKING:
    from gramercy.ledger import Ledger


def timelines_of(ledger: Ledger, archive: Archive, datasets: Sequence[str] = ()) -> list[Timeline]:
    """The timelines of data sets, with mechanisms where the archive holds them."""
    known: dict[str, dict[str, str]] = {name: {} for name in datasets}
    for dataset, release in archive.releases():
        if dataset in known:
            with contextlib.suppress(GramercyError):  # 'gramercy verify' is there to complain
                facts = listed(archive, dataset, release).facts
                known[dataset][release] = str(facts.mechanism["name"])
    return [each for name in datasets for each in ledger.timelines(name, known[name])]


def held(archive: Archive, chosen: Sequence[tuple[str, str]]) -> list[Held]:
    """Releases with the notices beside them, their seals verified.

    Raises
    ------
    BundleError
        Naming the file that is not what was sealed.
    """
    return [_held(archive, *each) for each in chosen]


def _held(archive: Archive, dataset: str, name: str) -> Held:
    release = Release(archive, dataset, name)
    notice = None
    if release.withdrawn is not None:
        notice = read_withdrawal(archive.withdrawal(dataset, name)).manifest
    digest = file_digest(release.path / SUMS)
    return Held(release.manifest, digest, release.path, release.signed_by, notice)


def write_registry(folder: Path, releases: Sequence[Held], stated: Stated) -> list[Path]:
    """Write an entry of the OpenDP Deployments Registry for each release; other files stay."""
    entries = [registry_entry(e.manifest, e.sha256, stated, e.withdrawn) for e in releases]
    paths = [folder / file_name(each) for each in entries]
    with written("--registry", folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path, entry in zip(paths, entries, strict=True):
            disk.replace(path, entry_text(entry).encode())
    return paths


def write_package(
    folder: Path, releases: Sequence[Held], timelines: Sequence[Timeline] | None
) -> None:
    """Write one data package of all; see `archive.collection.write_collection`.

    It is made beside its folder, and takes its place when it is whole.

    Raises
    ------
    RequestError
        If there is something in the folder: a package holds what it describes, and nothing else.
        Or if it cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(
            f"--package: {folder} is there, and not an empty folder.", "Name a new one."
        )
    place = folder.resolve()
    aside = place.with_name(f".{uuid.uuid4().hex}")
    with written("--package", folder):
        try:
            aside.mkdir(parents=True)
            write_collection(aside, releases, timelines)
            aside.replace(place)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
