"""Denoising a released matrix: free accuracy, because post-processing costs no privacy.

Where rotations do not change the law of the noise, the best that can be done without knowing the
data is to keep the eigenvectors and shrink the eigenvalues. The best shrinkage follows from the
noise law, which is public; nothing is tuned. For any other noise there is the projection onto the
matrices that can be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from estimators.noise import draw, stream
from schemas.noise import NoiseLaw

Array = NDArray[np.float64]

SIMULATED_UP_TO = 300  # columns; above, the closed formula: simulation would take minutes
_FIT_DRAWS, _FIT_STEPS, _DAMPING, _MEAN_DRAWS = 8, 25, 0.7, 60


def denoise(matrix: Array, law: NoiseLaw, trace: float = 1.0) -> Array:
    """A rotation-invariant estimate of the matrix before noise: nearly the best, up to 300 columns.

    Parameters
    ----------
    matrix
        Released matrix, symmetric, shape (p, p), less the noise's mean; usually indefinite.
    law
        Noise law, rotation invariant, in the units of `matrix`.
    trace
        Public bound on the trace: 1 for the second moment of rows of the unit ball.

    Returns
    -------
    ndarray, shape (p, p)
        Symmetric, positive semidefinite, trace at most `trace`.

    Notes
    -----
    Up to 300 columns by simulation: find c >= 0 with sum at most `trace` for which the expected
    eigenvalues of diag(c) + noise equal the observed ones, then replace the k-th eigenvalue by
    E[u_k^T diag(c) u_k], u_k the k-th eigenvector of diag(c) + noise. Above, by the asymptotic
    formula of Bun, Allez, Bouchaud and Potters (2016), "Rotational invariant estimator for general
    noisy matrices": l - 2 v h(l), v = p sd^2, h the Hilbert transform of the spectrum. That is the
    formula for a GOE matrix, and is used so for every family: the best for Gaussian noise, and for
    ``k-norm``, which is nearly GOE at this size; for Wishart matrices and their differences, whose
    spectra are others, it is an approximation.
    """
    values, vectors = np.linalg.eigh(matrix)
    start = _onto_spectrum(_formula(values, law.sd_off_diagonal), trace)
    shrunk = start if values.size > SIMULATED_UP_TO else _simulated(values, start, law, trace)
    return _assemble(vectors, shrunk)


def project(matrix: Array, trace: float = 1.0) -> Array:
    """The nearest positive semidefinite matrix with trace at most `trace`; shape (p, p)."""
    values, vectors = np.linalg.eigh(matrix)
    return _assemble(vectors, _onto_spectrum(values, trace))


def _assemble(vectors: Array, values: Array) -> Array:
    product: Array = (vectors * values) @ vectors.T
    return (product + product.T) / 2


def _onto_spectrum(values: Array, trace: float) -> Array:
    """The nearest increasing, non-negative sequence with sum at most `trace`."""
    rising: Array = isotonic_regression(values)
    kept: Array = np.maximum(rising, 0.0)
    if kept.sum() <= trace:
        return kept
    falling = rising[::-1]
    excess = (np.cumsum(falling) - trace) / np.arange(1, falling.size + 1)
    cut: Array = np.maximum(rising - excess[np.flatnonzero(falling > excess)[-1]], 0.0)
    return cut


def _formula(values: Array, sd: float) -> Array:
    gaps = values[:, None] - values[None, :]
    variance = values.size * sd**2
    hilbert = (gaps / (gaps**2 + sd**2)).mean(axis=1)  # smoothed at sqrt(variance / p) = sd
    shrunk: Array = values - 2 * variance * hilbert
    return shrunk


def _simulated(values: Array, start: Array, law: NoiseLaw, trace: float) -> Array:
    source, p = stream(), values.size
    noise = [draw(source, p, law) for _ in range(_FIT_DRAWS)]
    spectrum = start
    for _ in range(_FIT_STEPS):
        expected = np.mean([np.linalg.eigvalsh(np.diag(spectrum) + e) for e in noise], axis=0)
        spectrum = _onto_spectrum(spectrum + _DAMPING * (values - expected), trace)
    overlap = np.zeros((p, p))
    for _ in range(_MEAN_DRAWS):
        overlap += np.linalg.eigh(np.diag(spectrum) + draw(source, p, law))[1] ** 2
    return _onto_spectrum(spectrum @ overlap / _MEAN_DRAWS, trace)
