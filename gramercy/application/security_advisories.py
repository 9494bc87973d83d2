"""Find releases and charges whose guarantee in version 0.1 was wrong.

The defects, and what to do about them, are in docs/security-history.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gramercy.archive.archive import Archive
from gramercy.archive.release_bundle import read_release_manifest
from gramercy.schemas.errors import ArchiveError, Invalid
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.problem import Notice
from gramercy.schemas.problems import verification as problems

if TYPE_CHECKING:
    from gramercy.ledger import Ledger


def security_advisories(ledger: Ledger, archive: Archive) -> Iterator[Notice]:
    """A notice for each release and data set that is affected, or may be.

    Parameters
    ----------
    ledger, archive
        Those of a home; unreadable entries are skipped, since an audit names them.
    """
    for dataset in ledger.yearly_budgets_of_persons():
        yield problems.yearly_budget_of_persons(dataset)
    for (dataset, window), charges in ledger.adaptive_shares().items():
        name = f"{dataset}, data of {window}" if window else dataset
        yield problems.adaptive_failure_share(name, charges)
    for dataset, release in archive.releases():
        try:
            folder = archive.metadata_path(dataset, release)
            facts = read_release_manifest(folder) if folder else None
        except (Invalid, ArchiveError):
            continue
        if facts is not None and assigned_rows_by_position(facts):
            yield problems.rows_assigned_by_position(f"{dataset}/{release}")


def assigned_rows_by_position(facts: ReleaseManifest) -> bool:
    """Whether the release depends on the positions of rows in the files, as in version 0.1."""
    if facts.format >= 6:
        return False
    in_folds = facts.folds > 1 and facts.neighbours == "replace-one"
    return in_folds or facts.kind in {"rows", "reports"}
