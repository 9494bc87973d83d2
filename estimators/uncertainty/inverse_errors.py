"""Partial correlations from the inverse of a noisy second moment, with errors.

Noise makes an inverse too large. With D(W) = E[E W E] for the noise E, the inverse X of a noisy
matrix is about the inverse of S - D(X), where S is the matrix without noise (Dyson's equation,
exact in the limit of large p). So the inverse of S is estimated by (X^-1 + D(X))^-1, the inverse
with its bias removed. If noise may have produced the smallest eigenvalues, there is no estimate.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.uncertainty.correlation_errors import (
    CorrelationErrors,
    correlations_with_errors,
    not_estimable,
)
from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance
from gramercy.estimators.uncertainty.moment_errors import MomentErrors, moment_errors
from gramercy.estimators.uncertainty.tails import gamma_shape
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_MAX_CORRECTION = 0.1  # largest share of an eigenvalue of the inverse that may be due to noise


def inverse_errors(evidence: Evidence, moments: MomentErrors) -> CorrelationErrors:
    """Correlations of the inverse, with the opposite sign; all or none are estimable.

    Parameters
    ----------
    evidence
        A release.
    moments
        Its moments about the means, corrected for missing cells.
    """
    q, rows = len(moments.matrix), max(evidence.rows, 1.0)
    freedom = rows - q - moments.offset
    corrected = None if freedom < 3 else bias_corrected(moments.matrix, moments.noise)
    if corrected is None:
        return not_estimable(q)
    inverse = np.linalg.inv(corrected)
    inverse = (inverse + inverse.T) / 2
    full = evidence.raw.copy()
    full[moments.offset :, moments.offset :] += corrected - moments.matrix
    own = moments.linear[:, moments.offset :]  # 1 / o on the diagonal: missing cells
    sampling = moment_errors(replace(evidence, repaired=full)).sampling
    sampling = sampling.transformed(inverse @ own)
    noise = _bias_corrected_noise(moments.noise, inverse).transformed(inverse)
    shape = gamma_shape(evidence.law, inverse @ moments.linear)
    clear = np.ones(q, dtype=bool)
    return correlations_with_errors(
        inverse, inverse, sampling, noise, shape, clear, rows / freedom
    ).negated()


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
