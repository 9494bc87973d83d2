"""The descriptions of releases, verified, and notices of withdrawal; matrices are not read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramercy.archive.bundles.escaped_texts import markdown_text
from gramercy.archive.bundles.package import (
    DESCRIPTOR,
    descriptor,
    read_descriptor,
    read_manifest,
    write_descriptor,
)
from gramercy.archive.bundles.release_bundle import read_release_manifest
from gramercy.archive.listing.listed_release import ListedRelease
from gramercy.archive.seal.bundle import SUMS, check, file_digest
from gramercy.archive.store.archive import Archive
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.listing import ListedFacts
from gramercy.schemas.manifest import ReleaseManifest, WithdrawalManifest

_THREADS = 8


@dataclass(frozen=True)
class DescribedRelease:
    """The description of a release, verified."""

    manifest: ReleaseManifest  # its manifest
    sha256: str  # digest of its SHA256SUMS
    withdrawal: WithdrawalBundle | None  # its notice of withdrawal; None if it was not withdrawn

    @property
    def name(self) -> str:
        """DATASET/RELEASE."""
        return f"{self.manifest.dataset.id}/{self.manifest.release}"

    @property
    def withdrawn(self) -> str | None:
        """The reason of its withdrawal; None if it was not withdrawn."""
        return self.withdrawal.manifest.reason if self.withdrawal else None

    @property
    def listed(self) -> ListedRelease:
        """What a list shows of it."""
        return ListedRelease(ListedFacts.of(self.manifest), self.withdrawn)


def describe_release(archive: Archive, dataset: str, release: str) -> DescribedRelease:
    """The description of a release, verified; its matrices are not read."""
    place = archive.metadata_path(dataset, release)
    name = f"{dataset}/{release}"
    if place is None:
        names = ["/".join(each) for each in archive.releases()]
        raise wordings.unknown_release(archive.location, name, most_similar_first(name, names))
    with archive.rewrite_paths_in_errors():
        manifest = read_release_manifest(place)
        archive.verify_signer(place)
        if (manifest.dataset.id, manifest.release) != (dataset, release):
            raise wordings.wrong_release(str(place / DESCRIPTOR), name)
        sha256 = file_digest(place / SUMS)
        notice = archive.withdrawal(dataset, release)
        if not archive.contains(notice):
            return DescribedRelease(manifest, sha256, None)
        archive.verify_signer(notice)
        withdrawal = read_withdrawal(notice)
        if withdrawal.manifest.release_sha256 != sha256:
            raise wordings.wrong_release(str(notice / DESCRIPTOR), name)
        return DescribedRelease(manifest, sha256, withdrawal)


def try_describe(
    archive: Archive, names: Iterable[tuple[str, str]]
) -> Iterator[DescribedRelease | GramercyError]:
    """For each of these releases, its description or the error that reading it raised."""

    def attempt(name: tuple[str, str]) -> DescribedRelease | GramercyError:
        try:
            return describe_release(archive, *name)
        except GramercyError as error:
            return error

    with ThreadPoolExecutor(_THREADS) as readers:  # at a URL, most of the time is waiting
        yield from readers.map(attempt, names)


NOTICE = "NOTICE.md"


@dataclass(frozen=True)
class WithdrawalBundle:
    """A notice as read from disk; its seal is valid, and its text follows from its manifest."""

    manifest: WithdrawalManifest
    sha256: str


def write_withdrawal(folder: Path, manifest: WithdrawalManifest) -> None:
    """Fill an empty folder with a notice."""
    (folder / NOTICE).write_text(notice_text(manifest), encoding="utf-8", newline="\n")
    write_descriptor(folder, withdrawal_descriptor(folder, manifest))


def withdrawal_descriptor(folder: Path, manifest: WithdrawalManifest) -> dict[str, Any]:
    """The content of datapackage.json for a notice."""
    name = f"{manifest.dataset.id}-{manifest.release}-withdrawn"
    return descriptor(folder, name, f"{manifest.dataset.title}: withdrawn", [NOTICE], manifest)


def read_withdrawal(folder: Path) -> WithdrawalBundle:
    """Read a notice, verified."""
    sha256 = check(folder)
    manifest = read_manifest(folder, WithdrawalManifest)
    try:
        text = (folder / NOTICE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    same_text = text == notice_text(manifest)
    if not same_text or read_descriptor(folder) != withdrawal_descriptor(folder, manifest):
        raise families.DESCRIPTION(
            "{path} contradicts its manifest.",
            "Fetch the bundle again from its curator.",
            path=str(folder / (DESCRIPTOR if same_text else NOTICE)),
        )
    return WithdrawalBundle(manifest, sha256)


def notice_text(manifest: WithdrawalManifest) -> str:
    """The text of NOTICE.md; fixed, because reading a notice compares it with this text."""
    facts = manifest.dataset
    return "\n".join(
        [
            f"# Withdrawn: {markdown_text(facts.title)}, version {facts.version}",
            "",
            f"{markdown_text(facts.curator)} has withdrawn the release "
            f"`{facts.id}/{manifest.release}` on {manifest.date}. "
            "Please use it no longer, nor what was estimated from it.",
            "",
            f"> {markdown_text(manifest.reason)}",
            "",
            "The release stays where it is, so that work that used it can be checked. The privacy "
            "budget that it cost stays spent: what was published cannot be taken back.",
            "",
            "The SHA256SUMS of the release has the SHA-256",
            "",
            f"    {manifest.release_sha256}",
            "",
        ]
    )
