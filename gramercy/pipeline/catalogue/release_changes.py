"""Compare two releases of a data set."""

from __future__ import annotations

from gramercy.archive.bundles.descriptions import DescribedRelease
from gramercy.archive.bundles.release_bundle import read_release
from gramercy.archive.store.archive import Archive
from gramercy.estimators.table_comparison import change
from gramercy.reports.change_summary import ReleaseComparison


def compare_releases(
    archive: Archive, later: DescribedRelease, earlier: DescribedRelease
) -> ReleaseComparison:
    """The differences between two comparable releases.

    Raises
    ------
    BundleError
        If one of them differs from what was sealed.
    """
    evidence = []
    for each in (later, earlier):
        with archive.rewrite_paths_in_errors():
            place = archive.release(each.manifest.dataset.id, each.manifest.release)
            evidence.append(read_release(place).evidence)
    newer, older = evidence
    pairs = zip(newer.groups, older.groups, strict=True)
    groups = {name: change(group, before) for (name, group), (_, before) in pairs}
    compared = change(newer, older)
    return ReleaseComparison(later.name, earlier.name, later.manifest.names, compared, groups)
