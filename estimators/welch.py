"""Tests whether numbers of disjoint tables are equal: of periods of the data, or groups of rows.

The tables have different rows and independent noise, so all errors are independent: those of the
noise and those of sampling. Whether a number is the same in all tables is tested by Welch's
analysis of variance, for the populations behind the tables. With T tables, estimates x_t and
standard errors s_t, weights w_t = 1 / s_t^2 and m = sum w_t x_t / sum w_t,

F = sum w_t (x_t - m)^2 / (T - 1) / (1 + 2 (T - 2) A / (T^2 - 1)),  A = sum (1 - w_t / w)^2 / f_t,

has about the F distribution with T - 1 and (T^2 - 1) / (3 A) degrees of freedom. Here w = sum w_t,
and f_t are the degrees of freedom of s_t: those of the jackknife, or infinity. Of two tables, this
is Welch's test of the difference, with Satterthwaite's 1 / A degrees of freedom.

Welch (1951), "On the comparison of several mean values", Biometrika 38.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from gramercy.estimators.own_numbers import Measurements, measure, numbers
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OverTime:
    """The numbers of several periods.

    Parameters
    ----------
    series
        One line for each period and number: ``period``, ``kind``, ``column``, ``other``,
        ``estimate``, ``standard_error``, ``lower`` and ``upper``; NaN where noise hides a number.
    changes
        One line for each number: ``kind``, ``column``, ``other``, and as in `changes`.
    """

    series: pd.DataFrame
    changes: pd.DataFrame


def over_time(periods: Mapping[str, Evidence], level: float = 0.95) -> OverTime:
    """The numbers of several periods, in the order of the last one.

    Parameters
    ----------
    periods
        Releases by the labels of their periods; at least one. A number that one of them lacks is
        unknown there.
    level
        Confidence level of each interval.
    """
    measured = {label: measure(each, level) for label, each in periods.items()}
    lines = {label: pd.MultiIndex.from_frame(numbers(each)) for label, each in periods.items()}
    wanted = [*lines.values()][-1]
    aligned = {
        label: each.reordered(lines[label].get_indexer(wanted)) for label, each in measured.items()
    }
    lines_of = wanted.to_frame(index=False)
    parts = {label: lines_of.assign(**each.arrays) for label, each in aligned.items()}
    series = pd.concat(parts, names=["period", None]).reset_index("period")
    found = lines_of.join(changes([*aligned.values()]))
    return OverTime(series.reset_index(drop=True), found)


def differences(first: Evidence, second: Evidence, level: float = 0.95) -> pd.DataFrame:
    """The numbers of two groups of one release, or of two releases, and their differences.

    Parameters
    ----------
    first, second
        Their evidence. A number of the first that the second lacks is unknown there.
    level
        Confidence level of the intervals.

    Returns
    -------
    DataFrame
        One line for each number: ``kind``, ``column``, ``other`` (of correlations), ``first``,
        ``second``, ``difference`` (the first minus the second), its ``standard_error``, ``lower``,
        ``upper``, the ``p_value`` of no difference, and ``adjusted`` as in `changes`. NaN where
        noise hides a number.
    """
    lines = [pd.MultiIndex.from_frame(numbers(each)) for each in (first, second)]
    places = lines[1].get_indexer(lines[0])
    pair = [measure(first, level), measure(second, level).reordered(places)]
    a, b = (each.estimate for each in pair)
    variances = [each.standard_error**2 for each in pair]
    error = np.sqrt(sum(variances))
    losses = (variance**2 / each.freedom for variance, each in zip(variances, pair, strict=True))
    with np.errstate(divide="ignore"):  # without folds, the normal law
        freedom = error**4 / sum(losses)
    reach = scipy.stats.t.isf((1 - level) / 2, freedom) * error
    named = {"first": a, "second": b, "difference": a - b, "standard_error": error}
    found = numbers(first).assign(**named, lower=a - b - reach, upper=a - b + reach)
    return found.join(changes(pair)[["p_value", "adjusted"]])


def changes(tables: Sequence[Measurements]) -> pd.DataFrame:
    """Whether each number is the same in all tables.

    Parameters
    ----------
    tables
        The same numbers of at least one table.

    Returns
    -------
    DataFrame
        One line for each number: ``periods`` in which it is known, ``p_value`` of no change, and
        ``adjusted``, the least false discovery rate (Benjamini and Hochberg 1995) at which the
        change is found among all numbers; NaN if it is known in fewer than two.
    """
    x = np.array([each.estimate for each in tables])
    errors = np.array([each.standard_error for each in tables])
    freedom = np.array([each.freedom for each in tables])[:, None]
    known = np.isfinite(x) & np.isfinite(errors) & (errors > 0)
    weight = np.where(known, 1 / np.where(known, errors, 1.0) ** 2, 0.0)
    count, total = known.sum(axis=0), np.maximum(weight.sum(axis=0), 1e-300)
    centre = (weight * np.where(known, x, 0.0)).sum(axis=0) / total
    squares = (weight * np.where(known, x - centre, 0.0) ** 2).sum(axis=0)
    loss = (np.where(known, (1 - weight / total) ** 2, 0.0) / freedom).sum(axis=0)
    between = np.maximum(count - 1, 1)
    square = np.maximum(count**2 - 1, 1)
    quotient = squares / between / (1 + 2 * (count - 2) * loss / square)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_f = scipy.stats.f.sf(quotient, between, square / (3 * loss))
    p_value = np.where(loss > 0, of_f, scipy.stats.chi2.sf(squares, between))
    p_value = np.where(count >= 2, p_value, np.nan)
    adjusted = p_value.copy()
    if (tested := np.isfinite(p_value)).any():
        adjusted[tested] = scipy.stats.false_discovery_control(p_value[tested])
    return pd.DataFrame({"periods": count, "p_value": p_value, "adjusted": adjusted})
