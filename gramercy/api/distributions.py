"""The published marginals of a release as tables."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.schemas import families, wordings


def marginals(id: str, bundle: ReleaseBundle) -> pd.DataFrame:
    """One line for each bin: see `Release.marginals`.

    Parameters
    ----------
    id
        DATASET/RELEASE.
    bundle
        The release, its seal verified.
    """
    from gramercy.estimators.marginals import marginals_frame, rows_counted

    _needs_marginals(id, bundle)
    return marginals_frame(bundle.marginals, rows_counted(bundle.manifest, bundle.marginals))


def quantiles(id: str, bundle: ReleaseBundle, at: Sequence[float], level: float) -> pd.DataFrame:
    """Quantiles of every numeric column: see `Release.quantiles`.

    Parameters
    ----------
    id, bundle
        See `marginals`.
    at, level
        Probabilities, and confidence level of the intervals.
    """
    from gramercy.estimators.marginals import quantiles as estimated
    from gramercy.estimators.marginals import rows_counted
    from gramercy.schemas.facts import ColumnFacts

    _needs_marginals(id, bundle)
    if not _are_probabilities(at):
        raise families.ANALYSIS(
            "'at' must be numbers between 0 and 1.",
            "0.5 is the median.",
        )
    if not 0.5 < level < 1:
        raise wordings.level_out_of_range()
    rows = rows_counted(bundle.manifest, bundle.marginals)
    lines = [
        (each.column, probability, found.value, found.lower, found.upper)
        for each, column in zip(bundle.marginals, bundle.manifest.columns, strict=True)
        if isinstance(column, ColumnFacts)
        for probability, found in zip(at, estimated(each, rows, at, level), strict=True)
    ]
    return pd.DataFrame(lines, columns=["column", "probability", "value", "lower", "upper"])


def _are_probabilities(values: Sequence[float]) -> bool:
    try:
        return all(0 < each < 1 for each in values)
    except TypeError:  # a name of a column, for example
        return False


def _needs_marginals(id: str, bundle: ReleaseBundle) -> None:
    if not bundle.marginals:
        raise families.ANALYSIS(
            "'{release}' has no histograms of its columns.",
            "Use a release of private constants ('scaling: private' in its request) or of "
            "marginals.",
            release=id,
        )
