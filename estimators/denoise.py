"""Denoising a released matrix: free accuracy, because post-processing costs no privacy.

The isotropic mechanism's noise is a GOE matrix: rotations do not change its law, so the best that
can be done without knowing the data is to keep the eigenvectors and shrink the eigenvalues. The
best shrinkage follows from the noise law, which is public; nothing is tuned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from schemas.noise import NoiseLaw

Array = NDArray[np.float64]

SIMULATED_UP_TO = 300  # columns; above, the closed formula: simulation would take minutes
_FIT_DRAWS, _FIT_STEPS, _DAMPING, _MEAN_DRAWS = 8, 25, 0.7, 60
_SEED = 20160301  # public: post-processing needs no secrecy, only repeatability


def denoise(matrix: Array, law: NoiseLaw, trace: float = 1.0) -> Array:
    """The best rotation-invariant estimate of the matrix before noise.

    Parameters
    ----------
    matrix
        Released matrix, symmetric, shape (p, p); usually indefinite.
    law
        Noise law, in the units of `matrix`.
    trace
        Public bound on the trace: 1 for the second moment of rows of the unit ball.

    Returns
    -------
    ndarray, shape (p, p)
        Symmetric, positive semidefinite, trace at most `trace`.

    Notes
    -----
    Up to 300 columns by simulation: find c >= 0 with sum at most `trace` for which the expected
    eigenvalues of diag(c) + GOE equal the observed ones, then replace the k-th eigenvalue by
    E[u_k^T diag(c) u_k], u_k the k-th eigenvector of diag(c) + GOE. Above, by the asymptotic
    formula of Bun, Allez, Bouchaud and Potters (2016), "Rotational invariant estimator for general
    noisy matrices": l - 2 v h(l), v = p sd^2, h the Hilbert transform of the spectrum.
    """
    values, vectors = np.linalg.eigh(matrix)
    sd = law.sd_off_diagonal
    start = _onto_spectrum(_formula(values, sd), trace)
    shrunk = start if values.size > SIMULATED_UP_TO else _simulated(values, start, sd, trace)
    return _assemble(vectors, shrunk)


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


def _simulated(values: Array, start: Array, sd: float, trace: float) -> Array:
    # RandomState, not Generator: its stream is frozen, so a verifier recomputes the same numbers.
    stream = np.random.RandomState(_SEED)
    p = values.size
    noise = _goe(stream, p, sd, _FIT_DRAWS)
    spectrum = start
    for _ in range(_FIT_STEPS):
        expected = np.mean([np.linalg.eigvalsh(np.diag(spectrum) + e) for e in noise], axis=0)
        spectrum = _onto_spectrum(spectrum + _DAMPING * (values - expected), trace)
    overlap = np.zeros((p, p))
    for e in _goe(stream, p, sd, _MEAN_DRAWS):
        overlap += np.linalg.eigh(np.diag(spectrum) + e)[1] ** 2
    return _onto_spectrum(spectrum @ overlap / _MEAN_DRAWS, trace)


def _goe(stream: np.random.RandomState, p: int, sd: float, draws: int) -> list[Array]:
    """Symmetric Gaussian matrices: sd off the diagonal, sqrt2 sd on it."""
    halves = (stream.standard_normal((p, p)) * (sd / np.sqrt(2)) for _ in range(draws))
    return [half + half.T for half in halves]
