"""What derived columns say in the units of the columns that they are computed from.

A quantile of an increasing function is that function of the quantile, so quantiles, and the edges
of histograms, are transformed back as they are; but not where the other column is released too, and
its own histogram says what its quantiles are. A mean is not: the mean of ``log1p(x)`` becomes the
geometric mean of 1 + x, minus 1. It is named so, and never called the mean of x. The mean of an
indicator is a share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.estimators.released_table import ReleasedTable
from gramercy.estimators.table_units import TableUnits
from gramercy.estimators.uncertainty.entry_estimates import Target
from gramercy.estimators.uncertainty.table_entries import table_means
from gramercy.schemas.derived import Condition, IsMissing, Transform
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]
Facts = ColumnFacts | LevelsFacts | None

_MEANS = {
    "log1p": "geometric mean of 1 + {of}, minus 1",
    "sqrt": "square of the mean root of {of}",
    "rank": "{of} with the mean normal score",
}
_OTHER_MEAN = "back-transformed mean of {transform}({of})"
_MEDIAN = 0.5


@dataclass(frozen=True)
class BackTransform:
    """From a derived column back to the column that it is an increasing function of.

    Parameters
    ----------
    of
        The column of the table.
    transform
        The function.
    """

    of: str
    transform: Transform

    @classmethod
    def from_facts(cls, facts: Facts) -> BackTransform | None:
        """None unless the column is an increasing function of another."""
        derived = facts.derived if isinstance(facts, ColumnFacts) else None
        if derived is None or derived.function.back(np.zeros(1)) is None:
            return None
        return cls(derived.inputs[0], derived.function)

    @property
    def mean_in_words(self) -> str:
        """What the mean becomes."""
        text = self.transform.declared.text
        return _MEANS.get(text, _OTHER_MEAN).format(of=self.of, transform=text)

    def __call__(self, values: Array) -> Array:
        """The values in the units of the column; those that no cell can have are moved to it."""
        possible = np.clip(values, *self.transform.limits((-np.inf, np.inf)))
        with np.errstate(over="ignore"):
            found = self.transform.back(possible)
        return values if found is None else found


def is_share(facts: Facts) -> bool:
    """Whether the mean of a derived column is the share of the rows with something."""
    derived = facts.derived if isinstance(facts, ColumnFacts) else None
    return derived is not None and isinstance(derived.function, Condition | IsMissing)


def in_units_of_inputs(
    evidence: Evidence, units: TableUnits, level: float, target: Target
) -> pd.DataFrame:
    """The means and medians of derived columns, in the units of their inputs.

    Returns one line for each ``column`` and ``quantity``, in words: its ``value``, ``lower`` and
    ``upper``, with the confidence `level`, and ``unit``: the input, or ``share``. Intervals of
    medians are for a population. Empty without derived columns that can be transformed back.
    """
    means, known = table_means(evidence, units), ReleasedTable(evidence)
    lower, upper = means.interval(level, target)
    values = np.where(means.estimable, [means.estimate, lower, upper], np.nan).T
    lines = [
        line
        for facts, numbers in zip(evidence.columns[1:], values, strict=True)
        if isinstance(facts, ColumnFacts) and facts.derived
        for line in _lines(known, facts, numbers, level)
    ]
    names = ["column", "quantity", "value", "lower", "upper", "unit"]
    table = pd.DataFrame(lines, columns=names)
    return table.astype(dict.fromkeys(("column", "quantity", "unit"), "str"))


def _lines(
    known: ReleasedTable, facts: ColumnFacts, mean: Array, level: float
) -> Iterator[tuple[str, str, float, float, float, str]]:
    back = BackTransform.from_facts(facts)
    if is_share(facts) and facts.derived is not None:
        value, lower, upper = np.clip(mean, 0.0, 1.0)
        words = f"share of rows with {facts.derived.in_words}"
        yield facts.name, words, value, lower, upper, "share"
    if back is None:
        return
    value, lower, upper = back(mean)
    yield facts.name, back.mean_in_words, value, lower, upper, back.of
    distribution = known.distribution(facts.name)
    if distribution is not None and back.of not in known.evidence.names:
        (median,) = distribution.quantiles((_MEDIAN,), level)
        value, lower, upper = back(np.array([median.value, median.lower, median.upper]))
        yield facts.name, f"median of {back.of}", value, lower, upper, back.of


def with_units_of_inputs(
    table: pd.DataFrame, columns: Sequence[Facts], names: Sequence[str]
) -> pd.DataFrame:
    """A table of numbers of columns, with those of derived ones in the units of their inputs.

    `table`: has ``column``. `names`: of numbers that are transformed back, such as ``value``. They
    are added after ``back_``, with ``in_units_of``, the input; NaN and empty for other columns,
    and where the input is released itself. Without columns that can be transformed back, the table
    is returned as it is.
    """
    released = {each.name for each in columns if each is not None}
    backs = {
        each.name: back
        for each in columns
        if each and (back := BackTransform.from_facts(each)) and back.of not in released
    }
    if not backs:
        return table
    found = table.assign(
        in_units_of=[backs[n].of if n in backs else "" for n in table["column"]],
        **{f"back_{name}": np.nan for name in names},
    )
    for column, back in backs.items():
        own = found["column"] == column
        for name in names:
            found.loc[own, f"back_{name}"] = back(found.loc[own, name].to_numpy(dtype=np.float64))
    return found.astype({"in_units_of": "str"})
