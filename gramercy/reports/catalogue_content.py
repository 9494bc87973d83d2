"""What the pages of the catalogue show of data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gramercy.archive.listing.listed_release import ListedRelease, search_text
from gramercy.reports.change_summary import ReleaseComparison
from gramercy.reports.period_series import PeriodSeries
from gramercy.schemas.ledger_history import Timeline
from gramercy.schemas.manifest import ReleaseManifest

DATASETS_ON_PAGE = 50
RELEASES_ON_PAGE = 100


@dataclass(frozen=True)
class BudgetState:
    """What is spent of a budget: of a data set, or of a period of its data.

    Parameters
    ----------
    window
        The period, or empty.
    spent
        Epsilon that all releases guarantee together, at `delta`; infinite if none.
    epsilon, delta
        The budget.
    """

    window: str
    spent: float
    epsilon: float
    delta: float

    @classmethod
    def of(cls, timeline: Timeline) -> BudgetState:
        """The state after the last event."""
        last = timeline.events[-1]
        return cls(timeline.window, last.spent, last.budget, last.delta)


@dataclass(frozen=True)
class DatasetEntry:
    """A data set in the catalogue's list of data sets.

    Parameters
    ----------
    dataset
        Its id.
    releases
        Its newest releases with intact descriptions, oldest first.
    count
        Number of all its releases.
    damaged
        Names of the releases with damaged descriptions.
    budgets
        Its budgets of which something is spent, if a ledger was read.
    """

    dataset: str
    releases: Sequence[ListedRelease]
    count: int
    damaged: Sequence[str] = ()
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
    """The content of the pages of a data set.

    Parameters
    ----------
    dataset
        Its id.
    releases
        All its releases with intact descriptions, oldest first.
    damaged
        Names of the releases with damaged descriptions.
    newest
        The manifest of the newest release that is not withdrawn, or else of the newest.
    timelines
        Spending of its budgets, if a ledger was read.
    change
        What changed with the newest release, if it is comparable with another one.
    periods
        Its numbers over time, if it has releases of several periods.
    """

    dataset: str
    releases: Sequence[ListedRelease]
    damaged: Sequence[str] = ()
    newest: ReleaseManifest | None = None
    timelines: Sequence[Timeline] = ()
    change: ReleaseComparison | None = None
    periods: PeriodSeries | None = None

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
