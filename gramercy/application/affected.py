"""What version 0.1 has published or charged under a guarantee that it did not have.

What was wrong, and what to do about it, is in docs/security-history.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import read_facts
from gramercy.schemas.errors import ArchiveError, Invalid
from gramercy.schemas.manifest import ReleaseManifest

if TYPE_CHECKING:
    from gramercy.ledger import Ledger

_SEE = "see docs/security-history.md"


def affected(ledger: Ledger, archive: Archive) -> Iterator[str]:
    """Releases and data sets that are affected, or may be, in words.

    Parameters
    ----------
    ledger, archive
        Of a home; entries that cannot be read are passed over, since an audit names them.
    """
    for dataset in ledger.of_persons_by_year():
        yield (
            f"{dataset}: its budget is per year and protects persons, whose rows may lie in many "
            f"years. A person is protected by the sum of what all years have spent ({_SEE}, 2)."
        )
    for (dataset, window), charges in ledger.adaptive_shares().items():
        of = f", data of {window}" if window else ""
        yield (
            f"{dataset}{of}: {charges} charges were admitted by the rule of version 0.1. Together "
            f"with all later ones they hold epsilon at twice the budget's delta ({_SEE}, 3)."
        )
    for dataset, release in archive.releases():
        try:
            folder = archive.described(dataset, release)
            facts = read_facts(folder) if folder else None
        except (Invalid, ArchiveError):
            continue
        if facts is not None and by_place(facts):
            yield (
                f"{dataset}/{release}: its rows were told apart by their place. If the folders or "
                "files of its source depend on a row's values, its guarantee does not hold "
                f"({_SEE}, 1)."
            )


def by_place(facts: ReleaseManifest) -> bool:
    """Whether version 0.1 told the rows of a release apart by their place."""
    if facts.format >= 6:
        return False
    in_folds = facts.folds > 1 and facts.neighbours == "replace-one"
    return in_folds or facts.kind in {"rows", "reports"}
