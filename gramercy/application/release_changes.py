"""Hold two releases of a data set against each other."""

from __future__ import annotations

from gramercy.archive.listing import Listed
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import read_release
from gramercy.estimators.uncertainty.difference import change
from gramercy.reports.change_summary import Compared


def compared(archive: Archive, later: Listed, earlier: Listed) -> Compared:
    """Two comparable releases, held against each other.

    Raises
    ------
    BundleError
        If one of them is not what was sealed.
    """
    seen = []
    for each in (later, earlier):
        with archive.naming():
            place = archive.release(each.facts.dataset.id, each.facts.release)
            seen.append(read_release(place).evidence)
    return Compared(later.name, earlier.name, later.facts.names, change(*seen))
