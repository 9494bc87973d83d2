"""Denoising a released matrix: free accuracy, because post-processing costs no privacy.

Where rotations do not change the law of the noise, the best that can be done without knowing the
data is to keep the eigenvectors and shrink the eigenvalues. The best shrinkage follows from the
noise law, which is public; nothing is tuned. Noise with independent entries of one scale has a
direction of its own, but eigenvectors hardly notice: the same shrinkage serves it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from gramercy.estimators.noise.draws import Stream, draw, of_rows, stream
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
Repair = Literal["denoised", "shrunk", "projected"]

SIMULATED_UP_TO = 300  # columns; above, the closed formula: simulation would take minutes
_FIT_DRAWS, _FIT_STEPS, _DAMPING, _BELIEVED = 16, 12, 0.7, 0.5
_MEAN_DRAWS = 60


def repair_name(law: NoiseLaw, rows: float | None = None) -> Repair:
    """What `denoise` does with noise of this law.

    Returns
    -------
    str
        ``denoised``: rotations leave the law as it is, so that the shrinkage is the best there is.
        ``shrunk``: the same for independent entries of one scale, whose law rotations change a
        little. ``projected``: nothing is known of the noise, or there is none.
    """
    if law.sd_off_diagonal == 0 or (law.family == "noisy-rows" and not rows):
        return "projected"
    return "shrunk" if law.family in {"gaussian-iid", "laplace"} else "denoised"


def denoise(matrix: Array, law: NoiseLaw, trace: float = 1.0, rows: float | None = None) -> Array:
    """An estimate of the matrix before noise with the same eigenvectors: nearly the best.

    Parameters
    ----------
    matrix
        Released matrix, symmetric, shape (p, p), less the noise's mean; usually indefinite.
    law
        Noise law in the units of `matrix`.
    trace
        Public bound on the trace: 1 for the second moment of rows of the unit ball.
    rows
        How many rows the matrix is the second moment of. ``noisy-rows`` needs it, and is projected
        without; other laws do not.

    Returns
    -------
    ndarray, shape (p, p)
        Symmetric, positive semidefinite, trace at most `trace`. See `repair_name`.

    Notes
    -----
    Up to 300 columns by simulation. A spectrum c is fitted whose noisy eigenvalues, those of
    diag(c) + noise, are on average the released ones. It starts flat, with the released trace, and
    leaves what lies within half a deviation of it as it is, so that noise is not taken for shape.
    The k-th eigenvalue becomes E[u_k^T diag(c) u_k], u_k the k-th eigenvector of diag(c) + noise.
    What the fit has left over, v - E[v], is believed as far as u_k stays in its place: wholly where
    eigenvalues are far apart, not at all where noise mixes them.

    Noise on rows depends on the rows, through diag(c) alone but for rotations; it is drawn for
    every c anew.

    Above 300 columns by the asymptotic formula of Bun, Allez, Bouchaud and Potters (2016),
    "Rotational invariant estimator for general noisy matrices": l - 2 v h(l), v = p sd^2, h the
    Hilbert transform of the spectrum. That is the formula for a GOE matrix: the best for Gaussian
    noise, and for ``k-norm`` and independent entries, which are nearly GOE at this size; for
    Wishart matrices and their differences, whose spectra are others, it is an approximation. So
    it is for noise on rows, taken as that on rows which fill all directions alike.
    """
    values, vectors = np.linalg.eigh(matrix)
    if repair_name(law, rows) == "projected":
        shrunk = _onto_spectrum(values, trace)
    elif values.size <= SIMULATED_UP_TO:
        shrunk = _simulated(values, law, trace, rows)
    else:
        level = _level(values, trace)
        sd = law.row_deviations(np.full(2, level), rows or 1.0)[0, 1]
        shrunk = _onto_spectrum(_formula(values, float(sd)), trace)
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
    rising: Array = isotonic_regression(values).x
    kept: Array = np.maximum(rising, 0.0)
    if kept.sum() <= trace:
        return kept
    falling = rising[::-1]
    excess = (np.cumsum(falling) - trace) / np.arange(1, falling.size + 1)
    cut: Array = np.maximum(rising - excess[np.flatnonzero(falling > excess)[-1]], 0.0)
    return cut


def _level(values: Array, trace: float) -> float:
    """The average eigenvalue: the released one, within what can be."""
    return float(min(max(values.sum(), 0.0), trace) / values.size)


def _formula(values: Array, sd: float) -> Array:
    gaps = values[:, None] - values[None, :]
    variance = values.size * sd**2
    hilbert = (gaps / (gaps**2 + sd**2)).mean(axis=1)  # smoothed at sqrt(variance / p) = sd
    shrunk: Array = values - 2 * variance * hilbert
    return shrunk


def _simulated(values: Array, law: NoiseLaw, trace: float, rows: float | None) -> Array:
    p, source = values.size, stream()
    fixed = None if law.family == "noisy-rows" else _draws(source, _FIT_DRAWS, p, law)
    spectrum = np.full(p, _level(values, trace))
    for _ in range(_FIT_STEPS):
        noise = _of_spectrum(stream(), _FIT_DRAWS, spectrum, law, rows) if fixed is None else fixed
        seen = np.linalg.eigvalsh(np.diag(spectrum) + noise)
        left = values - seen.mean(axis=0)
        doubt = _BELIEVED * seen.std(axis=0)
        step = _DAMPING * (left - np.clip(left, -doubt, doubt))
        spectrum = _onto_spectrum(spectrum + step, trace)
    noise = (
        _of_spectrum(source, _MEAN_DRAWS, spectrum, law, rows)
        if fixed is None
        else _draws(source, _MEAN_DRAWS, p, law)
    )
    found, vectors = np.linalg.eigh(np.diag(spectrum) + noise)
    overlap = (vectors**2).mean(axis=0)  # of coordinate j with the k-th eigenvector
    in_place = np.clip((p * np.diag(overlap) - 1) / max(p - 1, 1), 0.0, 1.0)
    left = values - found.mean(axis=0)
    return _onto_spectrum((spectrum + in_place * left) @ overlap, trace)


def _draws(source: Stream, count: int, p: int, law: NoiseLaw) -> Array:
    return np.array([draw(source, p, law) for _ in range(count)])


def _of_spectrum(
    source: Stream, count: int, spectrum: Array, law: NoiseLaw, rows: float | None
) -> Array:
    """Draws of the noise on rows, whose second moment has these eigenvalues."""
    whole = max(1, round(rows or 1.0))
    # As `rows_like`, but for ties, which an eigendecomposition may order in any way.
    like = np.diag(np.sqrt(whole * spectrum))[:, max(spectrum.size - whole, 0) :]
    return np.array([of_rows(source, like, law.cell_variance or 0.0, whole) for _ in range(count)])
