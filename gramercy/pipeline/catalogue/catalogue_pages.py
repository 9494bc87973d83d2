"""Write the listing and the pages of the catalogue, from the archive's bundles and the ledger.

Publishing updates the entries of one data set; ``gramercy site`` makes all of them again, and
writes the pages that are not as they should be. The listing has the digest of every page, and of
what it was made from: the digests of the bundles, what the ledger says, and the program. A page is
left as it is only if both are the same, and no file of its bundles was changed.

An entry is never removed and the digest of a bundle in it never changes: a bundle that was lost or
replaced afterwards no longer agrees with the listing, as readers are then warned.

The root is written last, after the pages and the parts that it names. If that is interrupted, the
root before does not name what is new, until the listing and the pages are written again.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType

from gramercy import mechanisms
from gramercy.archive.bundles.bundle_kinds import (
    PAGE,
    DescribedRelease,
    EstimateBundle,
    ReleaseBundle,
    describe_release,
    read_estimate,
    read_release,
    read_report,
    software_versions,
    try_describe,
)
from gramercy.archive.bundles.card import file_description
from gramercy.archive.bundles.package import DESCRIPTOR, read_manifest
from gramercy.archive.bundles.steps import window
from gramercy.archive.listing.contents import (
    ListedRelease,
    bundle_digests,
    newest_of_periods,
    newest_step,
)
from gramercy.archive.listing.signed_listing import (
    NEWEST,
    PartMissingError,
    read_part,
    read_root,
    with_names,
    write_dataset,
    write_root,
)
from gramercy.archive.seal.bundle import SEAL, SIGNATURE, SUMS, check, content, file_digest
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import (
    CATALOGUE_LOCK,
    GLOSSARY,
    INDEX,
    PAGE_BYTES,
    bundle_path,
    in_release_order,
    is_page,
    older_page,
    part_name,
    release_page,
)
from gramercy.common.process_lock import HeldLock, file_lock
from gramercy.common.software import source_digest
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.pooling.agreement import check_agreement
from gramercy.estimators.pooling.pool import pooled
from gramercy.estimators.table_comparison import (
    comparable,
    is_in_own_units,
    measure,
    numbers,
    numbers_over_time,
    over_time,
)
from gramercy.estimators.tuning.parallel import parallel_map, reporting_progress
from gramercy.ledger import Ledger
from gramercy.ledger.timelines import approximate_spent
from gramercy.mechanisms.accounting.composition import NO_CHARGES
from gramercy.pipeline.context import Context
from gramercy.pipeline.page_links import archive_links
from gramercy.pipeline.publish.attachments import DRAWING
from gramercy.pipeline.publish.internal_record import page_path, refresh_page
from gramercy.reports import catalogue_page
from gramercy.reports.catalogue_page import BudgetState, DatasetEntry, DatasetPage
from gramercy.reports.period_series import PeriodSeries, StepSeries
from gramercy.reports.release_comparison import ReleaseComparison, compare_releases
from gramercy.schemas.errors import (
    ArchiveError,
    BundleError,
    GramercyError,
    Invalid,
    RequestError,
)
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.ledger_history import Anchor, Timeline
from gramercy.schemas.listing import (
    LISTING_FORMAT,
    DatasetListing,
    ListedFacts,
    ListingEntry,
    ListingRoot,
    Withdrawal,
)
from gramercy.schemas.manifest import EstimateManifest, ReleaseManifest, ReportManifest
from gramercy.schemas.model import digest

_MOST_COMPARED = 20  # earlier releases, in search of one that is comparable with the newest


def catalogue(context: Context, dataset: str, release: str) -> None:
    """Write the pages that a release changes, and the listing."""
    write_site(context, (dataset, release))


def write_site(
    context: Context,
    only: tuple[str, str] | None = None,
    on_release: OnRelease = lambda name: None,
) -> int:
    """Write the pages of a release and those that list it, or all pages; and then the listing.

    Returns the number of releases whose pages are as they should be, of those that were looked at.

    With the page of a release go those of other releases of its data set that were published or
    estimated from since the last listing, so that several releases need one call. Without a valid
    listing, all pages are written.

    Parameters
    ----------
    on_release
        Called with the name of each release that is read for the listing or for its page.
    """
    archive, ledger = context.archive, context.existing_ledger
    with catalogue_lock(context):
        update = read_entries(archive, ledger, only, on_release)
        if not update.before.datasets:
            only = None  # no listing says which pages there are: write all of them
        known = {} if only is None else update.before.pages
        pages = _Pages(archive, ledger, on_release, known, update.before)
        read = {name: x for name, x in update.entries.items() if only is None or only[0] == name}
        released = None if only is None else {only[1], *update.changed}
        pages.write_releases([entry for each in read.values() for entry in each], released)
        changed = {}
        for dataset, entries in read.items():
            damaged = [name for name in update.damaged if name.startswith(f"{dataset}/")]
            changed[dataset] = pages.write_dataset(dataset, entries, damaged, released)
        pages.write_index(update, changed)
        listed = set(pages.digests) | {
            release_page(dataset, each.facts.release)
            for dataset, entries in update.entries.items()
            for each in entries
            if each.page is not None
        }
        for name in archive.other_files() if only is None else known:
            if is_page(name) and name not in listed:
                archive.remove_file(name)
        write_listing(archive, update, pages.digests, pages.made_from)  # last: it names the pages
    for name in pages.written:
        dataset, _, release = name.partition("/")
        page = page_path(context.home, dataset, release)
        links = archive_links(context, page, exists=lambda name: True)  # just written
        refresh_page(context.home, dataset, release, links)
    return len(pages.written) + pages.kept


@dataclass
class _Pages:
    """Writes pages; has their digests, and lists the releases whose pages it wrote.

    Of the `known` pages, by their names and digests, those that do not change are left as they are.
    """

    archive: Archive
    ledger: Ledger | None
    on_release: OnRelease
    known: Mapping[str, str]
    before: ListingRoot
    digests: dict[str, str] = field(default_factory=dict)
    # digests of what pages of releases and data sets were made from, by their names; None if they
    # are to be made again in any case
    made_from: dict[str, str | None] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)  # names of damaged releases
    kept: int = 0  # number of releases whose pages were looked at, and left as they are
    # digest of the program that writes the pages, with the packages that draw their figures
    program: str = field(
        default_factory=lambda: digest([source_digest(), software_versions(*DRAWING)])
    )

    def write_releases(
        self, entries: Iterable[ListingEntry], changed: Collection[str] | None
    ) -> None:
        """Write the pages of releases.

        `changed`: the ids of the releases whose pages are written; None for all that are not as
        they should be.
        """
        outdated = list[tuple[ListedRelease, str]]()
        for entry in entries:
            release = _listed(entry)
            if changed is not None and release.facts.release not in changed:
                continue
            source, page = self._source(entry), release_page(*release.key)
            if changed is None and self._is_current(entry, source):
                self.on_release(release.name)
                self.digests[page] = str(entry.page)
                self.kept += 1
            else:
                outdated.append((release, source))
        write, names = partial(_write_release, self.archive), [each.name for each, _ in outdated]
        # Of many in a folder, half are written by another process.
        in_order = parallel_map if self.archive.is_folder else map
        with reporting_progress(lambda done, of: self.on_release(names[done - 1])):
            digests = list(in_order(write, [release for release, _ in outdated]))
        for (release, source), written in zip(outdated, digests, strict=True):
            if written is None:
                self.unreadable.add(release.name)
            else:
                page = release_page(*release.key)
                self.digests[page], self.made_from[page] = written, source
                self.written.append(release.name)

    def write_dataset(
        self,
        dataset: str,
        entries: Sequence[ListingEntry],
        damaged: Sequence[str],
        changed: Collection[str] | None,
    ) -> DatasetEntry:
        """Write the pages of a data set; returns its entry. `changed`: see `write_releases`."""
        releases = list(map(_listed, entries))
        unreadable = {*damaged, *(each.name for each in releases if each.name in self.unreadable)}
        intact = [each for each in releases if each.name not in unreadable]
        timelines: tuple[Timeline, ...] = ()
        if self.ledger is not None and dataset in self.ledger.datasets():
            timelines = self.ledger.timelines(dataset)
        listed = DatasetEntry(dataset, intact[-NEWEST:], len(intact), sorted(unreadable))
        source = None  # of a series, the page says which steps are late today
        if all(each.facts.step is None for each in intact):
            # The digest is public: of other facts, it would confirm a guess.
            facts = [[each.window, *(x.public_facts() for x in each.events)] for each in timelines]
            sources = [self._source(each) for each in entries]
            source = digest([sources, sorted(unreadable), facts])
        if changed is None and source and self._is_current_dataset(dataset, source):
            return listed
        self.made_from[f"{dataset}/{INDEX}"] = source
        newest = self._description(intact)
        page = DatasetPage(
            dataset,
            intact,
            sorted(unreadable),
            newest.manifest if newest else None,
            timelines,
            self._latest_change(intact, newest),
            period_series(self.archive, intact),
            step_series(self.archive, intact, timelines),
        )
        self._write(f"{dataset}/{INDEX}", catalogue_page.dataset_page(page))
        # A new release only fills the last page of older ones; a withdrawal changes its own page.
        older = {page.older_pages, *map(page.page_of, changed or ())}
        for number in range(1, page.older_pages + 1):
            name = older_page(dataset, number)
            if name in self.known and number not in older:
                self.digests[name] = self.known[name]
            else:
                self._write(name, catalogue_page.older_releases_page(page, number))
        return listed

    def _source(self, entry: ListingEntry) -> str:
        """Digest of all that the page of a release depends on."""
        name = entry.facts.dataset.id, entry.facts.release
        bundles = {"/".join(each): sums for each, sums in bundle_digests(name, entry).items()}
        return digest([self.program, _shown_location(self.archive), bundles])

    def _is_current(self, entry: ListingEntry, source: str) -> bool:
        """Whether the page of a release is as it was written, and would be written again."""
        if entry.page is None or entry.made_from != source:
            return False
        page = release_page(entry.facts.dataset.id, entry.facts.release)
        return self._has(page, entry.page) and _is_intact(self.archive, entry)

    def _is_current_dataset(self, dataset: str, source: str) -> bool:
        """The same of the pages of a data set, which are then listed as they are."""
        listing = self.before.datasets.get(dataset)
        own = {
            name: each for name, each in self.before.pages.items() if name.startswith(f"{dataset}/")
        }
        if not own or listing is None or listing.made_from != source:
            return False
        if not all(self._has(name, each) for name, each in own.items()):
            return False
        self.digests |= own
        return True

    def _has(self, page: str, expected: str) -> bool:
        """Whether a page of the archive is the one with this digest."""
        with suppress(BundleError, ArchiveError):  # a link, or a file that cannot be read
            content = self.archive.read_file(page, PAGE_BYTES)
            return content is not None and hashlib.sha256(content).hexdigest() == expected
        return False

    def write_index(self, update: ListingUpdate, changed: Mapping[str, DatasetEntry]) -> None:
        """Write the list of data sets and the glossary; entries not given are of the listing.

        Pages that have not changed are left as they are.
        """
        budgets, before = self._budgets(), update.before.datasets
        read = {name: each for name, each in update.entries.items() if each}
        datasets = []
        for name in sorted({*before, *read, *changed}):
            entry = changed.get(name)
            if entry is None:
                entries = read.get(name) or with_names(before[name].newest)
                count = len(read[name]) if name in read else before[name].releases
                entry = DatasetEntry(name, list(map(_listed, entries[-NEWEST:])), count)
            datasets.append(replace(entry, budgets=budgets.get(name, ())))
        for name, html in catalogue_page.index_pages(datasets):
            self._write(name, html)
        described = [each.description() for each in mechanisms.registry.values()]
        self._write(GLOSSARY, catalogue_page.glossary_page(described))
        for name, known in self.known.items():
            if "/" in name and name.split("/")[0] not in changed:
                self.digests[name] = known

    def _write(self, name: str, html: str) -> None:
        self.digests[name] = self.archive.write_page(name, html)

    def _budgets(self) -> dict[str, list[BudgetState]]:
        """What is spent of every budget, by data set."""
        by_dataset = self.ledger.statements_by_dataset() if self.ledger is not None else {}
        charged = [
            (name, each)
            for name, statements in by_dataset.items()
            for each in statements
            if each.charged != NO_CHARGES
        ]
        budgets: dict[str, list[BudgetState]] = {}
        spent = approximate_spent([each for _, each in charged])
        for (name, each), so_far in zip(charged, spent, strict=True):
            state = BudgetState(each.window, so_far, each.budget.epsilon, each.budget.delta)
            budgets.setdefault(name, []).append(state)
        return budgets

    def _description(self, releases: Sequence[ListedRelease]) -> DescribedRelease | None:
        """The newest release that is not withdrawn, or else the newest; None if it is damaged."""
        valid = [release for release in releases if release.withdrawn is None]
        for newest in [*valid[-1:], *releases[-1:]][:1]:
            with contextlib.suppress(BundleError):
                return describe_release(self.archive, *newest.key)
        return None

    def _latest_change(
        self, releases: Sequence[ListedRelease], later: DescribedRelease | None
    ) -> ReleaseComparison | None:
        """The newest release compared with the last one before it that is comparable."""
        valid = [release for release in releases if release.withdrawn is None]
        if later is None or later.withdrawn is not None:
            return None
        for each in [*reversed(valid[:-1])][:_MOST_COMPARED]:
            with contextlib.suppress(BundleError):  # damaged: use an earlier one
                earlier = describe_release(self.archive, *each.key)
                if comparable(later.manifest, earlier.manifest):
                    return compare_releases(self.archive, later, earlier)
        return None


def _is_intact(archive: Archive, entry: ListingEntry) -> bool:
    """Whether all bundles of a release are those that were listed, and no file was changed."""
    name = entry.facts.dataset.id, entry.facts.release
    places = {
        bundle_path(archive.root, *path): sums for path, sums in bundle_digests(name, entry).items()
    }
    with suppress(BundleError):
        return all(archive.contains(each) and check(each) == sums for each, sums in places.items())
    return False


def _listed(entry: ListingEntry) -> ListedRelease:
    return ListedRelease(entry.facts, entry.withdrawn.reason if entry.withdrawn else None)


def _write_release(archive: Archive, listed: ListedRelease) -> str | None:
    """Write the page of a release; returns its digest, or None if the release is damaged."""
    try:
        return archive.write_page(release_page(*listed.key), release_html(archive, listed))
    except BundleError:
        return None


def release_html(archive: Archive, listed: ListedRelease) -> str:
    """The page of a release, after verifying the release."""
    dataset, name = listed.facts.dataset.id, listed.facts.release
    place = archive.release(dataset, name)
    with archive.rewrite_paths_in_errors():
        bundle = read_release(place)
    estimates, reports = list[EstimateBundle](), dict[str, int]()
    downloads = {"release": [*_files(place, "release")]}
    # Estimates and reports that are damaged or of another release are left out of the page.
    for estimate in archive.estimates(dataset, name):
        folder = archive.estimate(dataset, name, estimate)
        try:
            read = read_estimate(folder)
        except BundleError:
            continue
        if read.manifest.release_sha256 == bundle.sha256:
            estimates.append(read)
            downloads[estimate] = [*_files(folder, f"estimates/{estimate}")]
    for report in archive.reports(dataset, name):
        with contextlib.suppress(BundleError):
            facts = read_report(archive.report(dataset, name, report)).manifest
            if facts.release_sha256 == bundle.sha256:
                reports[f"reports/{report}/{PAGE}"] = len(facts.estimates)
    return catalogue_page.release_page(
        bundle, listed, estimates, reports, downloads, _shown_location(archive)
    )


def _shown_location(archive: Archive) -> str:
    """Where an archive is, on public pages."""
    return archive.location if "://" in archive.location else "path/to/archive"


_DESCRIPTIONS = {
    DESCRIPTOR: "every public fact, for programs (Data Package)",
    SUMS: "the SHA-256 of every file",
    SIGNATURE: "the curator's signature of SHA256SUMS",
}


def _files(folder: Path, url: str) -> Iterator[catalogue_page.Download]:
    for name in [*content(folder), *sorted(SEAL)]:
        path = folder / name
        about = _DESCRIPTIONS.get(name) or (file_description(name) if url == "release" else "")
        about = "the guarantee in words" if name == "CARD.md" else about
        yield catalogue_page.Download(
            f"{url}/{name}", path.stat().st_size, file_digest(path), about
        )


_SHOWN_PERIODS = 12
_MOST_COLUMNS = 100  # of a matrix whose numbers are compared over time


def period_series(archive: Archive, releases: Sequence[ListedRelease]) -> PeriodSeries | None:
    """The newest release of each of the last periods; None if there are fewer than two.

    Damaged bundles, releases of unit rows and very large matrices are listed without numbers.
    """
    newest = newest_of_periods(releases)
    if len(newest) < 2:
        return None
    shown = dict([*newest.items()][-_SHOWN_PERIODS:])
    evidences: dict[str, Evidence] = {}
    for label, release in shown.items():
        if len(release.facts.names) <= _MOST_COLUMNS:
            with contextlib.suppress(BundleError), archive.rewrite_paths_in_errors():
                evidences[label] = read_release(archive.release(*release.key)).evidence
    evidences = {label: each for label, each in evidences.items() if is_in_own_units(each)}
    omitted = len(newest) - len(shown)
    if len(evidences) < max(2, len(shown)):  # a chart of some of the periods would mislead
        return PeriodSeries(shown, omitted)
    return PeriodSeries(shown, omitted, over_time(evidences), _pooled(evidences))


_SHOWN_STEPS = 13


def step_series(
    archive: Archive, releases: Sequence[ListedRelease], timelines: Sequence[Timeline]
) -> StepSeries | None:
    """The last steps of the newest cumulative series; None without one."""
    with contextlib.suppress(BundleError), archive.rewrite_paths_in_errors():
        if (newest := newest_step(releases)) is not None:
            return _steps_of(archive, describe_release(archive, *newest.key).manifest, timelines)
    return None


def _steps_of(
    archive: Archive, facts: ReleaseManifest, timelines: Sequence[Timeline]
) -> StepSeries | None:
    if facts.cumulative is None:
        return None
    releases = facts.releases_of_steps
    missing = facts.overdue_steps(datetime.datetime.now(datetime.UTC))
    charges = [event.charge for timeline in timelines for event in timeline.events]
    spent = {each.version for each in charges if each is not None and each.state.is_closed}
    omitted = max(len(releases) - _SHOWN_STEPS, 0)
    series = StepSeries(
        step=facts.cumulative,
        releases=dict([*releases.items()][omitted:]),
        omitted=omitted,
        missing=missing,
        spent=[label for label in missing if label in spent],
    )
    if len(series.releases) < 2 or len(facts.names) > _MOST_COLUMNS:
        return series

    @cache
    def read(release: str) -> ReleaseBundle:
        return read_release(archive.release(facts.dataset.id, release))

    def evidence(first: int, last: int) -> Evidence:
        of_step = read(facts.release)
        return window(of_step, first, last, lambda each: read(each.release), denoise).evidence

    try:
        steps = dict(enumerate(series.releases, omitted + 1))
        so_far = {label: evidence(0, step) for step, label in steps.items()}
        each = {label: evidence(step - 1, step) for step, label in steps.items()}
    except BundleError:
        return series
    if not all(map(is_in_own_units, [*so_far.values(), *each.values()])):
        return series
    return replace(series, so_far=numbers_over_time(so_far), alone=over_time(each))


def _pooled(
    evidences: dict[str, Evidence],
) -> dict[tuple[str, str, str], tuple[float, float, float]]:
    """The numbers of all periods together, whose rows are different; empty if they disagree."""
    try:
        check_agreement([*evidences], [*evidences.values()])
    except RequestError:
        return {}
    evidence, _ = pooled([*evidences.values()], same_rows=False)
    if not is_in_own_units(evidence):
        return {}
    together = measure(evidence)
    keys = numbers(evidence).itertuples(index=False, name=None)
    values = zip(together.estimate, together.lower, together.upper, strict=True)
    return {key: value for key, value in zip(keys, values, strict=True)}


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
    # Ids of the releases of these data sets that have no page yet, or one of an earlier entry
    changed: frozenset[str] = frozenset()


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
    old: ListingRoot | None = None
    with suppress(BundleError):
        signed = read_root(archive)
        if signed is not None and (head is None or signed.root.is_of(head.ledger)):
            old = signed.root
    before = old or ListingRoot(format=LISTING_FORMAT, datasets={}, pages={})
    from_bundles = old is None or only is None
    bundles = archive.bundles(None if from_bundles or only is None else only[0])
    present: dict[str, dict[str, list[tuple[str, ...]]]] = {}
    for dataset, release, *bundle in bundles:
        present.setdefault(dataset, {}).setdefault(release, []).append(tuple(bundle))
    if from_bundles:
        present |= {dataset: {} for dataset in before.datasets.keys() - present.keys()}
    entries: dict[str, tuple[ListingEntry, ...]] = {}
    damaged, other = list[str](), set[str]()
    for dataset in sorted(present):
        listing = before.datasets.get(dataset)
        known = _entries(archive, dataset, listing)
        changed = None if from_bundles or only is None else only[1]
        made = _Entries(archive, dataset, known, changed, on_release)
        entries[dataset] = tuple(made.of(present[dataset]))
        damaged += made.damaged
        other |= made.changed
    return ListingUpdate(before, head, entries, tuple(damaged), frozenset(other))


def write_listing(
    archive: Archive,
    update: ListingUpdate,
    pages: Mapping[str, str],
    made_from: Mapping[str, str | None] = MappingProxyType({}),
) -> None:
    """Write the parts and then the root; the caller holds the `catalogue_lock`.

    Parameters
    ----------
    pages
        The digests of all pages, by their names; of releases, only of those that were written.
    made_from
        Digests of what pages of releases and of data sets were made from, of those that were
        written.
    """
    listings: dict[str, DatasetListing] = dict(update.before.datasets)
    for dataset, entries in update.entries.items():
        listed = []
        for each in entries:
            page = release_page(dataset, each.facts.release)
            known = {"page": pages.get(page, each.page)}
            known["made_from"] = made_from.get(page, each.made_from)
            listed.append(each.model_copy(update=known))
        if listed:
            before = update.before.datasets.get(dataset)
            written = write_dataset(archive, dataset, listed, before)
            source = made_from.get(f"{dataset}/{INDEX}", before.made_from if before else None)
            listings[dataset] = written.model_copy(update={"made_from": source})
    others = {name: digest for name, digest in pages.items() if name.count("/") < _RELEASE_PAGE}
    root = ListingRoot(format=LISTING_FORMAT, ledger=update.ledger, datasets=listings, pages=others)
    write_root(archive, root)
    # Parts that this root supersedes stay for readers of the last one.
    for dataset in update.entries:
        before = update.before.datasets.get(dataset)
        for part in before.superseded if before else ():
            if part not in root.datasets[dataset].parts:
                archive.remove_file(part_name(dataset, part))


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
        self.changed: set[str] = set()

    def of(self, present: Mapping[str, Collection[tuple[str, ...]]]) -> Iterator[ListingEntry]:
        """The entries of all releases, oldest first; from their bundles, by release id."""
        unread = [
            (self._dataset, release)
            for release, bundles in present.items()
            if ("release",) in bundles and (self._changed is None or release not in self._known)
        ]
        found = dict(self._known)
        for (_, release), result in zip(unread, try_describe(self._archive, unread), strict=True):
            self._on_release(f"{self._dataset}/{release}")
            if (entry := self._described(release, result)) is not None:
                found[release] = entry
        charged = {(self._dataset, key): entry.facts.charged for key, entry in found.items()}
        for _, release in in_release_order(charged, charged):
            entry = found[release]
            attached = present.get(release, ())
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
            made = entry.model_copy(update=changes)
            if made.page is None or made != self._known.get(release):
                self.changed.add(release)
            yield made

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
            made_from=known.made_from if known else None,
        )

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


def _entries(
    archive: Archive, dataset: str, listing: DatasetListing | None
) -> dict[str, ListingEntry]:
    """The entries of a data set so far; those of a damaged part are made again."""
    known: dict[str, ListingEntry] = {}
    for part in listing.parts if listing else ():
        with suppress(BundleError, PartMissingError):
            known |= {each.facts.release: each for each in read_part(archive, dataset, part)}
    return known


def _withdrawal(described: DescribedRelease) -> Withdrawal | None:
    notice = described.withdrawal
    if notice is None:
        return None
    return Withdrawal(sha256=notice.sha256, reason=notice.manifest.reason)
