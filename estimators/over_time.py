"""Means, standard deviations and correlations of several periods of the data, and their changes.

The tables of different periods have different rows, so all errors are independent: those of the
noise and those of sampling. Whether a number is the same in all periods is tested by Welch's
analysis of variance, for the populations behind the tables. With T periods, estimates x_t and
standard errors s_t, weights w_t = 1 / s_t^2 and m = sum w_t x_t / sum w_t,

F = sum w_t (x_t - m)^2 / (T - 1) / (1 + 2 (T - 2) A / (T^2 - 1)),  A = sum (1 - w_t / w)^2 / f_t,

has about the F distribution with T - 1 and (T^2 - 1) / (3 A) degrees of freedom. Here w = sum w_t,
and f_t are the degrees of freedom of s_t: those of the jackknife, or infinity.

Welch (1951), "On the comparison of several mean values", Biometrika 38.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2, f, false_discovery_control

from gramercy.estimators.own_units import OwnUnits, own_units
from gramercy.estimators.uncertainty.entries import Entries, correlation
from gramercy.estimators.uncertainty.jackknife import has_jackknife
from gramercy.estimators.uncertainty.own_entries import own_deviations, own_means
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts

Array = NDArray[np.float64]

MEAN, DEVIATION, CORRELATION = "mean", "standard deviation", "correlation"


NUMBER = ["kind", "column", "other"]  # what a number is; `other` is for correlations


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
        Releases with `is_in_own_units`, by the labels of their periods; at least one. A number that
        one of them lacks is unknown there.
    level
        Confidence level of each interval.
    """
    measured = {label: measure(each, level) for label, each in periods.items()}
    lines = {label: pd.MultiIndex.from_frame(numbers(each)) for label, each in periods.items()}
    wanted = [*lines.values()][-1]
    aligned = {
        label: each.reordered(lines[label].get_indexer(wanted)) for label, each in measured.items()
    }
    parts = [
        wanted.to_frame(index=False).assign(period=label, **each.arrays)
        for label, each in aligned.items()
    ]
    series = pd.concat(parts, ignore_index=True)
    found = pd.concat([wanted.to_frame(index=False), changes([*aligned.values()])], axis=1)
    return OverTime(series[["period", *NUMBER, *_ARRAYS]], found)


_ARRAYS = ("estimate", "standard_error", "lower", "upper")


@dataclass(frozen=True)
class Measurements:
    """What one release, or a pool, says about its table; all arrays have shape (m,).

    Parameters
    ----------
    estimate, standard_error, lower, upper
        Each number with its standard error and its interval; NaN where it is unknown.
    freedom
        Degrees of freedom of the standard errors.
    """

    estimate: Array
    standard_error: Array
    lower: Array
    upper: Array
    freedom: float

    @property
    def arrays(self) -> dict[str, Array]:
        """The four arrays by name."""
        return {name: getattr(self, name) for name in _ARRAYS}

    def reordered(self, places: NDArray[np.intp]) -> Measurements:
        """The numbers at these places; unknown where the place is -1."""
        taken = {
            name: np.where(places >= 0, array[places], np.nan)
            for name, array in self.arrays.items()
        }
        return Measurements(**taken, freedom=self.freedom)


def is_in_own_units(evidence: Evidence) -> bool:
    """Whether a release has means, standard deviations and correlations of its table."""
    return own_units(evidence) is not None


def numbers(evidence: Evidence) -> pd.DataFrame:
    """The m numbers that `measure` gives for releases with these columns.

    Returns
    -------
    DataFrame
        ``kind`` (`MEAN`, of a level its share; `DEVIATION`, of numeric columns; `CORRELATION`),
        ``column`` and, for a correlation, ``other``.
    """
    units = own_units(evidence)
    if units is None:
        raise ValueError
    names, numeric = units.names, _numeric(evidence)
    deviations = [name for name, known in zip(names, numeric, strict=True) if known]
    pairs = [(names[i], names[j]) for i, j in zip(*np.triu_indices(len(names), 1), strict=True)]
    lines = [(MEAN, name, "") for name in names]
    lines += [(DEVIATION, name, "") for name in deviations]
    lines += [(CORRELATION, *pair) for pair in pairs]
    return pd.DataFrame(lines, columns=NUMBER)


def measure(evidence: Evidence, level: float = 0.95) -> Measurements:
    """The numbers of one release, in the order of `numbers`.

    Parameters
    ----------
    evidence
        A release or a pool with `is_in_own_units`.
    level
        Confidence level of each interval.
    """
    units = own_units(evidence)
    if units is None:
        raise ValueError
    parts = [_parts(each, level, choice) for each, choice in _chosen(evidence, units)]
    estimate, error, lower, upper = (np.concatenate(part) for part in zip(*parts, strict=True))
    freedom = np.inf
    if has_jackknife(evidence):
        freedom = len(evidence.folds) - len({fold.stratum for fold in evidence.folds})
    return Measurements(estimate, error, lower, upper, float(freedom))


def changes(periods: Sequence[Measurements]) -> pd.DataFrame:
    """Whether each number is the same in all periods.

    Parameters
    ----------
    periods
        The numbers of at least one period.

    Returns
    -------
    DataFrame
        One line for each number: ``periods`` in which it is known, ``p_value`` of no change, and
        ``adjusted`` for testing all numbers at once (Benjamini and Hochberg); NaN if it is known in
        fewer than two.
    """
    x = np.array([each.estimate for each in periods])
    errors = np.array([each.standard_error for each in periods])
    freedom = np.array([each.freedom for each in periods])[:, None]
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
        of_f = f.sf(quotient, between, square / (3 * loss))
    p_value = np.where(loss > 0, of_f, chi2.sf(squares, between))
    p_value = np.where(count >= 2, p_value, np.nan)
    adjusted = p_value.copy()
    if (tested := np.isfinite(p_value)).any():
        adjusted[tested] = false_discovery_control(p_value[tested])
    return pd.DataFrame({"periods": count, "p_value": p_value, "adjusted": adjusted})


def _numeric(evidence: Evidence) -> NDArray[np.bool_]:
    return np.array([isinstance(column, ColumnFacts) for column in evidence.columns[1:]], bool)


def _chosen(
    evidence: Evidence, units: OwnUnits
) -> Iterator[tuple[Entries, tuple[NDArray[np.int64], ...]]]:
    """Entries of each kind, and which of them are numbers of their own and not hidden by noise."""
    q = len(units.names)
    yield own_means(evidence, units), (np.arange(q),)
    yield own_deviations(evidence, units), np.nonzero(_numeric(evidence))
    yield _known_correlations(evidence, units), np.triu_indices(q, 1)


def _known_correlations(evidence: Evidence, units: OwnUnits) -> Entries:
    entries = correlation(evidence, "correlation")
    hidden = units.unknown(evidence.raw, evidence.deviations, evidence.terms)
    return Entries(
        entries.estimate,
        entries.sampling_error,
        entries.noise_error,
        entries.estimable & ~hidden,
        entries.interval,
        entries.law,
    )


def _parts(
    entries: Entries, level: float, choice: tuple[NDArray[np.int64], ...]
) -> tuple[Array, Array, Array, Array]:
    lower, upper = entries.interval(level)
    known = entries.estimable[choice]
    arrays = (entries.estimate, entries.standard_error, lower, upper)
    values = (np.where(known, array[choice], np.nan) for array in arrays)
    estimate, error, below, above = values
    return estimate, error, below, above
