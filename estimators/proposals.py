"""Derived columns that would say more of a column than its own moments do.

A mean, a correlation or a regression of a column that is mostly zero, or has a long tail, depends
on a few of its cells, which clipping shortens and noise hides. A function of it does not: which
cells are not zero, and a logarithm. What each buys is measured in `benchmarks.analyses.transforms`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.estimators.far_cells import noisy_cells
from gramercy.estimators.linear.formula import Function
from gramercy.estimators.released_table import ReleasedTable
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.problem import Notice

Array = NDArray[np.float64]

_AT = (0.025, 0.25, 0.5, 0.75, 0.975, 0.995)  # quantiles by which tails are seen
_MOSTLY = 0.5  # share of zeros
_LOPSIDED = 4.0  # the upper half over the lower half of 95 % of the cells
_WIDE = 6.0  # 95 % of the cells over half of them; 2.9 for normal ones
_FAR = 8.0  # widths of the bin of zero
_LARGE = 20.0  # below, log1p and asinh are nearly straight
_VALUES = 3  # a column of so few values has no tail


@dataclass(frozen=True)
class Shape:
    """What of a column's distribution decides whether a function of it is proposed.

    Parameters
    ----------
    name
        Of the column.
    zeros
        Share of the cells that are zero.
    quantiles
        At `_AT`.
    positive
        Whether no cell is negative, as the contract says.
    few_values
        Whether it has one, two or three values.
    """

    name: str
    zeros: float
    quantiles: Array
    positive: bool
    few_values: bool

    @classmethod
    def of_cells(cls, name: str, cells: Array, lower: float) -> Self | None:
        """The shape of cells; None without any. Private, as the cells are."""
        present = cells[np.isfinite(cells)]
        if not present.size:
            return None
        few = len(np.unique(present)) <= _VALUES
        zeros = float(np.mean(present == 0))
        return cls(name, zeros, np.quantile(present, _AT), lower >= 0, few)

    @classmethod
    def of_release(cls, evidence: Evidence, column: ColumnFacts) -> Self | None:
        """The shape by the published histograms; None without any."""
        cells = noisy_cells(evidence, column.name)
        distribution = ReleasedTable(evidence).distribution(column.name)
        if cells is None or distribution is None:
            return None
        found = np.array([each.value for each in distribution.quantiles(_AT)])
        at = int(np.searchsorted(cells.edges, 0.0, side="right")) - 1
        zeros = 0.0
        if 0 <= at < len(cells.counts):
            lower, upper = cells.edges[at : at + 2]
            if found[-1] > _FAR * upper and -found[0] <= -_FAR * lower:
                zeros = float(np.clip(cells.counts[at] / max(cells.cells, 1.0), 0.0, 1.0))
        most = np.sort(cells.counts)[::-1]
        few = cells.cells - most[:_VALUES].sum() <= 0.01 * cells.cells
        declared = dict(zip(evidence.names, evidence.bounds, strict=False)).get(column.name)
        positive = column.lower >= 0 if declared is None else declared[0] >= 0
        return cls(column.name, zeros, found, positive, bool(few))

    @property
    def is_mostly_zero(self) -> bool:
        """Whether more than half of the cells are zero, and the others amounts."""
        amounts = not self.few_values and (self.positive or self.has_long_tail)
        return self.zeros > _MOSTLY and amounts

    @property
    def has_long_tail(self) -> bool:
        """Whether some cells are so far out that moments are theirs."""
        low, first, middle, third, high, last = self.quantiles
        if self.few_values or not max(abs(low), abs(last)) > _LARGE:
            return False
        if self.positive:
            return bool(last > middle and high - middle > _LOPSIDED * (middle - low))
        return bool(high - low > _WIDE * (third - first))

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions to publish; none for a column whose moments say enough."""
        found = []
        if self.has_long_tail:
            found.append(Function("log1p" if self.positive else "asinh", (self.name,)))
        if self.is_mostly_zero:
            found.append(Function("is not zero", (self.name,)))
        return tuple(found)


@dataclass(frozen=True)
class Proposal:
    """A function of a column that a contract could publish, and why."""

    function: Function
    why: str

    @property
    def column(self) -> str:
        """The column that it is computed from."""
        return self.function.inputs[0]

    @property
    def line(self) -> str:
        """What the contract says, under ``columns``."""
        return self.function.line


def proposals(shapes: Iterable[Shape], derived: Sequence[ColumnFacts]) -> Iterator[Proposal]:
    """The functions that are worth publishing, of columns that have no such function yet.

    `derived`: the derived columns that there are.
    """
    known = [each.derived for each in derived if each.derived is not None]
    monotone = {x.inputs[0] for x in known if x.function.back(np.zeros(1)) is not None}
    conditions = {(x.inputs[0], x.transform) for x in known}
    for shape in shapes:
        for function in shape.functions:
            (column,) = function.inputs
            of_zeros = function.transform == "is not zero"
            if column in monotone and not of_zeros:
                continue
            if {(column, "is not zero"), (column, "> 0")} & conditions and of_zeros:
                continue
            why = f"{100 * shape.zeros:.0f} % of the cells are zero" if of_zeros else "long tail"
            yield Proposal(function, why)


def of_release(evidence: Evidence) -> list[Proposal]:
    """What the published histograms of a release propose."""
    numeric = [each for each in evidence.columns if isinstance(each, ColumnFacts)]
    own = (
        each
        for each in numeric
        if each.derived is None and each.unit is None and each.name not in evidence.signs
    )
    shapes = (Shape.of_release(evidence, each) for each in own)
    return list(proposals((each for each in shapes if each is not None), numeric))


def proposals_table(found: Iterable[Proposal]) -> pd.DataFrame:
    """One line each: ``column``, ``why``, the ``function`` and the ``line`` of a contract."""
    lines = [(each.column, each.why, each.function.in_words, each.line) for each in found]
    return pd.DataFrame(lines, columns=["column", "why", "function", "line"], dtype="str")


def for_the_steward(found: Sequence[Proposal]) -> Notice | None:
    """What a steward could add to the contract; None without proposals."""
    if not found:
        return None
    columns = tuple(dict.fromkeys(each.column for each in found))
    return families.TAILS(
        "Means, correlations and regressions depend on few cells of: {columns}.",
        "Functions of these columns are more accurate. To publish them too, add under 'columns' in "
        "the contract: {lines}",
        columns=columns,
        lines="; ".join(each.line for each in found),
    )
