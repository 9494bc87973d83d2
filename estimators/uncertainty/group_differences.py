"""Differences between two groups of rows, with a test that knows the noise and the sampling error.

The groups are disjoint parts of the rows and have independent noise, so the variances of both
errors add up. A difference is divided by its standard error, and compared with the normal law.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, norm

from gramercy.estimators.own_units import OwnUnits, own_units
from gramercy.estimators.uncertainty import own_entries
from gramercy.estimators.uncertainty.entries import Entries, correlation
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

MEAN, DEVIATION, CORRELATION = "mean", "standard deviation", "correlation"


def group_differences(first: Evidence, second: Evidence, level: float = 0.95) -> pd.DataFrame:
    """Means, standard deviations and correlations of two groups, and their differences.

    Parameters
    ----------
    first, second
        The evidence of two groups of one release.
    level
        Confidence level of the intervals.

    Returns
    -------
    DataFrame
        One line for each number: ``statistic``, ``column``, ``other`` (of correlations), ``first``,
        ``second``, ``difference`` (the first minus the second), its ``standard_error``, ``lower``,
        ``upper``, ``p_value``, and ``q_value``, the least false discovery rate (Benjamini and
        Hochberg 1995) at which the difference is found among all in the table. NaN where the noise
        leaves nothing. Means and standard deviations need an intercept and clipped rows.

    Notes
    -----
    If both groups have folds, the sampling error is that of the jackknife; otherwise rows are
    assumed to be Gaussian.
    """
    lines = [*_own_lines(first, second), *_correlation_lines(first, second)]
    table = pd.DataFrame(lines, columns=["statistic", "column", "other", "first", "second", "sd"])
    difference = table["first"] - table["second"]
    error = table.pop("sd")
    reach = float(norm.isf((1 - level) / 2)) * error
    p_value = pd.Series(2 * norm.sf(np.abs(difference) / error), index=table.index)
    known = p_value.notna()
    q_value = pd.Series(np.nan, index=table.index)
    if known.any():
        q_value[known] = false_discovery_control(p_value[known])
    return table.assign(
        difference=difference,
        standard_error=error,
        lower=difference - reach,
        upper=difference + reach,
        p_value=p_value,
        q_value=q_value,
    )


Line = tuple[str, str, str, float, float, float]


def _own_lines(first: Evidence, second: Evidence) -> Iterator[Line]:
    """Means and standard deviations in the columns' own units, if the release has them."""
    units = own_units(first), own_units(second)
    if units[0] is None or units[1] is None:
        return
    functions = {MEAN: own_entries.own_means, DEVIATION: own_entries.own_deviations}
    for statistic, of in functions.items():
        pair = of(first, units[0]), of(second, units[1])
        numbers = zip(units[0].names, *map(_numbers, pair), strict=True)
        for name, (a, sd_a), (b, sd_b) in numbers:
            yield statistic, name, "", a, b, float(np.hypot(sd_a, sd_b))


def _correlation_lines(first: Evidence, second: Evidence) -> Iterator[Line]:
    pair = [correlation(each, "correlation") for each in (first, second)]
    q = len(pair[0].estimate)
    names = first.names[len(first.names) - q :]
    unknown = [_unknown(each, own_units(each)) for each in (first, second)]
    i, j = np.triu_indices(q, 1)
    values = [
        (_known(each, each.estimate) * lost, _known(each, each.standard_error))
        for each, lost in zip(pair, unknown, strict=True)
    ]
    (a, sd_a), (b, sd_b) = ((value[i, j], sd[i, j]) for value, sd in values)
    for k in range(i.size):
        sd = float(np.hypot(sd_a[k], sd_b[k]))
        yield CORRELATION, names[i[k]], names[j[k]], float(a[k]), float(b[k]), sd


def _unknown(evidence: Evidence, units: OwnUnits | None) -> Array | float:
    """NaN for correlations whose columns are lost in the noise, else 1."""
    if units is None:
        return 1.0
    lost = units.unknown(evidence.raw, evidence.deviations, evidence.terms)
    factors: Array = np.where(lost, np.nan, 1.0)
    return factors


def _numbers(entries: Entries) -> list[tuple[float, float]]:
    """Every number with its standard error."""
    numbers = _known(entries, entries.estimate), _known(entries, entries.standard_error)
    return [(float(x), float(sd)) for x, sd in zip(*numbers, strict=True)]


def _known(entries: Entries, values: Array) -> Array:
    known: Array = np.where(entries.estimable, values, np.nan)
    return known
