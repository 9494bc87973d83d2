"""Write the signed listing of the archive, from its bundles and its pages.

Publishing updates the entries of one data set; ``gramercy site`` writes all of them again. An entry
is never removed and the digest of a bundle in it never changes: a bundle that was lost or replaced
afterwards no longer agrees with the listing, as readers are then warned.

The root is written last, after the pages and the parts that it names. If that is interrupted, the
root before does not name what is new, until the listing and the pages are written again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from gramercy.archive.bundles.descriptions import DescribedRelease, describe_release, try_describe
from gramercy.archive.bundles.package import read_manifest
from gramercy.archive.listing.signed_listing import (
    PartMissingError,
    read_part,
    read_root,
    remove_superseded,
    write_dataset,
    write_root,
)
from gramercy.archive.seal.bundle import SUMS, file_digest
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import CATALOGUE_LOCK, in_release_order, release_page
from gramercy.common.process_lock import HeldLock, file_lock
from gramercy.ledger import Ledger
from gramercy.pipeline.context import Context
from gramercy.schemas.errors import BundleError, GramercyError, Invalid
from gramercy.schemas.ledger_history import Anchor
from gramercy.schemas.listing import (
    LISTING_FORMAT,
    DatasetListing,
    ListedFacts,
    ListingEntry,
    ListingRoot,
    Withdrawal,
)
from gramercy.schemas.manifest import EstimateManifest, ReportManifest

_RELEASE_PAGE = 2  # separators in the name of the page of a release

OnRelease = Callable[[str], None]
_KINDS: dict[str, type[EstimateManifest] | type[ReportManifest]] = {
    "estimates": EstimateManifest,
    "reports": ReportManifest,
}


@dataclass(frozen=True)
class ListingUpdate:
    """The entries of a listing that is to be written."""

    # The root so far; without data sets if there is none, or if it is not valid
    before: ListingRoot
    # The last entry of the ledger before the bundles were read; None without a ledger
    ledger: Anchor | None
    # The releases of the data sets that were read, oldest first
    entries: Mapping[str, tuple[ListingEntry, ...]]
    # Names of the releases of these data sets that cannot be listed, because their descriptions are
    # damaged
    damaged: tuple[str, ...]

    def release_pages(self) -> dict[str, str]:
        """The digests of the pages that releases had before, by their names."""
        return {
            release_page(dataset, each.facts.release): each.page
            for dataset, entries in self.entries.items()
            for each in entries
            if each.page is not None
        }


@contextmanager
def catalogue_lock(context: Context) -> Iterator[HeldLock]:
    """Hold the lock of the listing and the pages, which all publishers of a ledger share."""
    ledger = context.existing_ledger
    if ledger is None:
        with file_lock(context.home.locks, CATALOGUE_LOCK) as lock:
            yield lock
    else:
        with ledger.lock(CATALOGUE_LOCK) as lock:
            yield lock


def read_entries(
    archive: Archive,
    ledger: Ledger | None,
    only: tuple[str, str] | None = None,
    on_release: OnRelease = lambda name: None,
) -> ListingUpdate:
    """Read the entries of a listing from the bundles; the caller holds the `catalogue_lock`.

    Parameters
    ----------
    only
        Data set and release: new bundles of this data set are added, and the attached bundles of
        this release are read again. Default: the entries of all data sets are made again; so they
        are if there is no valid listing.
    """
    head = ledger.head() if ledger is not None else None
    old = _old_root(archive, head)
    before = old or ListingRoot(format=LISTING_FORMAT, datasets={}, pages={})
    from_bundles = old is None or only is None
    bundles = archive.bundles(None if from_bundles or only is None else only[0])
    present: dict[str, dict[str, list[tuple[str, ...]]]] = {}
    for dataset, release, *bundle in bundles:
        present.setdefault(dataset, {}).setdefault(release, []).append(tuple(bundle))
    if from_bundles:
        present |= {dataset: {} for dataset in before.datasets.keys() - present.keys()}
    entries: dict[str, tuple[ListingEntry, ...]] = {}
    damaged: list[str] = []
    for dataset in sorted(present):
        listing = before.datasets.get(dataset)
        known = _entries(archive, dataset, listing)
        changed = None if from_bundles or only is None else only[1]
        made = _Entries(archive, dataset, known, changed, on_release)
        entries[dataset] = tuple(made.of(present[dataset]))
        damaged += made.damaged
    return ListingUpdate(before, head, entries, tuple(damaged))


def write_listing(archive: Archive, update: ListingUpdate, pages: Mapping[str, str]) -> None:
    """Write the parts and then the root; the caller holds the `catalogue_lock`.

    Parameters
    ----------
    pages
        The digests of all pages, by their names; of releases, only of those that were written.
    """
    listings: dict[str, DatasetListing] = dict(update.before.datasets)
    for dataset, entries in update.entries.items():
        listed = [
            each.model_copy(
                update={"page": pages.get(release_page(dataset, each.facts.release), each.page)}
            )
            for each in entries
        ]
        if listed:
            before = update.before.datasets.get(dataset)
            listings[dataset] = write_dataset(archive, dataset, listed, before)
    others = {name: digest for name, digest in pages.items() if name.count("/") < _RELEASE_PAGE}
    root = ListingRoot(format=LISTING_FORMAT, ledger=update.ledger, datasets=listings, pages=others)
    write_root(archive, root)
    for dataset in update.entries:
        remove_superseded(archive, dataset, update.before.datasets.get(dataset), root)


class _Entries:
    """Makes the entries of a data set from its bundles and its entries so far.

    Of releases that have an entry, only the attached bundles of the one that has `changed` are read
    again; all bundles if it is None.
    """

    def __init__(
        self,
        archive: Archive,
        dataset: str,
        known: Mapping[str, ListingEntry],
        changed: str | None,
        on_release: OnRelease,
    ) -> None:
        self._archive, self._dataset, self._known = archive, dataset, known
        self._changed, self._on_release = changed, on_release
        self.damaged: list[str] = []

    def of(self, present: Mapping[str, Collection[tuple[str, ...]]]) -> Iterator[ListingEntry]:
        """The entries of all releases, oldest first; from their bundles, by release id."""
        unread = [
            (self._dataset, release)
            for release, bundles in present.items()
            if ("release",) in bundles and (self._changed is None or release not in self._known)
        ]
        described: dict[str, ListingEntry | None] = {}
        for (_, release), result in zip(unread, try_describe(self._archive, unread), strict=True):
            self._on_release(f"{self._dataset}/{release}")
            described[release] = self._described(release, result)
        names = in_release_order((self._dataset, name) for name in {*present, *self._known})
        for _, release in names:
            entry = described.get(release, self._known.get(release))
            if entry is not None:
                yield self._with_attached(entry, present.get(release, ()))

    def _described(
        self, release: str, result: DescribedRelease | GramercyError
    ) -> ListingEntry | None:
        """The entry of a release as it is; the known one if it was damaged or replaced since."""
        known = self._known.get(release)
        if isinstance(result, GramercyError) and not isinstance(result, Invalid):
            raise result  # a store that cannot be reached does not mean that a bundle is damaged
        if isinstance(result, GramercyError) or (known and known.sha256 != result.sha256):
            self.damaged.append(f"{self._dataset}/{release}")
            return known
        return ListingEntry(
            facts=ListedFacts.of(result.manifest),
            columns=0,
            sha256=result.sha256,
            withdrawn=_withdrawal(result),
            estimates=known.estimates if known else {},
            reports=known.reports if known else {},
            page=known.page if known else None,
        )

    def _with_attached(
        self, entry: ListingEntry, attached: Collection[tuple[str, ...]]
    ) -> ListingEntry:
        """The entry with the attached bundles that it does not name yet."""
        name = entry.facts.dataset.id, entry.facts.release
        changes: dict[str, object] = {}
        if ("withdrawn",) in attached and entry.withdrawn is None:
            with suppress(Invalid):
                changes["withdrawn"] = _withdrawal(describe_release(self._archive, *name))
        for kind, manifest in _KINDS.items():
            listed = dict(getattr(entry, kind))
            for own, *rest in attached:
                for each in rest if own == kind else ():
                    # An estimate that was lost may have been made again, by newer software.
                    is_read = each not in listed or self._changed in {None, name[1]}
                    if is_read and (digest := self._digest(entry, kind, each, manifest)):
                        listed[each] = digest
            changes[kind] = listed
        return entry.model_copy(update=changes)

    def _digest(
        self,
        entry: ListingEntry,
        kind: str,
        name: str,
        manifest: type[EstimateManifest] | type[ReportManifest],
    ) -> str | None:
        """The digest of an estimate or a report; None if it is damaged or of another release."""
        archive, facts = self._archive, entry.facts
        with suppress(BundleError):
            folder = archive.metadata_path(facts.dataset.id, facts.release, kind, name)
            if folder is not None:
                archive.verify_signer(folder)
                if read_manifest(folder, manifest).release_sha256 == entry.sha256:
                    return file_digest(folder / SUMS)
        return None


def _old_root(archive: Archive, head: Anchor | None) -> ListingRoot | None:
    """The root so far; None if there is none, or if it is not valid or of another ledger."""
    with suppress(BundleError):
        signed = read_root(archive)
        if signed is not None and (head is None or signed.root.is_of(head.ledger)):
            return signed.root
    return None


def _entries(
    archive: Archive, dataset: str, listing: DatasetListing | None
) -> dict[str, ListingEntry]:
    """The entries of a data set so far; those of a damaged part are made again."""
    known: dict[str, ListingEntry] = {}
    for digest in listing.parts if listing else ():
        with suppress(BundleError, PartMissingError):
            known |= {each.facts.release: each for each in read_part(archive, dataset, digest)}
    return known


def _withdrawal(described: DescribedRelease) -> Withdrawal | None:
    notice = described.withdrawal
    if notice is None:
        return None
    return Withdrawal(sha256=notice.sha256, reason=notice.manifest.reason)
