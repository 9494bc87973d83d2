"""The releases of an archive, from their signed descriptions; matrices are not read."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gramercy.archive.bundle import SUMS, file_digest
from gramercy.archive.package import DESCRIPTOR
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import read_release_manifest
from gramercy.archive.withdrawal_notice import read_withdrawal
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.problems.archive import unknown_release
from gramercy.schemas.problems.bundle import wrong_release

_THREADS = 8


@dataclass(frozen=True)
class ListedRelease:
    """A release of an archive.

    Parameters
    ----------
    facts
        Its manifest.
    withdrawn
        The reason of its withdrawal; None if it was not withdrawn.
    """

    facts: ReleaseManifest
    withdrawn: str | None

    @property
    def key(self) -> tuple[str, str]:
        """(dataset, release id)."""
        return self.facts.dataset.id, self.facts.release

    @property
    def name(self) -> str:
        """DATASET/RELEASE."""
        return "/".join(self.key)

    @property
    def text(self) -> str:
        """The text that is searched, except column names: id, title, curator, mechanism, kind."""
        facts = self.facts
        parts = (self.name, facts.dataset.title, facts.dataset.curator, facts.dataset.version)
        return search_text(" ".join([*parts, str(facts.mechanism["name"]), facts.kind]))

    def matches(self, words: str) -> bool:
        """Whether its text or its column names contain all these words, ignoring case."""
        text = f"{self.text} {search_text(' '.join(self.facts.names))}"
        return all(word in text for word in search_text(words).split())


def list_release(archive: Archive, dataset: str, release: str) -> ListedRelease:
    """One release; its description is verified, its matrices are not read.

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
        raise unknown_release(archive.location, name, most_similar_first(name, names))
    with archive.rewrite_paths_in_errors():
        facts = read_release_manifest(place)
        archive.verify_signer(place)
        if (facts.dataset.id, facts.release) != (dataset, release):
            raise wrong_release(str(place / DESCRIPTOR), name)
        notice = archive.withdrawal(dataset, release)
        if not archive.contains(notice):
            return ListedRelease(facts, None)
        archive.verify_signer(notice)
        withdrawn = read_withdrawal(notice).manifest
        if withdrawn.release_sha256 != file_digest(place / SUMS):
            raise wrong_release(str(notice / DESCRIPTOR), name)
        return ListedRelease(facts, withdrawn.reason)


def list_all(
    archive: Archive, names: Iterable[tuple[str, str]] | None = None
) -> list[ListedRelease]:
    """These releases, or all, in the order of publication; raises as `list_release`."""
    releases = []
    for result in try_list(archive, archive.releases() if names is None else names):
        if isinstance(result, GramercyError):
            raise result
        releases.append(result)
    return releases


def try_list(
    archive: Archive, names: Iterable[tuple[str, str]]
) -> Iterator[ListedRelease | GramercyError]:
    """For each of these releases, the release or the error that reading it raised."""

    def attempt(name: tuple[str, str]) -> ListedRelease | GramercyError:
        try:
            return list_release(archive, *name)
        except GramercyError as error:
            return error

    with ThreadPoolExecutor(_THREADS) as readers:  # at a URL, most of the time is waiting
        yield from readers.map(attempt, names)


def search_text(text: str) -> str:
    """A text in the form in which searches compare it."""
    return unicodedata.normalize("NFKC", text).upper().lower().replace("ς", "σ")


def newest_of_periods(releases: Iterable[ListedRelease]) -> dict[str, ListedRelease]:
    """The newest release of each period of the data, by its label, in the order of the periods.

    Only releases with a second moment that were not withdrawn; oldest first in `releases`.
    """
    newest = {
        each.facts.period.label: each
        for each in releases
        if each.facts.period is not None
        and each.withdrawn is None
        and each.facts.kind not in {"marginals", "precision"}
    }
    return {label: newest[label] for label in sorted(newest)}
