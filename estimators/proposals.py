"""Derived columns that would say more of a column than its own moments do.

A mean, a correlation or a regression of a column that is mostly zero, or has a long tail, depends
on a few of its cells, which clipping shortens and noise hides. A function of it does not: which
cells are not zero, and a logarithm. What each buys is measured in `benchmarks.analyses.transforms`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.estimators.far_cells import noisy_cells
from gramercy.estimators.linear.formula import Function
from gramercy.estimators.released_table import ReleasedTable
from gramercy.schemas import families
from gramercy.schemas.derived import DerivedFacts
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
_VALUES, _NEARLY_ALL = 3, 0.99  # a column of so few values has no tail


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
        At `_AT`, without the zeros if a column of amounts is mostly zero.
    positive
        Whether no cell is negative, as the contract says.
    few_values
        Whether 99 % of the cells have one of three values.
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
        counts = np.sort(np.unique(present, return_counts=True)[1])
        zeros = float(np.mean(present == 0))
        at = _probabilities(zeros, positive=lower >= 0)
        return cls(name, zeros, np.quantile(present, at), lower >= 0, _are_few(counts))

    @classmethod
    def of_release(cls, evidence: Evidence, column: ColumnFacts) -> Self | None:
        """The shape by the published histograms; None without any."""
        cells = noisy_cells(evidence, column.name)
        distribution = ReleasedTable(evidence).distribution(column.name)
        if cells is None or distribution is None:
            return None
        found = np.array([each.value for each in distribution.quantiles(_AT)])
        zero = int(np.searchsorted(cells.edges, 0.0, side="right")) - 1
        zeros = 0.0
        if 0 <= zero < len(cells.counts):
            lower, upper = cells.edges[zero : zero + 2]
            if found[-1] > _FAR * upper and -found[0] <= -_FAR * lower:
                zeros = float(np.clip(cells.counts[zero] / max(cells.cells, 1.0), 0.0, 1.0))
        declared = dict(zip(evidence.names, evidence.bounds, strict=False)).get(column.name)
        positive = column.lower >= 0 if declared is None else declared[0] >= 0
        at = _probabilities(zeros, positive=positive)
        found = np.array([each.value for each in distribution.quantiles(at)])
        few = _are_few(np.sort(cells.counts))
        return cls(column.name, zeros, found, positive, few)

    @property
    def is_mostly_zero(self) -> bool:
        """Whether more than half of the cells are zero, and the others amounts."""
        is_amount = not self.few_values and (self.positive or self.has_long_tail)
        return self.zeros > _MOSTLY and is_amount

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


def _probabilities(zeros: float, *, positive: bool) -> Sequence[float]:
    """Where the quantiles of the cells are those of the amounts that are not zero, at `_AT`."""
    skipped = zeros if positive and _MOSTLY < zeros < 1 else 0.0
    return [skipped + (1 - skipped) * each for each in _AT]


def _are_few(counts: NDArray[Any]) -> bool:
    """Whether nearly all cells are in few places; `counts` increase."""
    return bool(counts[-_VALUES:].sum() >= _NEARLY_ALL * counts.sum())


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


def proposals(shapes: Iterable[Shape | None], known: Sequence[DerivedFacts]) -> Iterator[Proposal]:
    """The functions that are worth publishing, of columns that have no such function yet.

    `known`: of the derived columns that there are.
    """
    monotone = {x.inputs[0] for x in known if x.function.back(np.zeros(1)) is not None}
    conditions = {(x.inputs[0], x.transform) for x in known}
    for shape in filter(None, shapes):
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
    return list(proposals(shapes, [each.derived for each in numeric if each.derived]))


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
