"""A release as lists show it, and the search in lists."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from gramercy.schemas.listing import ListedFacts


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
    without these columns has its newest release.
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
    return {label: newest[label] for label in sorted(filter(None, newest))}
