"""Errors of a release: noise and sampling errors of second moments and of correlations.

The noise law is known exactly; the law of the rows is assumed (see `uncertainty.row_law`). The
estimand is the population second moment of the normalised rows. If the first column is the
intercept, moments are about the means that it gives, to first order in their errors.

Partial correlations come from an inverse, which noise makes too large. With D(W) = E[E W E] for the
noise E, the inverse X of a noisy matrix is about the inverse of S - D(X), where S is the matrix
without noise (Dyson's equation, exact in the limit of large p). So the inverse of S is estimated by
(X^-1 + D(X))^-1, the inverse with its bias removed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.moments import schur_complement
from gramercy.estimators.uncertainty.correlation_errors import (
    CorrelationErrors,
    correlations_with_errors,
)
from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance, noise_covariance
from gramercy.estimators.uncertainty.row_law import sampling_covariance
from gramercy.estimators.uncertainty.tails import gamma_shape
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]
CorrelationKind = Literal["correlation", "partial-correlation"]

_MIN_POWER = 2.0  # standard deviations of the noise that a column's diagonal entry must exceed
_MIN_WEIGHT = 5.0  # and that the intercept's diagonal entry must exceed
_MAX_CORRECTION = 0.1  # largest share of an eigenvalue of the inverse that may be due to noise


@dataclass(frozen=True)
class MomentErrors:
    """A noisy second moment and its errors, about the means where these are known.

    Parameters
    ----------
    matrix, denoised
        The noisy matrix and its positive semidefinite estimate; shape (q, q), where q = p, or
        p - 1 about means.
    sampling, noise
        Covariance of the entries of `denoised` by sampling, and of `matrix` by noise.
    linear
        L of the first-order error L E L^T, shape (q, p).
    offset
        Number of columns of the release that are left out: 1 about means, else 0.
    weight_lost
        Whether the intercept's diagonal entry is lost in the noise, so that nothing is estimable.
    """

    matrix: Array
    denoised: Array
    sampling: EntryCovariance
    noise: EntryCovariance
    linear: Array
    offset: int
    weight_lost: bool

    def variances(self) -> tuple[Array, Array]:
        """Variances of every entry by sampling and by noise; shape (q, q) each."""
        q = len(self.matrix)
        by_sampling, by_noise = self.sampling.variance(q), self.noise.variance(q)
        return np.maximum(by_sampling, 0.0), np.maximum(by_noise, 0.0)


def has_intercept(evidence: Evidence) -> bool:
    """Whether the first column is the intercept."""
    return bool(evidence.columns) and evidence.columns[0] is None


def raw_moment_errors(evidence: Evidence) -> MomentErrors:
    """Errors of the second moments of all columns about zero."""
    raw, denoised, rows = evidence.raw, evidence.repaired, max(evidence.rows, 1.0)
    intercept = has_intercept(evidence)
    sampling = sampling_covariance(denoised, rows, unit=evidence.unit, intercept=intercept)
    noise = release_noise(evidence)
    return MomentErrors(raw, denoised, sampling, noise, np.eye(len(raw)), 0, weight_lost=False)


def release_noise(evidence: Evidence) -> EntryCovariance:
    """Covariance of the released entries: the noise law, and the errors of a noisy divisor.

    Notes
    -----
    If the sum was divided by a noisy number of rows with relative deviation d, S has the additional
    error -S d. If it was divided by its own noisy trace, E becomes E - S tr E; where entries of E
    are uncorrelated, with variance t on the diagonal, its covariance gains
    t ((S - I) (S - I) - S S - I I) + p t S S.
    """
    law, denoised, rows = evidence.law, evidence.repaired, max(evidence.rows, 1.0)
    noise = noise_covariance(law, denoised, rows)
    if evidence.divisor == "noisy":
        relative_variance = (evidence.rows_sd / rows) ** 2
        return replace(noise, rank_one=(*noise.rank_one, (relative_variance, denoised)))
    if evidence.divisor == "itself" and law.cell_variance is None:
        identity, trace = np.eye(len(denoised)), float(np.trace(denoised)) or 1.0
        t, unit_trace = law.sd_diagonal**2, denoised / trace
        of_trace = (
            (t, unit_trace - identity),
            ((len(denoised) - 1) * t, unit_trace),
            (-t, identity),
        )
        return replace(noise, rank_one=(*noise.rank_one, *of_trace))
    return noise


def moment_errors(evidence: Evidence) -> MomentErrors:
    """Errors of second moments about the means if there is an intercept, else about zero."""
    about_zero = raw_moment_errors(evidence)
    if not has_intercept(evidence):
        return about_zero
    raw, denoised = about_zero.matrix, about_zero.denoised
    identity = np.eye(len(raw))
    if min(raw[0, 0], denoised[0, 0]) <= _MIN_WEIGHT * evidence.deviations[0, 0]:
        none = EntryCovariance()
        return MomentErrors(
            raw[1:, 1:], denoised[1:, 1:], none, none, identity[1:], 1, weight_lost=True
        )
    linear, of_denoised = (
        identity[1:] - np.outer(m[1:, 0], identity[0]) / m[0, 0] for m in (raw, denoised)
    )
    return MomentErrors(
        schur_complement(raw),
        schur_complement(denoised),
        about_zero.sampling.transformed(of_denoised),
        about_zero.noise.transformed(linear),
        linear,
        1,
        weight_lost=False,
    )


def correlation_errors(evidence: Evidence, of: CorrelationKind) -> CorrelationErrors:
    """Correlations or partial correlations; shape (q, q), where q = p, or p - 1 about means."""
    moments = moment_errors(evidence)
    if moments.weight_lost:
        return _not_estimable(len(moments.matrix))
    if of == "partial-correlation":
        return _partial_correlation_errors(evidence, moments)
    shape = gamma_shape(evidence.law, moments.linear)
    noise_sd = np.sqrt(np.diag(moments.noise.variance(len(shape))))
    clear = np.diag(moments.matrix) > _MIN_POWER * noise_sd
    clear &= np.diag(moments.denoised) > 0
    return correlations_with_errors(
        moments.matrix, moments.denoised, moments.sampling, moments.noise, shape, clear
    )


def _partial_correlation_errors(evidence: Evidence, moments: MomentErrors) -> CorrelationErrors:
    """Correlations of the inverse, with the opposite sign."""
    q, rows = len(moments.matrix), max(evidence.rows, 1.0)
    freedom = rows - q - moments.offset
    corrected = None if freedom < 3 else bias_corrected(moments.matrix, moments.noise)
    if corrected is None:
        return _not_estimable(q)
    inverse = np.linalg.inv(corrected)
    inverse = (inverse + inverse.T) / 2
    full = evidence.raw.copy()
    full[moments.offset :, moments.offset :] += corrected - moments.matrix
    sampling = moment_errors(replace(evidence, repaired=full)).sampling.transformed(inverse)
    noise = _bias_corrected_noise(moments.noise, inverse).transformed(inverse)
    shape = gamma_shape(evidence.law, inverse @ moments.linear)
    clear = np.ones(q, dtype=bool)
    return correlations_with_errors(
        inverse, inverse, sampling, noise, shape, clear, rows / freedom
    ).negated()


def _not_estimable(q: int) -> CorrelationErrors:
    zero, never = np.zeros((q, q)), np.zeros((q, q), dtype=bool)
    shape = np.full((q, q), np.inf)
    return CorrelationErrors(zero, zero, (zero, zero, zero), shape, never, zero, zero)


def _bias_corrected_noise(noise: EntryCovariance, inverse: Array) -> EntryCovariance:
    """Subtract D(X P X) from each P: noise makes X P X too large by X D(X P X) X."""
    return replace(
        noise,
        products=tuple(
            (
                p - noise.dyson_correction(inverse @ p @ inverse),
                q - noise.dyson_correction(inverse @ q @ inverse),
            )
            for p, q in noise.products
        ),
    )


def bias_corrected(matrix: Array, noise: EntryCovariance) -> Array | None:
    """The matrix whose inverse is an unbiased estimate, to first order, of the inverse of S.

    None if the smallest eigenvalues may be due to noise alone.

    Parameters
    ----------
    matrix
        Noisy, symmetric, shape (p, p).
    noise
        Covariance of its entries.
    """
    values, vectors = np.linalg.eigh(matrix)
    if values.size == 0 or values[0] <= 1e-12 * values[-1]:
        return None
    correction = noise.dyson_correction((vectors / values) @ vectors.T)
    root = vectors / np.sqrt(values)
    if np.linalg.eigvalsh(root.T @ correction @ root)[-1] > _MAX_CORRECTION:
        return None
    return matrix + correction
