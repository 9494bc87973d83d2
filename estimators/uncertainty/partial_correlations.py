"""Partial correlations of a noisy second moment, by its inverse or by the lasso of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.estimators.solvers.columnwise import columnwise
from gramercy.estimators.uncertainty.correlation_errors import (
    CorrelationErrors,
    correlations_with_errors,
    not_estimable,
    variance_coefficients,
)
from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance
from gramercy.estimators.uncertainty.moment_errors import MomentErrors, moment_errors
from gramercy.estimators.uncertainty.tails import gamma_shape, noise_share
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.noise import NoiseLaw

# Partial correlations from the inverse of a noisy second moment, with errors.
#
# Noise makes an inverse too large. With D(W) = E[E W E] for the noise E, the inverse X of a noisy
# matrix is about the inverse of S - D(X), where S is the matrix without noise (Dyson's equation,
# exact in the limit of large p). So the inverse of S is estimated by (X^-1 + D(X))^-1, the inverse
# with its bias removed. If noise may have produced the smallest eigenvalues, there is no estimate.

Array = NDArray[np.float64]

_MAX_CORRECTION = 0.1  # largest share of an eigenvalue of the inverse that may be due to noise


def inverse_errors(evidence: Evidence, moments: MomentErrors) -> tuple[CorrelationErrors, Array]:
    """Correlations of the inverse, with the opposite sign, and its loadings.

    All or none are estimable. The loadings are the rows of the inverse divided by the square roots
    of its diagonal; zero without estimates. Both have the shape (q, q).

    `moments`: its moments about the means, corrected for missing cells.
    """
    q, rows = len(moments.matrix), max(evidence.rows, 1.0)
    freedom = rows - q - moments.offset
    corrected = None if freedom < 3 else bias_corrected(moments.matrix, moments.noise)
    if corrected is None:
        return not_estimable(q), np.zeros((q, q))
    inverse = np.linalg.inv(corrected)
    inverse = (inverse + inverse.T) / 2
    full = evidence.raw.copy()
    full[moments.offset :, moments.offset :] += corrected - moments.matrix
    own = moments.linear[:, moments.offset :]  # 1 / o on the diagonal: missing cells
    sampling = moment_errors(replace(evidence, repaired=full)).sampling
    sampling = sampling.transformed(inverse @ own)
    # Subtract D(X P X) from each P: noise makes X P X too large by X D(X P X) X.
    noise = replace(
        moments.noise,
        products=tuple(
            (
                p - moments.noise.dyson_correction(inverse @ p @ inverse),
                q - moments.noise.dyson_correction(inverse @ q @ inverse),
            )
            for p, q in moments.noise.products
        ),
    ).transformed(inverse)
    shape = gamma_shape(evidence.law, inverse @ moments.linear)
    clear = np.ones(q, dtype=bool)
    errors = correlations_with_errors(
        inverse, inverse, sampling, noise, shape, clear, rows / freedom
    )
    return errors.negated(), inverse / np.sqrt(np.diag(inverse))[:, None]


def bias_corrected(matrix: Array, noise: EntryCovariance) -> Array | None:
    """The matrix whose inverse is an unbiased estimate, to first order, of the inverse of S.

    None if the smallest eigenvalues may be due to noise alone.

    `matrix`: noisy, symmetric, shape (p, p). `noise`: covariance of its entries.
    """
    values, vectors = np.linalg.eigh(matrix)
    if values.size == 0 or values[0] <= 1e-12 * values[-1]:
        return None
    correction = noise.dyson_correction((vectors / values) @ vectors.T)
    root = vectors / np.sqrt(values)
    if np.linalg.eigvalsh(root.T @ correction @ root)[-1] > _MAX_CORRECTION:
        return None
    return matrix + correction


def inverse_correlations(matrix: Array, noise: EntryCovariance) -> Array:
    """Partial correlations of a noisy second moment; NaN if it is not positive definite.

    For the jackknife: as in `inverse_errors`, but however large the correction for noise is.
    """
    if not np.isfinite(matrix).all() or np.linalg.eigvalsh(matrix)[0] <= 0:
        return np.full(matrix.shape, np.nan)
    first: Array = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    inverse = np.linalg.inv(matrix + noise.dyson_correction(first))
    root = np.sqrt(np.diag(inverse))
    partial: Array = -inverse / np.outer(root, root)
    return partial


# Partial correlations by the lasso of every column on the others, with errors; each on its own.
#
# The inverse of a noisy matrix does not exist long before the noise hides strong edges. The lasso
# of each column on the others needs no inverse, and its bias is corrected to second order (Liu
# 2013, "Gaussian graphical model estimation with false discovery rate control"). With unit columns,
# A the noisy and P the denoised matrix, and b_j = e_j - beta_j for the coefficients beta_j of
# column j:
#
# lambda_j^2 = log q (r_j / n + mean_i Var (E b_j)_i),   R = B^T A B,   r_j = R_jj,
# T_ij = R_ij - r_i B_ij - r_j B_ji,   rho_ij = T_ij / sqrt(r_i r_j),
#
# where E is the noise of A. So the penalty contains the noise, and the residuals R are those of the
# noisy matrix, whose noise law is known exactly. If two
# partial correlations are zero in truth, the variance of T_ij is that of the product of two
# residuals.
#
# What the lasso shrinks remains as a bias of T_ij, d_i^T S d_j for the errors d of b. It is about
# lambda_i lambda_j if two columns have the same strong neighbour, and less on average. Tests allow
# for half of it without noise, and for all of it where the noise is far above the sampling error:
# then lambda is large, and few pairs are clear enough to outweigh false ones. For intervals, d is
# estimated by the difference to least squares on the columns that the lasso selects.
# x_j = lambda_j / sqrt(r_j) tells whether a column is known. Measured in docs/estimators.md.

Flags = NDArray[np.bool_]

_ROUNDS = 2  # lasso problems a column; the second knows r and b of the first
_RIDGE = 1e-4  # on unit diagonals, so that the lasso converges for duplicate columns
_FLOOR = 0.3  # share of the denoised residual variance that the noisy one has at least
_MOST_SHRINKAGE = 0.3  # x_j up to which a column is known
_TESTED_BIAS = 0.5  # share of lambda_i lambda_j that tests allow for, and twice that in pure noise
_BIAS = 1.5  # and intervals, of the estimated bias


@dataclass(frozen=True)
class NodewiseLasso:
    """Residuals of every known column on the other known columns, of k of q columns."""

    columns: NDArray[np.intp]  # indices of the k columns whose variance is known
    scale: Array  # factors that give these columns unit variance, shape (k,)
    residuals: Array  # B for columns of unit variance, shape (k, k)
    # partial correlations with their errors, of all q columns; shape (q, q)
    errors: CorrelationErrors
    loadings: Array  # as of `inverse_errors`, of all q columns; shape (q, q)

    def partial_correlations(self, moments: Array) -> Array:
        """Partial correlations of another second moment of the columns, for fixed coefficients.

        `moments`: shape (q, q). Returns shape (q, q): NaN for pairs that are not known, and where a
        residual variance is not positive.
        """
        result: Array = np.full(moments.shape, np.nan)
        known = np.ix_(self.columns, self.columns)
        unit = moments[known] * np.outer(self.scale, self.scale)
        of_residuals = congruence(self.residuals.T, unit)
        variance = np.diag(of_residuals)
        root = np.sqrt(np.where(variance > 0, variance, np.nan))
        result[known] = -_inverse_like(self.residuals, of_residuals, variance) / np.outer(
            root, root
        )
        return result


def levels_of(columns: Sequence[ColumnFacts | LevelsFacts | None]) -> list[list[int]]:
    """Indices of the levels of each column of levels, from the table column of each index."""
    tables = dict.fromkeys(each for each in columns if isinstance(each, LevelsFacts))
    return [[k for k, column in enumerate(columns) if column == each] for each in tables]


def leave_out_references(used: NDArray[np.bool_], levels: Sequence[Sequence[int]]) -> None:
    """Leave out the first of several levels of a column that are used; changes `used`."""
    for in_use in ([k for k in of_column if used[k]] for of_column in levels):
        if len(in_use) > 1:
            used[in_use[0]] = False


def nodewise_lasso(
    moments: MomentErrors,
    law: NoiseLaw,
    rows: float,
    levels: Sequence[Sequence[int]] = (),
    among: Flags | None = None,
) -> NodewiseLasso | None:
    """Partial correlations of all columns whose variance is known, given the others of these.

    None if there are fewer than two.

    `moments`: a noisy second moment and its errors. `levels`: indices of the columns of zeros and
    ones that are levels of one column of the table, for each such column. They add up to one, so
    the first of those that are known is left out. `among`: the columns that may be used, shape
    (q,); None for all.
    """
    q = len(moments.matrix)
    used = moments.clear_columns()
    if among is not None:
        used &= among
    leave_out_references(used, levels)
    columns = np.flatnonzero(used)
    if columns.size < 2:
        return None
    scale = 1 / np.sqrt(np.diag(moments.denoised)[columns])
    unit = moments.mapped(np.eye(q)[columns] * scale[:, None])
    residuals, shrinkage = _lasso(unit, rows)
    noise = unit.noise.transformed(residuals.T)
    of_residuals = congruence(residuals.T, unit.matrix)
    expected = np.diag(congruence(residuals.T, unit.denoised))
    variance = np.maximum(np.diag(of_residuals), _FLOOR * expected)
    known = shrinkage <= _MOST_SHRINKAGE * np.sqrt(variance)
    root = 1 / np.sqrt(variance)
    a, b, c = variance_coefficients(noise.scaled(root), columns.size)
    used = np.count_nonzero(residuals, axis=0) - 1.0
    freedom = np.maximum(rows - moments.offset - np.add.outer(used, used) / 2, 1.0)
    sampling = unit.sampling.transformed(residuals.T).scaled(root)
    # Var(S_ij) of columns i and j that are not correlated.
    total = np.zeros((columns.size, columns.size))
    for left, right in sampling.products:
        diagonals = np.outer(np.diag(left), np.diag(right))
        total += (diagonals + diagonals.T) / 2
    factor = total * rows / freedom
    observed = _inverse_like(residuals, of_residuals, variance) * np.outer(root, root)
    np.fill_diagonal(observed, 0.0)
    by_noise = noise_share(factor, a)
    tested_bias = _TESTED_BIAS * (1 + by_noise) * np.outer(shrinkage * root, shrinkage * root)
    bias = _BIAS * np.abs(_bias(residuals, unit.denoised)) * np.outer(root, root)
    deviation = np.sqrt(factor + a)
    beyond = np.sign(observed) * np.maximum(np.abs(observed) - tested_bias, 0.0)
    pairs = np.outer(known, known) & ~np.eye(columns.size, dtype=bool)
    errors = CorrelationErrors(
        observed,
        factor,
        (a, b, c),
        gamma_shape(law, residuals.T @ unit.linear),
        pairs,
        np.divide(beyond, deviation, out=np.zeros_like(beyond), where=pairs & (deviation > 0)),
        by_noise,
        bias=np.maximum(bias, tested_bias),
    ).negated()
    loadings = np.zeros((q, q))
    loadings[np.ix_(columns, columns)] = residuals.T * root[:, None] * scale
    return NodewiseLasso(columns, scale, residuals, errors.embedded(columns, q), loadings)


def _lasso(unit: MomentErrors, rows: float) -> tuple[Array, Array]:
    """Residual coefficients B, shape (k, k), and the penalties, shape (k,)."""
    k = len(unit.matrix)
    regularised = unit.denoised + _RIDGE * np.eye(k)
    residuals, penalties = np.eye(k), np.zeros(k)
    for _ in range(_ROUNDS):
        variance = np.diag(congruence(residuals.T, regularised))
        by_noise = unit.noise.mean_variance_of_scores(residuals)
        penalties = np.sqrt(np.log(k) * (variance / rows + by_noise))
        weights = np.tile(penalties, (k, 1))
        np.fill_diagonal(weights, np.inf)
        coefficients = columnwise(regularised, regularised, weights).coefficients
        residuals = np.eye(k) - coefficients
    return residuals, penalties


def _bias(residuals: Array, moment: Array) -> Array:
    """Estimate of the bias of T: D^T S D for the differences D to least squares; shape (k, k)."""
    k = len(moment)
    regularised, differences = moment + _RIDGE * np.eye(k), np.zeros((k, k))
    for j, column in enumerate(residuals.T):
        selected = np.flatnonzero(column)
        selected = selected[selected != j]
        gradient = regularised[selected] @ column
        differences[selected, j] = np.linalg.solve(
            regularised[np.ix_(selected, selected)], gradient
        )
    return congruence(differences.T, regularised)


def _inverse_like(residuals: Array, of_residuals: Array, variance: Array) -> Array:
    """The matrix with r on the diagonal and -T off it, like a precision matrix."""
    cross = variance[:, None] * residuals
    matrix: Array = cross + cross.T - of_residuals
    np.fill_diagonal(matrix, variance)
    return matrix
