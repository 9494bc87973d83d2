"""The kurtosis of columns, from their published histograms and variances.

A histogram shows the cells in bins whose counts exceed the noise. If the variance is larger
than that of these cells, the rest belongs to cells that are not seen: they are taken to be at the
geometric mean of the distances of the last bin that is seen and of the bound in use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.uncertainty.moment_errors import has_intercept, tail_factor
from gramercy.schemas.evidence import Evidence, Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]

GAUSSIAN = 3.0
_SEEN = 3.0  # standard deviations of the noise that the count of a bin exceeds
_LEAST, _LARGEST = 1.05, 500.0


@dataclass(frozen=True)
class SeenCells:
    """Moments of the cells of a column that its histogram shows, in scaled units."""

    second: float
    fourth: float
    unseen: float  # squared distance of cells that are not seen

    @classmethod
    def of(cls, marginal: Histogram, column: ColumnFacts) -> SeenCells | None:
        """The cells of a numeric column; None if the noise hides all of them."""
        ends = np.isfinite(marginal.lower) & np.isfinite(marginal.upper)
        counts = marginal.count[ends]
        weights = np.where(counts > _SEEN * marginal.sd, counts, 0.0)
        if not weights.any():
            return None
        shares = weights / weights.sum()
        low, high = (
            (np.clip(each[ends], column.lower, column.upper) - column.centre) / column.scale
            for each in (marginal.lower, marginal.upper)
        )
        middle = low / 2 + high / 2
        mean = float(shares @ middle)
        squares = (middle - mean) ** 2 + (high / 2 - low / 2) ** 2 / 3
        seen = np.flatnonzero(weights)
        edge = max(mean - low[seen[0]], high[seen[-1]] - mean)
        bounds = [(each - column.centre) / column.scale for each in (column.lower, column.upper)]
        farthest = max(mean - bounds[0], bounds[1] - mean, edge)
        return cls(float(shares @ squares), float(shares @ squares**2), float(edge * farthest))

    def kurtosis(self, variance: float) -> float:
        """The kurtosis of a column with this variance."""
        rest = max(variance - self.second, 0.0)
        return (self.fourth + rest * self.unseen) / max(variance, self.second, 1e-12) ** 2


def column_kurtosis(evidence: Evidence, variance: Array) -> Array:
    """The kurtosis of every column but the intercept, shape (q,); at most 500.

    `variance`: of the columns in scaled units. Of a level, it follows from its share of the rows.
    Of a numeric column without a histogram, it is that of a Gaussian one times `tail_factor`.
    """
    marginals = {each.column: each for each in evidence.marginals}
    usual = GAUSSIAN * tail_factor(evidence)
    result = []
    columns = evidence.columns[int(has_intercept(evidence)) :]
    for column, of_column in zip(columns, variance.tolist(), strict=True):
        if isinstance(column, LevelsFacts):
            value = 1 / max(of_column, 1e-6) - 3  # of a share s, with variance s (1 - s)
        elif column is not None and column.name in marginals:
            seen = SeenCells.of(marginals[column.name], column)
            value = GAUSSIAN if seen is None else seen.kurtosis(of_column)
        else:
            value = usual
        result.append(value if math.isfinite(value) else _LARGEST)
    kurtosis: Array = np.clip(np.array(result), _LEAST, _LARGEST)
    return kurtosis
