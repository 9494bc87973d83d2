"""The descriptions of releases, verified; their matrices are not read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.bundles.release_bundle import read_release_manifest
from gramercy.archive.bundles.withdrawal_notice import WithdrawalBundle, read_withdrawal
from gramercy.archive.listing.listed_release import ListedRelease
from gramercy.archive.seal.bundle import SUMS, file_digest
from gramercy.archive.store.archive import Archive
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import wordings
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.listing import ListedFacts
from gramercy.schemas.manifest import ReleaseManifest

_THREADS = 8


@dataclass(frozen=True)
class DescribedRelease:
    """The description of a release, verified.

    Parameters
    ----------
    manifest
        Its manifest.
    sha256
        Digest of its SHA256SUMS.
    withdrawal
        Its notice of withdrawal; None if it was not withdrawn.
    """

    manifest: ReleaseManifest
    sha256: str
    withdrawal: WithdrawalBundle | None

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
    """The description of a release, verified; its matrices are not read.

    Raises
    ------
    UnknownRelease
        If no release has this name.
    BundleError
        If the release, or its notice of withdrawal, differs from what was sealed.
    """
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
