"""The navigation on every page: the way from the catalogue to the page, and the glossary."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass

from gramercy.archive.store.layout import GLOSSARY, INDEX
from gramercy.schemas.manifest import ReleaseManifest

# The address of a page of the archive, by its name in the archive; empty if it cannot be linked to.
Links = Callable[[str], str]


def no_links(name: str) -> str:
    """The links of a page that does not know where the catalogue is: all places are plain text."""
    return ""


def links_from(*folder: str) -> Links:
    """The relative links of a page in a folder of the archive."""
    start = "/".join(folder) or "."
    return lambda name: posixpath.relpath(name, start)


@dataclass(frozen=True)
class Crumb:
    """A place on the way to a page.

    Parameters
    ----------
    name
        Its name.
    href
        Address of its page; empty if it is the page itself, or is not known to have one.
    """

    name: str
    href: str = ""


@dataclass(frozen=True)
class Navigation:
    """The navigation of a page.

    Parameters
    ----------
    crumbs
        The places from the catalogue to the page itself, which is the last one.
    glossary
        Address of the glossary, or empty.
    """

    crumbs: tuple[Crumb, ...]
    glossary: str = ""


def navigation(
    links: Links,
    page: str = "",
    dataset: tuple[str, str] | None = None,
    release: tuple[str, str] | None = None,
) -> Navigation:
    """The navigation of a page.

    Parameters
    ----------
    links
        Addresses of the archive's pages.
    page
        Kind of the page and what it is about; empty for the catalogue's own page of the last place.
    dataset, release
        Id and displayed name of the data set and the release that the page is about.

    Examples
    --------
    >>> found = navigation(links_from("clinic"), "Plan", ("clinic", "Clinic visits"))
    >>> [(each.name, each.href) for each in found.crumbs]
    [('Catalogue', '../index.html'), ('Clinic visits', 'index.html'), ('Plan', '')]
    """
    names, folder = [("Catalogue", INDEX)], ""
    for place in (dataset, release):
        if place is not None:
            folder += f"{place[0]}/"
            names.append((place[1], folder + INDEX))
    places = names if page else names[:-1]
    current = page or names[-1][0]
    crumbs = (*(Crumb(name, links(at)) for name, at in places), Crumb(current))
    return Navigation(crumbs, links(GLOSSARY))


def report_navigation(facts: ReleaseManifest) -> Navigation:
    """The navigation of a report, which is at ``<dataset>/<release>/reports/<id>/report.html``."""
    about = facts.dataset
    links = links_from(about.id, facts.release, "reports", "id")
    release = (facts.release, about.version)
    return navigation(links, "Report", (about.id, about.title), release)
