"""The timelines of budgets, with the mechanisms of their releases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gramercy.archive.contents import Contents
from gramercy.archive.listing import ListedRelease
from gramercy.archive.protocol import Archive
from gramercy.schemas.timeline import Timeline

if TYPE_CHECKING:
    from gramercy.ledger import Ledger


def timelines_of(ledger: Ledger, archive: Archive, datasets: Sequence[str] = ()) -> list[Timeline]:
    """The timelines of data sets, with the mechanisms of releases that the archive contains."""
    mechanisms: dict[str, dict[str, str]] = {name: {} for name in datasets}
    contents = Contents(archive)
    listed = contents.entries(datasets[0] if len(datasets) == 1 else None)
    for (dataset, release), entry in listed.items():
        mechanisms.setdefault(dataset, {})[release] = entry.facts.mechanism.name
    others = sorted(name for name in ledger.published() - listed.keys() if name[0] in mechanisms)
    for (dataset, release), result in contents.try_list(others).items() if others else ():
        if isinstance(result, ListedRelease):  # `gramercy verify` reports damage
            mechanisms[dataset][release] = result.facts.mechanism.name
    return [each for name in datasets for each in ledger.timelines(name, mechanisms[name])]
