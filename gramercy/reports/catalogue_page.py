"""The catalogue's pages: the archive, each data set, each release, and a glossary.

Their links to each other and to the bundles are relative, so that they work from a disk and from
any web server. They load no other resources.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gramercy.archive.bundles.bundle_kinds import EstimateBundle, ReleaseBundle, stems
from gramercy.archive.listing.contents import ListedRelease, search_text
from gramercy.archive.store.layout import INDEX, older_page
from gramercy.common.pictures import heat_map
from gramercy.reports import figures
from gramercy.reports.change_page import change_with_figure
from gramercy.reports.column_summaries import column_labels
from gramercy.reports.correlations import correlations
from gramercy.reports.estimate_summary import EstimateSummary, with_figure
from gramercy.reports.history_page import spending
from gramercy.reports.marginal_tables import marginal_table
from gramercy.reports.period_series import PeriodSeries, StepSeries, series_facts, step_facts
from gramercy.reports.reader_notes import (
    best_attacker_accuracy,
    matrix_description,
    protection_note,
    reader_notes,
    spectrum_of,
)
from gramercy.reports.release_comparison import ReleaseComparison
from gramercy.reports.rendering import links_from, navigation, render
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.ledger_history import Timeline
from gramercy.schemas.manifest import ReleaseManifest

_SEARCH = (Path(__file__).parent / "templates" / "site" / "search.js").read_text(encoding="utf-8")
_LISTED_RELEASES = 3  # newest ones of a data set, on the first page; the search covers more
_RELEASES_AT_FIRST = 12  # on the page of a data set; the others are folded


@dataclass(frozen=True)
class Download:
    """A file of a bundle: path relative to the page, size in bytes, and SHA-256."""

    path: str
    size: int
    sha256: str
    meaning: str = ""


def index_pages(datasets: Sequence[DatasetEntry]) -> Iterator[tuple[str, str]]:
    """The data sets of the archive and their newest releases, in pages: the name and text of each.

    The search is on the first page. It covers the listed releases of the data sets on that page,
    and the newest release of each other one.
    """
    starts = range(0, max(1, len(datasets)), DATASETS_ON_PAGE)
    pages = [datasets[start : start + DATASETS_ON_PAGE] for start in starts]
    names = [INDEX, *(f"datasets-{number}.html" for number in range(2, len(pages) + 1))]
    places = list(zip(names, pages, strict=True))
    digest = base64.b64encode(hashlib.sha256(_SEARCH.encode()).digest()).decode()
    for name, page in places:
        is_first = name == INDEX
        yield (
            name,
            render(
                "site/index.html",
                navigation=navigation(
                    links_from(), "" if is_first else f"{page[0].dataset} to {page[-1].dataset}"
                ),
                name=name,
                datasets=page,
                others=datasets[DATASETS_ON_PAGE:] if is_first else (),
                pages=places,
                counts=(sum(entry.count for entry in datasets), len(datasets)),
                at_first=_LISTED_RELEASES,
                intercept=INTERCEPT,
                search=_SEARCH if is_first else "",
                script=f"'sha256-{digest}'" if is_first else "",
            ),
        )


def dataset_page(page: DatasetPage) -> str:
    """The page of a data set: its newest releases, budget and periods, and what changed last."""
    charged = [timeline for timeline in page.timelines if timeline.charges]
    older = []  # file, first and last version of each page of older releases, newest first
    for number in range(page.older_pages, 0, -1):
        versions = [each.facts.dataset.version for each in page.on_older_page(number)]
        name = older_page(page.dataset, number).rpartition("/")[2]
        older.append((name, versions[0], versions[-1]))
    return render(
        "site/dataset.html",
        navigation=navigation(links_from(page.dataset), "", (page.dataset, page.title)),
        dataset=page,
        releases=page.releases[RELEASES_ON_PAGE * page.older_pages :],
        older=older,
        newest=page.newest,
        budgets=[BudgetState.of(timeline) for timeline in charged],
        spent=spending(charged[-1].events, days=True) if charged else "",  # of the newest period
        at_first=_RELEASES_AT_FIRST,
        changed=change_with_figure(page.change) if page.change else None,
        periods=series_facts(page.periods) if page.periods else None,
        series=step_facts(page.steps) if page.steps else None,
    )


def older_releases_page(page: DatasetPage, number: int) -> str:
    """A page of older releases of a data set; the oldest are on page 1."""
    return render(
        "site/older.html",
        navigation=navigation(
            links_from(page.dataset), "Older releases", (page.dataset, page.title)
        ),
        dataset=page,
        releases=page.on_older_page(number),
    )


def release_page(
    release: ReleaseBundle,
    listed: ListedRelease,
    estimates: Sequence[EstimateBundle],
    reports: Mapping[str, int],
    downloads: Mapping[str, Sequence[Download]],
    location: str,
) -> str:
    """The page of a release: its guarantee, its figures and its files.

    `reports` are paths relative to this page, with the number of estimates in each.
    """
    facts = release.manifest
    if facts.publication.has_matrix:
        published = _matrix(release, estimates)
    else:
        published = {"notes": [protection_note(facts.guarantee)], "summaries": ()}
        published["marginals"] = marginal_table(release)
    return render(
        "site/release.html",
        root="../../",
        navigation=navigation(
            links_from(facts.dataset.id, facts.release),
            dataset=(facts.dataset.id, facts.dataset.title),
            release=(facts.release, facts.dataset.version),
        ),
        facts=facts,
        listed=listed,
        accuracy=best_attacker_accuracy(facts.guarantee),
        attack=facts.neighbours.attack(facts.privacy_unit),
        report=max(reports, key=reports.__getitem__) if reports else None,
        attacker=figures.attacker(facts.guarantee),
        downloads=downloads,
        sha256=release.sha256,
        location=location,
        **published,
    )


def _matrix(release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> dict[str, Any]:
    """What the page of a matrix shows besides its guarantee and its files."""
    facts = release.manifest
    eigenvalues = spectrum_of(release)
    released = correlations(release)
    labels = column_labels(release, released)
    summaries = [EstimateSummary.of(estimate) for estimate in estimates]
    return {
        "notes": reader_notes(release, eigenvalues),
        "matrix_description": matrix_description(facts),
        "stem": stems(facts)[0],
        "repair": release.repair,
        "heat": heat_map(released.matrix, released.hidden, labels),
        "spectrum": figures.eigenvalues(eigenvalues, release.repair),
        "summaries": [with_figure(summary) for summary in summaries if summary.sparse],
        "marginals": None,
    }


def glossary_page(mechanisms: Sequence[Mapping[str, Any]]) -> str:
    """The glossary: the terms on the pages, and the descriptions of mechanisms."""
    return render(
        "site/glossary.html",
        navigation=replace(navigation(links_from(), "Glossary"), glossary=""),
        mechanisms=mechanisms,
    )


DATASETS_ON_PAGE = 50
RELEASES_ON_PAGE = 100


@dataclass(frozen=True)
class BudgetState:
    """What is spent of a budget: of a data set, or of a period of its data."""

    window: str  # The period, or empty
    spent: float  # Epsilon that all releases guarantee together, at `delta`; infinite if none
    # The budget
    epsilon: float
    delta: float

    @classmethod
    def of(cls, timeline: Timeline) -> BudgetState:
        """The state after the last event."""
        last = timeline.events[-1]
        return cls(timeline.window, last.spent, last.budget, last.delta)


@dataclass(frozen=True)
class DatasetEntry:
    """A data set in the catalogue's list of data sets."""

    dataset: str  # Its id
    releases: Sequence[ListedRelease]  # Its newest releases with intact descriptions, oldest first
    count: int  # Number of all its releases
    damaged: Sequence[str] = ()  # Names of the releases with damaged descriptions
    # Its budgets of which something is spent, if a ledger was read
    budgets: Sequence[BudgetState] = ()

    @property
    def columns(self) -> str:
        """Names of all columns, normalised for the search."""
        return search_text(
            " ".join(dict.fromkeys(n for each in self.releases for n in each.facts.names))
        )

    @property
    def newest(self) -> ListedRelease | None:
        """The newest release that is not withdrawn, or else the newest."""
        valid = [release for release in self.releases if release.withdrawn is None]
        return next(iter([*valid[-1:], *self.releases[-1:]]), None)

    @property
    def title(self) -> str:
        """Title of the newest release."""
        return self.newest.facts.dataset.title if self.newest else self.dataset


