"""Covariances or correlations of some columns of a release, with the laws of their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.own_units import own_units
from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance
from gramercy.estimators.uncertainty.moment_errors import (
    completed_moments,
    inverse_shares,
    moment_errors,
)
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]
Scale = Literal["correlation", "covariance"]

_CLEAR = 3.0  # standard deviations of the noise that a variance must exceed to be divided by


@dataclass(frozen=True)
class ColumnMoments:
    """Moments about the means of the columns in use; q of them.

    Parameters
    ----------
    used
        Indices of these columns among the columns of the release without the intercept, shape (q,).
    lost
        Indices of the columns that were left out because noise hides their variances.
    matrix
        As released, in squared units of `scale`; may be indefinite. Shape (q, q).
    linear
        L of the first-order error L E L^T, shape (q, p), for the noise E of the release.
    noise, sampling
        Covariances of the entries of `matrix` by noise and by sampling, of rows of the assumed law.
        For correlations, those of the second moments of columns divided by their released standard
        deviations.
    divisor
        By which columns were divided: their released standard deviations, or 1; shape (q,).
    scale
        What the matrix is.
    """

    used: NDArray[np.intp]
    lost: NDArray[np.intp]
    matrix: Array
    linear: Array
    noise: EntryCovariance
    sampling: EntryCovariance
    divisor: Array
    scale: Scale

    def of(self, evidence: Evidence, matrix: Array) -> Array:
        """The same moments of another second moment of all columns, such as that of some folds.

        NaN where they are not defined.
        """
        moments = _in_units(evidence, matrix)[np.ix_(self.used, self.used)]
        return correlations(moments) if self.scale == "correlation" else moments


def column_moments(evidence: Evidence, wanted: Sequence[int], scale: Scale) -> ColumnMoments:
    """Moments of the wanted columns, in their own units if the release determines these.

    Parameters
    ----------
    evidence
        A release.
    wanted
        Indices among the columns without the intercept.
    scale
        ``covariance``, or ``correlation``: then columns whose variance is within three standard
        deviations of its noise are left out.
    """
    errors = moment_errors(evidence)
    chosen = np.array(wanted, dtype=np.intp)
    units = np.diag(inverse_shares(evidence)) * _scales(evidence, evidence.raw)[:, None]
    moments = _in_units(evidence, evidence.raw)
    known = np.isfinite(np.diag(moments)) & (inverse_shares(evidence) > 0)
    known &= not errors.weight_lost
    if scale == "correlation" and known.any():
        deviation = np.sqrt(np.maximum(np.diag(errors.mapped(units).variances()[1]), 0.0))
        known &= np.diag(moments) > np.maximum(_CLEAR * deviation, 0.0)
    used, lost = chosen[known[chosen]], chosen[~known[chosen]]
    matrix = moments[np.ix_(used, used)]
    divisor = np.ones(len(used))
    if scale == "correlation":
        divisor = np.sqrt(np.diag(matrix))
        matrix = correlations(matrix)
    mapped = errors.mapped(units[used] / divisor[:, None])
    return ColumnMoments(
        used, lost, matrix, mapped.linear, mapped.noise, mapped.sampling, divisor, scale
    )


def correlations(matrix: Array) -> Array:
    """A matrix scaled to a unit diagonal; NaN for variances that are not positive."""
    variance = np.diag(matrix)
    root = np.sqrt(np.where(variance > 0, variance, np.nan))
    scaled: Array = matrix / np.outer(root, root)
    np.fill_diagonal(scaled, np.where(variance > 0, 1.0, np.nan))
    return scaled


def functional_variance(covariance: EntryCovariance, weights: Array) -> float:
    """Variance of sum_ij A_ij S_ij for symmetric weights A; shape (q, q)."""
    total = 0.0
    for left, right in covariance.products:
        total += 2 * float(((weights @ left) * (right @ weights).T).sum())
    for c, matrix in covariance.rank_one:
        total += c * float((weights * matrix).sum()) ** 2
    for c, linear in covariance.quartic:
        total += c * float((((weights @ linear) * linear).sum(axis=0) ** 2).sum())
    return max(total, 0.0)


def _in_units(evidence: Evidence, matrix: Array) -> Array:
    """Moments about the means in the columns' own units, or else in those of the release."""
    scales = _scales(evidence, matrix)
    moments: Array = completed_moments(evidence, matrix) * np.outer(scales, scales)
    return moments


def _scales(evidence: Evidence, matrix: Array) -> Array:
    """Factors to the columns' own units; 1 if the release does not determine these."""
    units = own_units(evidence)
    if units is None:
        return np.ones(len(inverse_shares(evidence)))
    weight = matrix[0, 0] if matrix[0, 0] > 0 else np.nan
    scales: Array = units.scale / np.sqrt(weight)
    return scales
