"""What an archive holds, by the signed description of each release alone."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gramercy.archive.bundle import SUMS, file_digest
from gramercy.archive.package import DESCRIPTOR
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import read_facts
from gramercy.archive.withdrawal_notice import read_withdrawal
from gramercy.schemas.errors import BundleError, GramercyError, UnknownRelease
from gramercy.schemas.manifest import ReleaseManifest

_AT_ONCE = 8  # releases


@dataclass(frozen=True)
class Listed:
    """A release of an archive.

    Parameters
    ----------
    facts
        What it says of itself.
    withdrawn
        Why it was withdrawn; None where it was not.
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
        """What a search looks at, but for the columns: names, title, curator and mechanism."""
        facts = self.facts
        said = (self.name, facts.dataset.title, facts.dataset.curator, facts.dataset.version)
        return plain(" ".join([*said, str(facts.mechanism["name"]), facts.kind]))

    def has(self, words: str) -> bool:
        """Whether all these words are in its text or its columns, small or capital."""
        text = f"{self.text} {plain(' '.join(self.facts.names))}"
        return all(word in text for word in plain(words).split())


def listed(archive: Archive, dataset: str, release: str) -> Listed:
    """One release; its description is verified, its matrices are not read.

    Raises
    ------
    UnknownRelease
        If there is none of this name.
    BundleError
        If that, or its notice of withdrawal, is not what was sealed.
    """
    place = archive.described(dataset, release)
    if place is None:
        raise UnknownRelease(
            f"{archive.where}: holds no release '{dataset}/{release}'.", "See 'gramercy list'."
        )
    with archive.naming():
        facts = read_facts(place)
        archive.hold_to_key(place)
        if (facts.dataset.id, facts.release) != (dataset, release):
            raise BundleError(f"{place / DESCRIPTOR}: describes another release than its folder's.")
        notice = archive.withdrawal(dataset, release)
        if not archive.holds(notice):
            return Listed(facts, None)
        archive.hold_to_key(notice)
        withdrawn = read_withdrawal(notice).manifest
        if withdrawn.release_sha256 != file_digest(place / SUMS):
            raise BundleError(f"{notice / DESCRIPTOR}: is of another release than its folder's.")
        return Listed(facts, withdrawn.reason)


def listing(archive: Archive, names: Iterable[tuple[str, str]] | None = None) -> list[Listed]:
    """These releases, or all, in the order in which they were published; raises as `listed`."""
    found = []
    for each in attempted(archive, archive.releases() if names is None else names):
        if isinstance(each, GramercyError):
            raise each
        found.append(each)
    return found


def attempted(
    archive: Archive, names: Iterable[tuple[str, str]]
) -> Iterator[Listed | GramercyError]:
    """Each of these releases, or what is wrong with it."""

    def one(name: tuple[str, str]) -> Listed | GramercyError:
        try:
            return listed(archive, *name)
        except GramercyError as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as readers:  # from elsewhere, most of it is waiting
        yield from readers.map(one, names)


def plain(text: str) -> str:
    """A text as a search sees it."""
    return unicodedata.normalize("NFKC", text).upper().lower().replace("ς", "σ")