@dataclass(frozen=True)
class DatasetPage:
    """The content of the pages of a data set."""

    dataset: str  # Its id
    releases: Sequence[ListedRelease]  # All its releases with intact descriptions, oldest first
    damaged: Sequence[str] = ()  # Names of the releases with damaged descriptions
    # The manifest of the newest release that is not withdrawn, or else of the newest
    newest: ReleaseManifest | None = None
    timelines: Sequence[Timeline] = ()  # Spending of its budgets, if a ledger was read
    # What changed with the newest release, if it is comparable with another one
    change: ReleaseComparison | None = None
    # Its numbers over time, if it has releases of several periods
    periods: PeriodSeries | None = None
    steps: StepSeries | None = None  # The last steps of its newest cumulative series, if it has one

    @property
    def title(self) -> str:
        """Title of the newest release."""
        return self.newest.dataset.title if self.newest else self.dataset

    @property
    def older_pages(self) -> int:
        """Number of pages of older releases; the first page has all others, at least 100."""
        return max(0, len(self.releases) // RELEASES_ON_PAGE - 1)

    def on_older_page(self, number: int) -> Sequence[ListedRelease]:
        """The releases on a page of older ones, which stay on it when new ones are published."""
        return self.releases[RELEASES_ON_PAGE * (number - 1) : RELEASES_ON_PAGE * number]

    def page_of(self, release: str) -> int:
        """Number of the page of older releases that has this one; 0 for the first page."""
        ids = [each.facts.release for each in self.releases]
        number = 1 + ids.index(release) // RELEASES_ON_PAGE if release in ids else 0
        return number if number <= self.older_pages else 0
