"""The numbers by which tables are compared: means, standard deviations and correlations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.estimators.own_units import OwnUnits, own_units
from gramercy.estimators.uncertainty.entries import Entries, correlation
from gramercy.estimators.uncertainty.jackknife import has_jackknife
from gramercy.estimators.uncertainty.own_entries import own_deviations, own_means
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts

Array = NDArray[np.float64]
Choice = tuple[NDArray[np.int64], ...]

MEAN, DEVIATION, CORRELATION = "mean", "standard deviation", "correlation"
NUMBER = ["kind", "column", "other"]  # what a number is; `other` is for correlations
_ARRAYS = ("estimate", "standard_error", "lower", "upper")


@dataclass(frozen=True)
class Measurements:
    """What one release, or a pool, says about its table; all arrays have shape (m,).

    Parameters
    ----------
    estimate, standard_error, lower, upper
        Each number with its standard error and its interval; NaN where it is unknown.
    freedom
        Degrees of freedom of the standard errors: those of the jackknife, or infinity.
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
        ``column`` and, for a correlation, ``other``. Without an intercept, and for unit rows, there
        are correlations only.
    """
    units = own_units(evidence)
    names = _names(evidence) if units is None else units.names
    lines = [(CORRELATION, names[i], names[j]) for i, j in zip(*_pairs(len(names)), strict=True)]
    if units is not None:
        numeric = np.array(names)[_numeric(evidence)].tolist()
        own = [(MEAN, name, "") for name in names] + [(DEVIATION, name, "") for name in numeric]
        lines = own + lines
    return pd.DataFrame(lines, columns=NUMBER)


def measure(evidence: Evidence, level: float = 0.95) -> Measurements:
    """The numbers of one release, or of a pool, in the order of `numbers`.

    Parameters
    ----------
    evidence
        A release or a pool.
    level
        Confidence level of each interval.
    """
    parts = [_parts(each, level, choice) for each, choice in _chosen(evidence)]
    estimate, error, lower, upper = (np.concatenate(part) for part in zip(*parts, strict=True))
    freedom = np.inf
    if has_jackknife(evidence):
        freedom = len(evidence.folds) - len({fold.stratum for fold in evidence.folds})
    return Measurements(estimate, error, lower, upper, float(freedom))


def _names(evidence: Evidence) -> tuple[str, ...]:
    """The columns of the correlations: all but an intercept."""
    names = evidence.names or tuple(str(i) for i in range(len(evidence.raw)))
    has_intercept = bool(evidence.columns) and evidence.columns[0] is None
    return names[1:] if has_intercept else names


def _numeric(evidence: Evidence) -> NDArray[np.bool_]:
    return np.array([isinstance(column, ColumnFacts) for column in evidence.columns[1:]], bool)


def _pairs(q: int) -> Choice:
    return np.triu_indices(q, 1)


def _chosen(evidence: Evidence) -> Iterator[tuple[Entries, Choice]]:
    """Entries of each kind, and which of them are numbers of their own."""
    units = own_units(evidence)
    if units is not None:
        yield own_means(evidence, units), (np.arange(len(units.names)),)
        yield own_deviations(evidence, units), np.nonzero(_numeric(evidence))
    correlations = _known_correlations(evidence, units)
    yield correlations, _pairs(len(correlations.estimate))


def _known_correlations(evidence: Evidence, units: OwnUnits | None) -> Entries:
    """Correlations that are not estimable where noise hides the columns."""
    entries = correlation(evidence, "correlation")
    if units is None:
        return entries
    hidden = units.unknown(evidence.raw, evidence.deviations, evidence.terms)
    return replace(entries, estimable=entries.estimable & ~hidden)


def _parts(entries: Entries, level: float, choice: Choice) -> tuple[Array, Array, Array, Array]:
    lower, upper = entries.interval(level)
    known = entries.estimable[choice]
    arrays = (entries.estimate, entries.standard_error, lower, upper)
    values = (np.where(known, array[choice], np.nan) for array in arrays)
    estimate, error, below, above = values
    return estimate, error, below, above
