"""What an archive contains, for readers: by its signed listing, and by searching it.

A folder is searched for names, because that is fast, and so that a release that is not listed yet
is shown. An object store is searched only if it has no listing, and an HTTP address never. Facts
come from the listing where it names a release, otherwise from the release itself. Whatever is
opened afterwards is verified, and compared with the digest in the listing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gramercy.archive.layout import LISTING_FILE, in_release_order
from gramercy.archive.listing import ListedRelease
from gramercy.archive.protocol import Archive
from gramercy.archive.signed_listing import PartMissingError, read_part, read_root
from gramercy.schemas.errors import BundleError, GramercyError
from gramercy.schemas.listing import ListingEntry, ListingRoot
from gramercy.schemas.problems.listing import listed_bundle_missing, listing_changing

_ATTEMPTS = 3
_THREADS = 8

Name = tuple[str, str]
Entries = dict[Name, ListingEntry]


@dataclass(frozen=True)
class Contents:
    """What an archive contains, for readers.

    Parameters
    ----------
    archive
        The archive. Of an archive at an HTTP address, a valid listing is required.
    """

    archive: Archive

    def unusable_listing(self) -> BundleError | None:
        """Why the listing of the archive is not used, if it has one."""
        try:
            read_root(self.archive)
        except BundleError as error:
            return error
        return None

    def names(self, dataset: str | None = None) -> list[Name]:
        """(dataset, release id) of all releases, or of those of one data set.

        Oldest first in each data set.

        Raises
        ------
        BundleError, ArchiveError
            If the archive cannot be read; of an archive at an HTTP address, also if the listing is
            not valid.
        """
        listed = self._entries(dataset)
        return in_release_order({*(listed or {}), *self._searched(listed, dataset)})

    def list_all(self, names: Iterable[Name] | None = None) -> list[ListedRelease]:
        """These releases, or all, in the order of publication; raises as `try_list`."""
        results = self.try_list().values() if names is None else self.try_list(names).values()
        releases = []
        for result in results:
            if isinstance(result, GramercyError):
                raise result
            releases.append(result)
        return releases

    def try_list(
        self, names: Iterable[Name] | None = None, *, also: Iterable[Name] = ()
    ) -> dict[Name, ListedRelease | GramercyError]:
        """What lists show of releases, or why it cannot be shown, by name.

        Parameters
        ----------
        names
            The releases; default: all, oldest first in each data set.
        also
            With all releases, these as well, which the archive should have.

        Raises
        ------
        BundleError, ArchiveError
            As `names`.
        """
        wanted = None if names is None else list(names)
        datasets = {dataset for dataset, _ in wanted or ()}
        dataset = datasets.pop() if len(datasets) == 1 else None
        entries = self._entries(dataset)
        listed, searched = entries or {}, set(self._searched(entries, dataset))
        if wanted is None:
            wanted = in_release_order({*listed, *searched, *also})
        described = self._described([name for name in wanted if name not in listed])
        results: dict[Name, ListedRelease | GramercyError] = {}
        for name in wanted:
            entry = listed.get(name)
            if entry is None:
                results[name] = described[name]
            elif self.archive.is_folder and name not in searched:
                path = "/".join((self.archive.location, *name))
                results[name] = listed_bundle_missing(path)
            else:
                withdrawn = entry.withdrawn.reason if entry.withdrawn else None
                results[name] = ListedRelease(entry.facts, withdrawn)
        return results

    def entry(self, dataset: str, release: str) -> ListingEntry | None:
        """The entry of a release in the listing; None if the listing does not name it.

        Raises
        ------
        BundleError, ArchiveError
            As `names`.
        """
        return self.entries(dataset).get((dataset, release))

    def entries(self, dataset: str | None = None) -> Entries:
        """The releases in the listing, all or of one data set; none without a valid listing.

        Raises
        ------
        BundleError, ArchiveError
            As `names`.
        """
        return self._entries(dataset) or {}

    def _described(self, names: Sequence[Name]) -> dict[Name, ListedRelease | GramercyError]:
        """These releases, from their own descriptions."""
        if not names:
            return {}
        # Reads tables as well: imported only where the listing does not suffice.
        from gramercy.archive.descriptions import DescribedRelease, try_describe

        results = zip(names, try_describe(self.archive, names), strict=True)
        return {
            name: result.listed if isinstance(result, DescribedRelease) else result
            for name, result in results
        }

    def _searched(self, listed: Entries | None, dataset: str | None) -> list[Name]:
        """The releases that are found by searching, where the archive is searched."""
        if self.archive.is_folder or (listed is None and not self.archive.needs_listing):
            return self.archive.releases(dataset)
        return []

    def _entries(self, dataset: str | None) -> Entries | None:
        """The releases in the listing, all or of one data set; None without a valid listing."""
        try:
            for _ in range(_ATTEMPTS):
                signed = read_root(self.archive)
                if signed is None:
                    return None
                try:
                    return self._of_root(signed.root, dataset)
                except PartMissingError:  # a newer listing was written in the meantime
                    continue
        except BundleError:
            if self.archive.needs_listing:
                raise
            return None
        if self.archive.needs_listing:
            raise listing_changing(f"{self.archive.location}/{LISTING_FILE}")
        return None

    def _of_root(self, root: ListingRoot, dataset: str | None) -> Entries:
        wanted = [
            (name, digest)
            for name, listing in root.datasets.items()
            if dataset in {None, name}
            for digest in listing.parts
        ]
        with ThreadPoolExecutor(_THREADS) as readers:
            parts = list(readers.map(lambda each: read_part(self.archive, *each), wanted))
        return {
            (name, entry.facts.release): entry
            for (name, _), entries in zip(wanted, parts, strict=True)
            for entry in entries
        }


def bundle_digests(name: tuple[str, str], entry: ListingEntry) -> dict[tuple[str, ...], str]:
    """The digests of a release and its attached bundles, by the components of their paths."""
    digests: dict[tuple[str, ...], str] = {(*name, "release"): entry.sha256}
    if entry.withdrawn is not None:
        digests[*name, "withdrawn"] = entry.withdrawn.sha256
    for kind in ("estimates", "reports"):
        digests |= {(*name, kind, each): digest for each, digest in getattr(entry, kind).items()}
    return digests
