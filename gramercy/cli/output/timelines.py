"""The timelines of budgets, with the mechanisms of their releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gramercy.archive.listing.listed_release import ListedRelease
from gramercy.archive.seal.contents import Contents
from gramercy.archive.store.archive import Archive
from gramercy.schemas.ledger_history import Timeline

if TYPE_CHECKING:
    from gramercy.ledger import Ledger


def timelines_of(ledger: Ledger, archive: Archive, datasets: Sequence[str]) -> Iterator[Timeline]:
    """The timelines of data sets in turn, with the mechanisms of releases in the archive.

    Neither the ledger nor the listing is in memory as a whole.
    """
    contents = Contents(archive)
    for dataset, listed in contents.entries_in_turn(datasets):
        entries = (listed or {}).values()
        mechanisms = {each.facts.release: each.facts.mechanism.name for each in entries}
        timelines = ledger.timelines(dataset, mechanisms)
        charges = (charge for each in timelines for charge in each.charges)
        others = [
            (dataset, each.release)
            for each in charges
            if each.state.was_published and not each.mechanism
        ]
        for (_, release), result in contents.try_list(others).items() if others else ():
            if isinstance(result, ListedRelease):  # `gramercy verify` reports damage
                mechanisms[release] = result.facts.mechanism.name
        yield from ledger.timelines(dataset, mechanisms) if others else timelines
