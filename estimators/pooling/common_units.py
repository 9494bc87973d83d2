"""Matrices of releases with different constants, in the units of one of them.

A column z = (x - a) / s in the units of one release is (s / t) z + (a - b) / t in those of another
with centre b and scale t. With an intercept that is a linear map of the row (1, z), and the second
moment maps exactly. Missing cells are zero in every units, so the shift of column j applies to the
share o_j of its cells that are present, and a diagonal entry, whose cells are present together, has
o_j where the product of two columns has o_i o_j.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CommonUnits:
    """The units of a pool.

    Parameters
    ----------
    names
        Names of the p columns of the matrix.
    columns
        Their table columns, whose centres and scales are the units; None for the intercept.
    present
        Share of the rows that have a value, of each column; shape (p,).
    radius
        The second moment in units of the scaled columns is divided by its square.
    """

    names: tuple[str, ...]
    columns: tuple[ColumnFacts | LevelsFacts | None, ...]
    present: Array
    radius: float


@dataclass(frozen=True)
class MatrixMap:
    """The linear map of the matrices of one release to common units.

    Parameters
    ----------
    linear
        L, shape (p, p): a matrix S is mapped to L S L^T, apart from the diagonal.
    diagonal
        Factors of S_jj, S_0j and S_00 in the mapped entry jj; shape (p, 3).
    order
        The column of the release for each column of the pool.
    """

    linear: Array
    diagonal: Array
    order: NDArray[np.intp]

    def __call__(self, matrix: Array) -> Array:
        """The matrix in common units; symmetric, shape (p, p)."""
        mapped: Array = self.linear @ matrix @ self.linear.T
        mapped = (mapped + mapped.T) / 2
        own = matrix[np.ix_(self.order, self.order)]
        with_first = matrix[0, self.order]
        entries = np.column_stack([np.diag(own), with_first, np.full(len(own), matrix[0, 0])])
        np.fill_diagonal(mapped, (self.diagonal * entries).sum(axis=1))
        return mapped


def matrix_map(evidence: Evidence, units: CommonUnits) -> MatrixMap:
    """The map from the units of a release to common units.

    Parameters
    ----------
    evidence
        A release with the columns of `units`, in any order. If centres differ, its first column is
        the intercept.
    units
        The units of the pool.
    """
    index: Mapping[str, int] = {name: i for i, name in enumerate(evidence.names)}
    order = np.array([index[name] for name in units.names])
    present = shares_present(evidence)[order]
    pairs = [(evidence.columns[i], column) for i, column in zip(order, units.columns, strict=True)]
    scale, shift = np.array([_scale_and_shift(own, common) for own, common in pairs]).T
    of_shares = units.present / present
    radius = (evidence.radius or 1.0) / units.radius
    linear = np.zeros((len(order), len(order)))
    linear[np.arange(len(order)), order] = radius * of_shares * scale
    linear[:, 0] += radius * of_shares * present * shift
    diagonal = np.column_stack([scale**2, 2 * scale * shift, present * shift**2])
    return MatrixMap(linear, radius**2 * of_shares[:, None] * diagonal, order)


def shares_present(evidence: Evidence) -> Array:
    """The share of rows with a value of each column, 1 where it is unknown; shape (p,)."""
    return np.array(evidence.present or [1.0] * len(evidence.raw))


def _scale_and_shift(
    own: ColumnFacts | LevelsFacts | None, common: ColumnFacts | LevelsFacts | None
) -> tuple[float, float]:
    if isinstance(own, ColumnFacts) and isinstance(common, ColumnFacts):
        return own.scale / common.scale, (own.centre - common.centre) / common.scale
    return 1.0, 0.0
