"""The numbers of a data set over the last periods of its data, for its page."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from gramercy.archive.bundles.release_bundle import read_release
from gramercy.archive.listing.listing import ListedRelease, newest_of_periods
from gramercy.archive.store.archive import Archive
from gramercy.estimators.pooling.agreement import check_agreement
from gramercy.estimators.pooling.pool import pooled
from gramercy.estimators.table_comparison import is_in_own_units, measure, numbers, over_time
from gramercy.reports.period_series import PeriodSeries
from gramercy.schemas.errors import BundleError, RequestError
from gramercy.schemas.evidence import Evidence

_SHOWN_PERIODS = 12
_MOST_COLUMNS = 100  # of a matrix whose numbers are compared over time


def period_series(archive: Archive, releases: Sequence[ListedRelease]) -> PeriodSeries | None:
    """The newest release of each of the last periods; None if there are fewer than two.

    Damaged bundles, releases of unit rows and very large matrices are listed without numbers.
    """
    newest = newest_of_periods(releases)
    if len(newest) < 2:
        return None
    shown = dict([*newest.items()][-_SHOWN_PERIODS:])
    evidences: dict[str, Evidence] = {}
    for label, release in shown.items():
        if len(release.facts.names) <= _MOST_COLUMNS:
            with contextlib.suppress(BundleError):
                evidences[label] = _evidence(archive, release)
    evidences = {label: each for label, each in evidences.items() if is_in_own_units(each)}
    omitted = len(newest) - len(shown)
    if len(evidences) < max(2, len(shown)):  # a chart of some of the periods would mislead
        return PeriodSeries(shown, omitted)
    return PeriodSeries(shown, omitted, over_time(evidences), _pooled(evidences))


def _evidence(archive: Archive, release: ListedRelease) -> Evidence:
    with archive.rewrite_paths_in_errors():
        return read_release(archive.release(*release.key)).evidence


def _pooled(
    evidences: dict[str, Evidence],
) -> dict[tuple[str, str, str], tuple[float, float, float]]:
    """The numbers of all periods together, whose rows are different; empty if they disagree."""
    try:
        check_agreement([*evidences], [*evidences.values()])
    except RequestError:
        return {}
    evidence, _ = pooled([*evidences.values()], same_rows=False)
    if not is_in_own_units(evidence):
        return {}
    together = measure(evidence)
    keys = numbers(evidence).itertuples(index=False, name=None)
    values = zip(together.estimate, together.lower, together.upper, strict=True)
    return {key: value for key, value in zip(keys, values, strict=True)}
