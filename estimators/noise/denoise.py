"""Denoising a released matrix: more accuracy at no privacy cost, as it is post-processing.

If the noise law is rotation-invariant, the best estimator without knowledge of the data keeps the
eigenvectors and shrinks the eigenvalues. The best shrinkage follows from the public noise law;
nothing is tuned. Noise with independent entries of one scale is not rotation-invariant, but the
effect on eigenvectors is small, and the same shrinkage is used.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from gramercy.estimators.noise.draws import Stream, draw, draw_row_noise, stream
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
Repair = Literal["denoised", "shrunk", "projected"]

SIMULATED_UP_TO = 300  # columns; above, an asymptotic formula: simulation would take minutes
_FIT_DRAWS, _FIT_STEPS, _DAMPING, _DEAD_ZONE = 16, 12, 0.7, 0.5
_MEAN_DRAWS = 60


def repair_name(law: NoiseLaw, rows: float | None = None) -> Repair:
    """The method that `denoise` uses for noise of this law.

    Returns
    -------
    str
        ``denoised``: the law is rotation-invariant, and the shrinkage is the best possible.
        ``shrunk``: the same shrinkage for independent entries of one scale, where it is nearly the
        best. ``projected``: projection only, because the noise is unknown or zero.
    """
    if law.sd_off_diagonal == 0 or (law.family == "noisy-rows" and not rows):
        return "projected"
    return "shrunk" if law.family in {"gaussian-iid", "laplace"} else "denoised"


def denoise(matrix: Array, law: NoiseLaw, trace: float = 1.0, rows: float | None = None) -> Array:
    """Estimate the matrix before noise, with the same eigenvectors.

    Parameters
    ----------
    matrix
        Released matrix minus the mean of the noise, symmetric, shape (p, p); often indefinite.
    law
        Noise law in the units of `matrix`.
    trace
        Public upper bound on the trace: 1 for the second moment of rows in the unit ball.
    rows
        Number of rows; used for ``noisy-rows`` only, which is projected if it is None.

    Returns
    -------
    ndarray, shape (p, p)
        Symmetric, positive semidefinite, trace at most `trace`. See `repair_name`.

    Notes
    -----
    Up to 300 columns by simulation. A spectrum c is fitted so that the noisy eigenvalues, those of
    diag(c) + noise, equal the released ones on average. The fit starts with a flat spectrum of the
    released trace, and ignores residuals within half a standard deviation, so as not to fit noise.
    The k-th eigenvalue becomes E[u_k^T diag(c) u_k], where u_k is the k-th eigenvector of
    diag(c) + noise. The residual of the fit, v - E[v], is added with a weight that measures how
    well u_k is determined: 1 where eigenvalues are far apart, 0 where noise mixes them.

    Noise on rows depends on the rows, up to rotations only through diag(c), so it is redrawn for
    each c.

    Above 300 columns by the asymptotic formula of Bun, Allez, Bouchaud and Potters (2016),
    "Rotational invariant estimator for general noisy matrices": l - 2 v h(l), v = p sd^2, h the
    Hilbert transform of the spectrum. This is the formula for a GOE matrix: the best for Gaussian
    noise, and for ``k-norm`` and independent entries, which are nearly GOE at this size. For
    Wishart matrices, their differences and noise on rows it is an approximation; noise on rows is
    treated as if the rows were isotropic.
    """
    values, vectors = np.linalg.eigh(matrix)
    if repair_name(law, rows) == "projected":
        shrunk = _project_spectrum(values, trace)
    elif values.size <= SIMULATED_UP_TO:
        shrunk = _simulated_shrinkage(values, law, trace, rows)
    else:
        mean = _mean_eigenvalue(values, trace)
        sd = law.row_deviations(np.full(2, mean), rows or 1.0)[0, 1]
        shrunk = _project_spectrum(_asymptotic_shrinkage(values, float(sd)), trace)
    return _assemble(vectors, shrunk)


def project(matrix: Array, trace: float = 1.0) -> Array:
    """The nearest positive semidefinite matrix with trace at most `trace`; shape (p, p)."""
    values, vectors = np.linalg.eigh(matrix)
    return _assemble(vectors, _project_spectrum(values, trace))


def _assemble(vectors: Array, values: Array) -> Array:
    product: Array = (vectors * values) @ vectors.T
    return (product + product.T) / 2


def _project_spectrum(values: Array, trace: float) -> Array:
    """The nearest increasing, non-negative sequence with sum at most `trace`."""
    increasing: Array = isotonic_regression(values).x
    clipped: Array = np.maximum(increasing, 0.0)
    if clipped.sum() <= trace:
        return clipped
    decreasing = increasing[::-1]
    excess = (np.cumsum(decreasing) - trace) / np.arange(1, decreasing.size + 1)
    last = np.flatnonzero(decreasing > excess)[-1]
    shifted: Array = np.maximum(increasing - excess[last], 0.0)
    return shifted


def _mean_eigenvalue(values: Array, trace: float) -> float:
    """The average released eigenvalue, clipped to its possible range."""
    return float(min(max(values.sum(), 0.0), trace) / values.size)


def _asymptotic_shrinkage(values: Array, sd: float) -> Array:
    gaps = values[:, None] - values[None, :]
    variance = values.size * sd**2
    hilbert = (gaps / (gaps**2 + sd**2)).mean(axis=1)  # smoothed at sqrt(variance / p) = sd
    shrunk: Array = values - 2 * variance * hilbert
    return shrunk


def _simulated_shrinkage(values: Array, law: NoiseLaw, trace: float, rows: float | None) -> Array:
    p, source = values.size, stream()
    fixed = None if law.family == "noisy-rows" else _draw_noise(source, _FIT_DRAWS, p, law)
    spectrum = np.full(p, _mean_eigenvalue(values, trace))
    for _ in range(_FIT_STEPS):
        noise = (
            _draw_row_noise(stream(), _FIT_DRAWS, spectrum, law, rows) if fixed is None else fixed
        )
        noisy = np.linalg.eigvalsh(np.diag(spectrum) + noise)
        residual = values - noisy.mean(axis=0)
        tolerance = _DEAD_ZONE * noisy.std(axis=0)
        step = _DAMPING * (residual - np.clip(residual, -tolerance, tolerance))
        spectrum = _project_spectrum(spectrum + step, trace)
    noise = (
        _draw_row_noise(source, _MEAN_DRAWS, spectrum, law, rows)
        if fixed is None
        else _draw_noise(source, _MEAN_DRAWS, p, law)
    )
    noisy, vectors = np.linalg.eigh(np.diag(spectrum) + noise)
    overlap = (vectors**2).mean(axis=0)  # mean squared coordinate j of the k-th eigenvector
    determined = np.clip((p * np.diag(overlap) - 1) / max(p - 1, 1), 0.0, 1.0)
    residual = values - noisy.mean(axis=0)
    return _project_spectrum((spectrum + determined * residual) @ overlap, trace)


def _draw_noise(source: Stream, count: int, p: int, law: NoiseLaw) -> Array:
    return np.array([draw(source, p, law) for _ in range(count)])


def _draw_row_noise(
    source: Stream, count: int, spectrum: Array, law: NoiseLaw, rows: float | None
) -> Array:
    """Draws of the noise on rows whose second moment has these eigenvalues."""
    row_count = max(1, round(rows or 1.0))
    # Not `equivalent_rows`: an eigendecomposition may order ties in any way.
    like = np.diag(np.sqrt(row_count * spectrum))[:, max(spectrum.size - row_count, 0) :]
    return np.array(
        [draw_row_noise(source, like, law.cell_variance or 0.0, row_count) for _ in range(count)]
    )
