"""Write the listing and the pages of the catalogue, from the archive's bundles and the ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gramercy import mechanisms
from gramercy.archive.bundles.card import file_description
from gramercy.archive.bundles.descriptions import DescribedRelease, describe_release
from gramercy.archive.bundles.estimate_bundle import EstimateBundle, read_estimate
from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.bundles.release_bundle import read_release
from gramercy.archive.bundles.report_bundle import PAGE, read_report
from gramercy.archive.listing.listed_release import ListedRelease, newest_of_periods
from gramercy.archive.listing.signed_listing import NEWEST, with_names
from gramercy.archive.seal.bundle import SEAL, SIGNATURE, SUMS, content, file_digest
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import GLOSSARY, INDEX, is_page, older_page, release_page
from gramercy.estimators.pooling.agreement import check_agreement
from gramercy.estimators.pooling.pool import pooled
from gramercy.estimators.table_comparison import (
    comparable,
    is_in_own_units,
    measure,
    numbers,
    over_time,
)
from gramercy.ledger import Ledger
from gramercy.ledger.timelines import approximate_spent
from gramercy.mechanisms.accounting.composition import NO_CHARGES
from gramercy.pipeline.catalogue.listing_update import (
    ListingUpdate,
    OnRelease,
    catalogue_lock,
    read_entries,
    write_listing,
)
from gramercy.pipeline.context import Context
from gramercy.pipeline.page_links import archive_links
from gramercy.pipeline.publish.internal_record import page_path, refresh_page
from gramercy.reports import catalogue_page
from gramercy.reports.catalogue_page import BudgetState, DatasetEntry, DatasetPage
from gramercy.reports.period_series import PeriodSeries
from gramercy.reports.release_comparison import ReleaseComparison, compare_releases
from gramercy.schemas.errors import BundleError, RequestError
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.ledger_history import Timeline
from gramercy.schemas.listing import ListingEntry

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

    Parameters
    ----------
    on_release
        Called with the name of each release that is read for the listing or for its page.
    """
    archive, ledger = context.archive, context.existing_ledger
    with catalogue_lock(context):
        update = read_entries(archive, ledger, only, on_release)
        known = {} if only is None else update.before.pages
        pages = _Pages(archive, ledger, on_release, known)
        changed = {}
        for dataset, entries in update.entries.items():
            if only is None or only[0] == dataset:
                damaged = [name for name in update.damaged if name.startswith(f"{dataset}/")]
                changed[dataset] = pages.write_dataset(dataset, entries, damaged, only)
        pages.write_index(update, changed)
        listed = {*pages.digests, *update.release_pages()}
        for name in archive.other_files() if only is None else known:
            if is_page(name) and name not in listed:
                archive.remove_file(name)
        write_listing(archive, update, pages.digests)  # last: it names the pages
    for name in pages.written:
        dataset, _, release = name.partition("/")
        page = page_path(context.home, dataset, release)
        links = archive_links(context, page, exists=lambda name: True)  # just written
        refresh_page(context.home, dataset, release, links)
    return len(pages.written)


@dataclass
class _Pages:
    """Writes pages; has their digests, and lists the releases whose pages it wrote.

    Of the `known` pages, by their names and digests, those that do not change are left as they are.
    """

    archive: Archive
    ledger: Ledger | None
    on_release: OnRelease
    known: Mapping[str, str]
    digests: dict[str, str] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)

    def write_dataset(
        self,
        dataset: str,
        entries: Iterable[ListingEntry],
        damaged: Sequence[str],
        only: tuple[str, str] | None,
    ) -> DatasetEntry:
        """Write the pages of a data set, and of all of its releases or one; returns its entry."""
        releases, unreadable = list(map(_listed, entries)), set(damaged)
        for release in releases:
            if only is not None and only[1] != release.facts.release:
                continue
            self.on_release(release.name)
            try:
                html = release_html(self.archive, release)
            except BundleError:
                unreadable.add(release.name)
                continue
            self._write(release_page(*release.key), html)
            self.written.append(release.name)
        intact = [each for each in releases if each.name not in unreadable]
        newest = self._description(intact)
        timelines: tuple[Timeline, ...] = ()
        if self.ledger is not None and dataset in self.ledger.datasets():
            timelines = self.ledger.timelines(dataset)
        page = DatasetPage(
            dataset,
            intact,
            sorted(unreadable),
            newest.manifest if newest else None,
            timelines,
            self._latest_change(intact, newest),
            period_series(self.archive, intact),
        )
        self._write(f"{dataset}/{INDEX}", catalogue_page.dataset_page(page))
        # A new release only fills the last page of older ones; a withdrawal changes its own page.
        changed = {page.older_pages, page.page_of(only[1])} if only else set()
        for number in range(1, page.older_pages + 1):
            name = older_page(dataset, number)
            if name in self.known and number not in changed:
                self.digests[name] = self.known[name]
            else:
                self._write(name, catalogue_page.older_releases_page(page, number))
        return DatasetEntry(dataset, intact[-NEWEST:], len(intact), sorted(unreadable))

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
        for name, digest in self.known.items():
            if "/" in name and name.split("/")[0] not in changed:
                self.digests[name] = digest

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


def _listed(entry: ListingEntry) -> ListedRelease:
    return ListedRelease(entry.facts, entry.withdrawn.reason if entry.withdrawn else None)


def release_html(archive: Archive, listed: ListedRelease) -> str:
    """The page of a release, after verifying the release."""
    dataset, name = listed.facts.dataset.id, listed.facts.release
    place = archive.release(dataset, name)
    with archive.rewrite_paths_in_errors():
        bundle = read_release(place)
    estimates = list(_estimates(archive, dataset, name, bundle.sha256))
    downloads = {"release": [*_files(place, "release")]}
    for each in estimates:
        estimate = each.manifest.estimate
        folder = archive.estimate(dataset, name, estimate)
        downloads[estimate] = [*_files(folder, f"estimates/{estimate}")]
    reports = dict(_reports(archive, dataset, name, bundle.sha256))
    location = archive.location if "://" in archive.location else "path/to/archive"
    return catalogue_page.release_page(bundle, listed, estimates, reports, downloads, location)


def _estimates(
    archive: Archive, dataset: str, release: str, sha256: str
) -> Iterator[EstimateBundle]:
    for name in archive.estimates(dataset, release):
        try:
            estimate = read_estimate(archive.estimate(dataset, release, name))
        except BundleError:  # a damaged estimate is left out of the page
            continue
        if estimate.manifest.release_sha256 == sha256:
            yield estimate


def _reports(
    archive: Archive, dataset: str, release: str, sha256: str
) -> Iterator[tuple[str, int]]:
    for name in archive.reports(dataset, release):
        try:
            facts = read_report(archive.report(dataset, release, name)).manifest
        except BundleError:
            continue
        if facts.release_sha256 == sha256:
            yield f"reports/{name}/{PAGE}", len(facts.estimates)


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
            with contextlib.suppress(BundleError):
                evidences[label] = _evidence(archive, release)
    evidences = {label: each for label, each in evidences.items() if is_in_own_units(each)}
    omitted = len(newest) - len(shown)
    if len(evidences) < max(2, len(shown)):  # a chart of some of the periods would mislead
        return PeriodSeries(shown, omitted)
    return PeriodSeries(shown, omitted, over_time(evidences), _pooled(evidences))


def _evidence(archive: Archive, release: ListedRelease) -> Evidence:
    with archive.rewrite_paths_in_errors():
        return read_release(archive.release(*release.key)).evidence


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
