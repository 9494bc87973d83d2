"""What an archive contains, for readers: by its signed listing, and by searching it.

A folder is searched for names, because that is fast, and so that a release that is not listed yet
is shown. An object store is searched only if it has no listing, and an HTTP address never. Facts
come from the listing where it names a release, otherwise from the release itself. Whatever is
opened afterwards is verified, and compared with the digest in the listing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from gramercy.archive.listing.signed_listing import (
    PartMissingError,
    load_part,
    read_part,
    read_root,
)
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import LISTING_FILE, Name, in_release_order
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import BundleError, GramercyError
from gramercy.schemas.listing import ListedFacts, ListingEntry, ListingRoot


@dataclass(frozen=True)
class ListedRelease:
    """A release of an archive."""

    facts: ListedFacts  # The facts by which it is listed
    withdrawn: str | None  # The reason of its withdrawal; None if it was not withdrawn

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
        return search_text(" ".join([*parts, facts.mechanism.name, facts.kind]))

    def matches(self, words: str) -> bool:
        """Whether its text or its column names contain all these words, ignoring case."""
        text = f"{self.text} {search_text(' '.join(self.facts.names))}"
        return all(word in text for word in search_text(words).split())


def search_text(text: str) -> str:
    """A text in the form in which searches compare it."""
    return unicodedata.normalize("NFKC", text).upper().lower().replace("ς", "σ")


def newest_of_periods(releases: Iterable[ListedRelease]) -> dict[str, ListedRelease]:
    """The newest release of each period of the data, by its label, in the order of the periods.

    Only releases with a second moment that were not withdrawn; oldest first in `releases`. Of each
    period it is the newest with the columns that most periods have (of several such sets of
    columns, those of the newest release), so that the periods can be compared and pooled. A period
    without these columns has its newest release. Of a cumulative series it is the last step.
    """
    usable = [
        each
        for each in releases
        if each.facts.period is not None
        and each.withdrawn is None
        and each.facts.publication.is_moment
    ]
    periods: dict[tuple[str, ...], set[str | None]] = {}
    for each in reversed(usable):
        periods.setdefault(tuple(each.facts.names), set()).add(each.facts.period)
    usual = max(periods, key=lambda names: len(periods[names]), default=())
    newest = {each.facts.period: each for each in usable}
    newest |= {each.facts.period: each for each in usable if tuple(each.facts.names) == usual}
    last = {label: _last_step(usable, newest[label]) for label in newest}
    return {label: last[label] for label in sorted(filter(None, last))}


def newest_step(releases: Iterable[ListedRelease]) -> ListedRelease | None:
    """The last step of the cumulative series that was continued last; None without one.

    It need not be the newest release: a step that is drawn again is published after later ones.
    Only steps that were not withdrawn; oldest first in `releases`.
    """
    steps = [each for each in releases if each.withdrawn is None and each.facts.step is not None]
    return _last_step(steps, steps[-1]) if steps else None


def _last_step(releases: Sequence[ListedRelease], newest: ListedRelease) -> ListedRelease:
    """The release of the last step of the series of a release; itself without a series."""
    own = newest.facts.step
    steps = [(k, each.facts.step) for k, each in enumerate(releases)]
    of_series = [(each.step, k) for k, each in steps if own and each and each.series == own.series]
    return releases[max(of_series)[1]] if of_series else newest


_ATTEMPTS = 3
_THREADS = 8

Entries = dict[Name, ListingEntry]
Listed = dict[Name, ListedRelease | GramercyError]
_ReadPart = Callable[[Archive, str, str], tuple[ListingEntry, ...]]


@dataclass(frozen=True)
class Contents:
    """What an archive contains, for readers."""

    archive: Archive  # The archive. Of an archive at an HTTP address, a valid listing is required.

    def unusable_listing(self) -> BundleError | None:
        """Why the listing of the archive is not used, if it has one."""
        try:
            read_root(self.archive)
        except BundleError as error:
            return error
        return None

    def names(self, dataset: str | None = None) -> list[Name]:
        """(dataset, release id) of all releases, or of those of one data set.

        Oldest first in each data set; those that are not listed are last, by their ids.
        """
        listed = self._entries(dataset)
        found = {*(listed or {}), *self._searched(listed, dataset)}
        return in_release_order(found, _charged(listed or {}))

    def list_all(self, names: Iterable[Name] | None = None) -> list[ListedRelease]:
        """These releases, or all, as `try_list` does; raises what keeps one from being shown."""
        results = self.try_list().values() if names is None else self.try_list(names).values()
        releases = []
        for result in results:
            if isinstance(result, GramercyError):
                raise result
            releases.append(result)
        return releases

    def try_list(self, names: Iterable[Name] | None = None, *, also: Iterable[Name] = ()) -> Listed:
        """What lists show of releases, or why it cannot be shown, by name.

        In each data set in the order of publication; last are those of which it is not known.
        """
        wanted = None if names is None else set(names)
        datasets = {dataset for dataset, _ in wanted or ()}
        dataset = datasets.pop() if len(datasets) == 1 else None
        entries = self._entries(dataset)
        searched = set(self._searched(entries, dataset))
        if wanted is None:
            wanted = {*(entries or {}), *searched, *also}
        return self._results(wanted, entries or {}, searched)

    def list_in_turn(self, also: Iterable[Name] = ()) -> Iterator[Listed]:
        """What `try_list` returns for all releases, some data sets at a time.

        Without the names of columns; memory does not grow with the listing. Raises as `try_list`.
        """
        root = self._root()
        if root is None:
            yield self.try_list(also=also)
            return
        searched, expected = _by_dataset(self._searched({}, None)), _by_dataset(also)
        datasets = sorted({*root.datasets, *searched, *expected})
        for dataset, entries in self.entries_in_turn(datasets):
            if entries is None:
                names = set(self._searched(None, dataset))
            else:
                names = searched.get(dataset, set())
            wanted = {*(entries or {}), *names, *expected.get(dataset, ())}
            yield self._results(wanted, entries or {}, names)

    def _results(
        self, wanted: Collection[Name], listed: Entries, searched: Collection[Name]
    ) -> Listed:
        """What lists show of these releases, where they are listed or were found."""
        described = self._described([name for name in wanted if name not in listed])
        releases = {k: each for k, each in described.items() if isinstance(each, ListedRelease)}
        results: Listed = {}
        for name in in_release_order(wanted, _charged(listed) | _charged(releases)):
            entry = listed.get(name)
            if entry is None:
                results[name] = described[name]
            elif self.archive.is_folder and name not in searched:
                path = "/".join((self.archive.location, *name))
                results[name] = wordings.listed_bundle_missing(path)
            else:
                withdrawn = entry.withdrawn.reason if entry.withdrawn else None
                results[name] = ListedRelease(entry.facts, withdrawn)
        return results

    def entry(self, dataset: str, release: str) -> ListingEntry | None:
        """The entry of a release in the listing; None if the listing does not name it."""
        return self.entries(dataset).get((dataset, release))

    def entries(self, dataset: str | None = None) -> Entries:
        """The releases in the listing, all or of one data set; none without a valid listing."""
        return self._entries(dataset) or {}

    def entries_in_turn(self, datasets: Sequence[str]) -> Iterator[tuple[str, Entries | None]]:
        """The releases in the listing of each of these data sets; None without a valid listing.

        A few data sets at a time are in memory, without the names of columns, and nothing of them
        is cached; raises as `names`.
        """
        root = self._root()
        for start in range(0, len(datasets), _THREADS):
            names = datasets[start : start + _THREADS]
            listed: Entries | None = None
            if root is not None:
                with suppress(BundleError, PartMissingError):
                    listed = self._of_root(root, names, _without_names)
            for name in names:
                if listed is None:
                    yield name, self._entries(name)
                else:
                    yield name, {key: entry for key, entry in listed.items() if key[0] == name}

    def _root(self) -> ListingRoot | None:
        """The root of the listing; None if it is missing or not valid."""
        with suppress(BundleError):  # `_entries` raises it, or does without the listing
            signed = read_root(self.archive)
            return None if signed is None else signed.root
        return None

    def _described(self, names: Sequence[Name]) -> Listed:
        """These releases, from their own descriptions."""
        if not names:
            return {}
        # Reads tables as well: imported only where the listing does not suffice.
        from gramercy.archive.bundles.bundle_kinds import DescribedRelease, try_describe

        results = zip(names, try_describe(self.archive, names), strict=True)
        return {
            name: ListedRelease(ListedFacts.of(result.manifest), result.withdrawn)
            if isinstance(result, DescribedRelease)
            else result
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
                    return self._of_root(signed.root, None if dataset is None else [dataset])
                except PartMissingError:  # a newer listing was written in the meantime
                    continue
        except BundleError:
            if self.archive.needs_listing:
                raise
            return None
        if self.archive.needs_listing:
            raise families.STORE(
                "{path} changes while it is read.",
                "Try again.",
                path=f"{self.archive.location}/{LISTING_FILE}",
            )
        return None

    def _of_root(
        self, root: ListingRoot, datasets: Iterable[str] | None, read: _ReadPart = read_part
    ) -> Entries:
        names = root.datasets if datasets is None else root.datasets.keys() & datasets
        wanted = [(name, digest) for name in names for digest in root.datasets[name].parts]
        if self.archive.is_folder:
            parts = [read(self.archive, *each) for each in wanted]
        else:
            with ThreadPoolExecutor(_THREADS) as readers:
                parts = list(readers.map(lambda each: read(self.archive, *each), wanted))
        return {
            (name, entry.facts.release): entry
            for (name, _), entries in zip(wanted, parts, strict=True)
            for entry in entries
        }


def _without_names(archive: Archive, dataset: str, digest: str) -> tuple[ListingEntry, ...]:
    """The releases in a part, without the names of their columns."""
    return load_part(archive, dataset, digest).releases


def _charged(releases: Mapping[Name, ListedRelease | ListingEntry]) -> dict[Name, int]:
    return {name: each.facts.charged for name, each in releases.items()}


def _by_dataset(names: Iterable[Name]) -> dict[str, set[Name]]:
    by_dataset: dict[str, set[Name]] = {}
    for name in names:
        by_dataset.setdefault(name[0], set()).add(name)
    return by_dataset


def bundle_digests(name: tuple[str, str], entry: ListingEntry) -> dict[tuple[str, ...], str]:
    """The digests of a release and its attached bundles, by the components of their paths."""
    digests: dict[tuple[str, ...], str] = {(*name, "release"): entry.sha256}
    if entry.withdrawn is not None:
        digests[*name, "withdrawn"] = entry.withdrawn.sha256
    for kind in ("estimates", "reports"):
        digests |= {(*name, kind, each): digest for each, digest in getattr(entry, kind).items()}
    return digests
