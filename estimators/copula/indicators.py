"""Numeric columns and indicators of levels, and the covariances that a copula should give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.copula.hermite import hermite_coefficients
from gramercy.estimators.copula.released import Category, ReleasedColumns, TableColumn

Array = NDArray[np.float64]


def spans(sizes: Sequence[int]) -> list[slice]:
    """Neighbouring slices of these sizes."""
    ends = np.cumsum(sizes)
    return [slice(int(end) - size, int(end)) for end, size in zip(ends, sizes, strict=True)]


@dataclass(frozen=True)
class Indicators:
    """Target covariances of numeric columns, and of the indicators of all levels and of none.

    Parameters
    ----------
    slices
        Those of every table column.
    covariance
        Shape (m, m); its blocks on the diagonal are zero.
    deviation
        Standard deviations by the distributions of the columns; infinite for constant ones, so that
        their correlations are zero. Shape (m,).
    expanded
        Hermite coefficients of every numeric column; None for levels.
    """

    slices: list[slice]
    covariance: Array
    deviation: Array
    expanded: tuple[Array | None, ...]

    @classmethod
    def of(cls, released: ReleasedColumns) -> Indicators:
        """Released correlations, times the standard deviations of the columns' distributions.

        Correlations are used, and not covariances, because the rows of a matrix are weighted where
        they were clipped, and those of histograms are not.
        """
        parts, deviations = [], []
        expanded: list[Array | None] = []
        for column, own in zip(released.columns, released.slices, strict=True):
            part = np.zeros((own.stop - own.start, len(released.correlation)))
            if isinstance(column, Category):
                shares = column.choice.shares
                part[:, own] = np.diag(np.sqrt(shares[:-1] * (1 - shares[:-1])))
                part = np.vstack([part, -part.sum(axis=0)])
                deviations.append(np.sqrt(shares * (1 - shares)))
                expanded.append(None)
            else:
                coefficients = hermite_coefficients(column.marginal)
                expanded.append(coefficients)
                deviations.append(np.sqrt(np.maximum(coefficients[-1:], 0.0)))
                part[0, own] = deviations[-1]
            parts.append(part)
        slices, linear = spans([len(part) for part in parts]), np.vstack(parts)
        covariance = linear @ released.correlation @ linear.T
        for own in slices:
            covariance[own, own] = 0.0
        deviation = np.concatenate(deviations)
        return cls(slices, covariance, np.where(deviation > 0, deviation, np.inf), tuple(expanded))

    def difference(
        self, columns: Sequence[TableColumn], slices: Sequence[slice], latent: Array
    ) -> Array:
        """Target covariances minus those of simulated rows, shape (m, m)."""
        parts = []
        for column, own in zip(columns, slices, strict=True):
            if isinstance(column, Category):
                chosen = column.choice.chosen(latent[:, own])
                parts.append(chosen[:, None] == np.arange(column.choice.shares.size))
            else:
                parts.append(column.marginal.values(latent[:, own]))
        cells = np.column_stack(parts).astype(np.float64)
        cells -= cells.mean(axis=0)
        difference: Array = self.covariance - cells.T @ cells / len(cells)
        for own in self.slices:
            difference[own, own] = 0.0
        return difference

    def errors(self, difference: Array) -> Array:
        """Sum of the squared errors of the correlations of every table column."""
        squares = np.sum((difference / np.outer(self.deviation, self.deviation)) ** 2, axis=1)
        return np.array([float(squares[own].sum()) for own in self.slices])
