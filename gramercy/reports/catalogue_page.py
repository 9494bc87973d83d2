"""The catalogue as pages: of the archive, of a data set, of a release, and of words.

They link to each other and to the bundles by relative names, so that they can be read from a disk
as well as from any web server, and ask for nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gramercy.archive.estimate_bundle import EstimateBundle
from gramercy.archive.listing import Listed, plain
from gramercy.archive.release_bundle import ReleaseBundle, stems
from gramercy.estimators.noise.spectrum import spectrum
from gramercy.reports import figures
from gramercy.reports.change_page import pictured_change
from gramercy.reports.change_summary import Compared
from gramercy.reports.correlations import correlations
from gramercy.reports.estimate_summary import Shown
from gramercy.reports.history_page import spending
from gramercy.reports.page import pictured, render
from gramercy.reports.words import best_guess, notes, shown_name, the_attack, what_it_is
from gramercy.schemas.timeline import Timeline

_SEARCH = (Path(__file__).parent / "templates" / "site" / "search.js").read_text(encoding="utf-8")
_AT_FIRST = 3  # releases of a data set on the first page; a search looks at all


@dataclass(frozen=True)
class Shelf:
    """What there is of one data set.

    Parameters
    ----------
    dataset
        Its id.
    releases
        Oldest first; those whose description is what was sealed.
    damaged
        Names of the others.
    timelines
        What became of its budget, where that is known.
    """

    dataset: str
    releases: Sequence[Listed]
    damaged: Sequence[str] = ()
    timelines: Sequence[Timeline] = ()

    def without(self, damaged: Collection[str]) -> Shelf:
        """The same, these releases being damaged."""
        sound = [each for each in self.releases if each.name not in damaged]
        return replace(self, releases=sound, damaged=sorted(damaged))

    @property
    def columns(self) -> str:
        """Names of all columns, as a search sees them."""
        return plain(" ".join(dict.fromkeys(n for each in self.releases for n in each.facts.names)))

    @property
    def newest(self) -> Listed | None:
        """The newest release that was not withdrawn; else the newest."""
        standing = [each for each in self.releases if each.withdrawn is None]
        return next(iter([*standing[-1:], *self.releases[-1:]]), None)

    @property
    def title(self) -> str:
        """Of the newest release."""
        return self.newest.facts.dataset.title if self.newest else self.dataset


@dataclass(frozen=True)
class Download:
    """A file of a bundle: where it lies beside the page, its bytes, and its SHA-256."""

    path: str
    size: int
    sha256: str
    meaning: str = ""


def index_page(shelves: Sequence[Shelf]) -> str:
    """The first page of the archive: its data sets and releases, with a search."""
    script = hashlib.sha256(_SEARCH.encode()).digest()
    return render(
        "site/index.html",
        root="",
        shelves=shelves,
        releases=sum(len(each.releases) for each in shelves),
        at_first=_AT_FIRST,
        search=_SEARCH,
        script=f"'sha256-{base64.b64encode(script).decode()}'",
    )


def dataset_page(shelf: Shelf, compared: Compared | None) -> str:
    """The page of a data set: its releases, its budget, and what changed."""
    spent = [
        (each, spending(each.events, f"spent-{place}", days=True))
        for place, each in enumerate(shelf.timelines)
        if each.charges
    ]
    return render(
        "site/dataset.html",
        root="../",
        shelf=shelf,
        newest=shelf.newest,
        spent=spent,
        changed=pictured_change(compared) if compared else None,
    )


def release_page(
    release: ReleaseBundle,
    listed: Listed,
    estimates: Sequence[EstimateBundle],
    reports: Mapping[str, int],
    downloads: Mapping[str, Sequence[Download]],
    where: str,
) -> str:
    """The page of a release: what it guarantees, its pictures, and its files.

    Parameters
    ----------
    release, listed
        As read back, its seal verified.
    estimates
        Beside it, likewise.
    reports
        Pages for people, relative to this one, and how many estimates each shows.
    downloads
        Files by what they belong to.
    where
        The archive, as one who reads it would write it.
    """
    facts = release.manifest
    found = spectrum(release.unbiased, release.repaired, facts.noise, facts.rows.value)
    seen = correlations(release)
    shown = [Shown.of(each) for each in estimates]
    return render(
        "site/release.html",
        root="../../",
        facts=facts,
        listed=listed,
        notes=notes(release, found),
        guess=best_guess(facts.guarantee),
        attack=the_attack(facts.neighbours, facts.unit),
        what_it_is=what_it_is(facts),
        stem=stems(facts)[0],
        repair=release.repair,
        report=max(reports, key=reports.__getitem__) if reports else None,
        attacker=figures.attacker(facts.guarantee),
        heat=figures.heat_map(seen.matrix, seen.hidden, [shown_name(n) for n in seen.names]),
        spectrum=figures.eigenvalues(found, release.repair),
        shown=[pictured(each) for each in shown if each.sparse],
        downloads=downloads,
        sha256=release.sha256,
        where=where,
    )


def glossary_page(mechanisms: Sequence[Mapping[str, Any]]) -> str:
    """The page of words: what the mechanisms are, and what the numbers mean.

    Parameters
    ----------
    mechanisms
        ``name``, ``summary``, ``publishes``, ``arithmetic`` and ``neighbours`` of each.
    """
    return render("site/glossary.html", root="", mechanisms=mechanisms)
