"""Releases in common units: their matrices, the law of their summed noise, and weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.noise.draws import symmetric_root
from gramercy.estimators.noise.nearest_metric import noise_metric
from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance, sampling_covariance
from gramercy.schemas.evidence import Evidence, NoiseTerm, noise_sum
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

# Matrices of releases with different constants, in the units of one of them.
#
# A column z = (x - a) / s in the units of one release is (s / t) z + (a - b) / t in those of
# another with centre b and scale t. With an intercept that is a linear map of the row (1, z), and
# the second moment maps exactly. Missing cells are zero in every units, so the shift of column j
# applies to the share o_j of its cells that are present, and a diagonal entry, whose cells are
# present together, has o_j where the product of two columns has o_i o_j.

Array = NDArray[np.float64]

_FLOOR = 1e-9  # of the average variance: of a direction in which rows do not vary


@dataclass(frozen=True)
class CommonUnits:
    """The units of a pool."""

    names: tuple[str, ...]  # names of the p columns of the matrix
    # their table columns, whose centres and scales are the units; None for the intercept
    columns: tuple[ColumnFacts | LevelsFacts | None, ...]
    present: Array  # share of the rows that have a value, of each column; shape (p,)
    radius: float  # the second moment in units of the scaled columns is divided by its square


@dataclass(frozen=True)
class MatrixMap:
    """The linear map of the matrices of one release to common units."""

    linear: Array  # L, shape (p, p): a matrix S is mapped to L S L^T, apart from the diagonal
    diagonal: Array  # factors of S_jj, S_0j and S_00 in the mapped entry jj; shape (p, 3)
    order: NDArray[np.intp]  # the column of the release for each column of the pool

    def __call__(self, matrix: Array) -> Array:
        """The matrix in common units; symmetric, shape (p, p)."""
        mapped = congruence(self.linear, matrix)
        own = matrix[np.ix_(self.order, self.order)]
        with_first = matrix[0, self.order]
        entries = np.column_stack([np.diag(own), with_first, np.full(len(own), matrix[0, 0])])
        np.fill_diagonal(mapped, (self.diagonal * entries).sum(axis=1))
        return mapped


def matrix_map(evidence: Evidence, units: CommonUnits) -> MatrixMap:
    """The map from the units of a release to common units.

    `evidence`: a release with the columns of `units`, in any order. If centres differ, its first
    column is the intercept.
    """
    index: Mapping[str, int] = {name: i for i, name in enumerate(evidence.names)}
    order = np.array([index[name] for name in units.names])
    present = shares_present(evidence)[order]
    scale, shift = scales_and_shifts(evidence, units, order)
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


def scales_and_shifts(
    evidence: Evidence, units: CommonUnits, order: NDArray[np.intp]
) -> tuple[Array, Array]:
    """A value z of a column of a release is scale z + shift in common units; shape (p,) each."""
    pairs = [(evidence.columns[i], column) for i, column in zip(order, units.columns, strict=True)]
    scale, shift = np.array([_scale_and_shift(own, common) for own, common in pairs]).T
    return scale, shift


def _scale_and_shift(
    own: ColumnFacts | LevelsFacts | None, common: ColumnFacts | LevelsFacts | None
) -> tuple[float, float]:
    if isinstance(own, ColumnFacts) and isinstance(common, ColumnFacts):
        return own.scale / common.scale, (own.centre - common.centre) / common.scale
    return 1.0, 0.0


def noise_terms(evidence: Evidence, linear: Array) -> tuple[NoiseTerm, ...]:
    """The noise of a release, or of a pool, after the map S -> L S L^T."""
    if not evidence.law.has_noise:
        return ()
    if not evidence.terms:
        return (NoiseTerm(evidence.law, linear),)
    return tuple(NoiseTerm(term.law, linear @ term.linear) for term in evidence.terms)


# Weights of the releases of a pool: inverse to the variance of their matrices.
#
# One weight for a release keeps the pool a linear map of the releases, so that its noise is exact
# and its matrix as positive as theirs. The matrix of release a has the variance v_a from noise, and
# from sampling if the rows are different: the sum over all entries, in units in which the columns
# of the tables are not correlated and have the variance 1, as far as the noise lets them be seen.
# So v_a does not depend on the units of the columns, and a release that hides the directions in
# which the rows vary little counts little. Directions in which no release shows that rows vary,
# such as that of a constant column, do not count: the noise there depends on arbitrary constants.
# The weight is proportional to 1 / v_a.


def weights(variances: Sequence[float]) -> Array:
    """Weights that add up to 1, inverse to the variances; equal among those of 0, if there are any.

    Shape (k,).
    """
    totals = np.array(variances)
    exact = totals == 0
    if exact.any():
        shares: Array = exact / exact.sum()
        return shares
    inverse = totals.min() / totals
    total: Array = inverse / inverse.sum()
    return total


def uncorrelated_units(matrices: Sequence[Array], terms: Sequence[Sequence[NoiseTerm]]) -> Array:
    """A for which A (S + F) A^T = I, in the d directions in which the rows are seen to vary.

    `matrices`: of the releases, denoised, in common units. `terms`: their noise there, independent.
    F is the size of the noise of the release that has least in each direction. S is the average of
    the matrices, in each direction by the precision of their noise. Rows are seen to vary where S
    exceeds 2 F, as the largest eigenvalue of noise alone does not; without any such direction, all
    directions count. Shape (d, p).
    """
    p = len(matrices[0])
    average = project(np.mean(matrices, axis=0), np.inf)
    least = (_FLOOR * float(np.trace(average)) / p or 1.0) * np.eye(p)
    noise = [noise_metric(noise_sum(each, p)[0], each, p) if each else 0.0 for each in terms]
    precisions = [_inverse(each + least) for each in noise]
    # In units in which the least noise is spherical, the shares of the releases add up to I.
    root = symmetric_root(_inverse(np.sum(precisions, axis=0)))
    units, shares = _inverse(root), [congruence(root, each) for each in precisions]
    size = _inverse(symmetric_root(np.sum([each @ each for each in shares], axis=0)))
    average = np.sum(
        [congruence(share @ units, own) for share, own in zip(shares, matrices, strict=True)],
        axis=0,
    )
    variances, directions = np.linalg.eigh(congruence(size, average))
    floor = math.sqrt(p)
    seen = variances > 2 * floor
    seen |= ~seen.any()
    scaled = directions[:, seen] / np.sqrt(np.maximum(variances[seen], 0.0) + floor)
    return np.asarray(scaled.T @ units, np.float64)


def _inverse(matrix: Array) -> Array:
    return np.asarray(np.linalg.inv(matrix), np.float64)


def typical_error(variance: Array) -> float:
    """The geometric mean of the standard deviations of all pairs of columns.

    `variance`: variance of every entry of a matrix, shape (p, p). The diagonal counts if p = 1.
    0 if an entry has no error.
    """
    p = len(variance)
    values = variance[np.triu_indices(p, 1)] if p > 1 else variance.ravel()
    return float(np.exp(np.log(values).mean() / 2)) if (values > 0).all() else 0.0


def sampling_errors(
    matrices: Sequence[Array], rows: Sequence[float], *, unit: bool, intercept: bool
) -> EntryCovariance:
    """Covariance of the entries by sampling for one row, under the assumed law of the rows.

    `matrices`, `rows`: the matrices of the tables in common units, and their numbers of rows. It is
    taken at the average matrix of all tables.
    """
    average = np.average(np.array(matrices), axis=0, weights=np.maximum(rows, 1.0))
    return sampling_covariance(project(average, np.inf), 1.0, unit=unit, intercept=intercept)
