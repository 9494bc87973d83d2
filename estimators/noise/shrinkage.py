"""The best shrinkage of a released spectrum, by simulation of its noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.draws import Stream, draw, draw_row_noise_parts, stream
from gramercy.estimators.noise.spectrum_projection import project_to_trace
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]

SIMULATED_UP_TO = 300  # columns; above, the number of draws falls, so that the time hardly rises
_FIT_DRAWS, _MEAN_DRAWS, _FEWEST_DRAWS = 16, 60, 2
_STEPS, _STEP_LENGTH = 6, 1.5
_FEW_STEPS, _FEW_STEPS_ABOVE = 3, 1000  # columns: a step takes a second at 2000 columns
# Half width of the dead zone, for residuals of a flat spectrum of 3 and of 5 standard deviations.
_SURE, _HALF_WIDTHS = (3.0, 5.0), (2.0, 0.5)
_MARGIN = 4.0  # divided by p: two standard deviations of the squared norm of a GOE matrix


def shrunken_spectrum(values: Array, law: NoiseLaw, trace: float, rows: float) -> Array:
    """The best eigenvalues for the released eigenvectors, if noise has this law.

    Parameters
    ----------
    values
        Released eigenvalues minus the mean of the noise, ascending, with sum `trace`; shape (p,).
    law
        Noise law in the units of `values`.
    trace
        Trace of the matrix without noise, positive.
    rows
        Number of rows; used for ``noisy-rows`` only.

    Returns
    -------
    ndarray, shape (p,)
        Increasing, non-negative, with sum `trace`.

    Notes
    -----
    All matrices have the same trace: that of the noise is removed from its draws.

    1. A spectrum c is fitted so that the eigenvalues of diag(c) + noise equal the released ones on
       average. It starts with the released eigenvalues, moved towards their mean until their sum
       of squares is that of the released ones minus that of the noise; the noise counts with two
       standard deviations more, so that released eigenvalues that may be pure noise give a flat
       spectrum. Six steps follow, or three above 1000 columns, each of 1.5 times the residuals.
       Residuals r within a dead zone are ignored, so as not to fit noise. Its half width w is two
       standard deviations, or half of one for eigenvalues that cannot be noise: those more than
       five deviations from the eigenvalues of a flat spectrum. It is multiplied by |w| / |r| where
       that is less than one, because residuals larger than noise are signal.
    2. The k-th eigenvalue becomes E[u_k^T diag(c) u_k], where u_k is the k-th eigenvector of
       diag(c) + noise.
    3. The residual of the fit is added with a weight that measures how well u_k is determined: 1
       where eigenvalues are far apart, 0 where noise mixes them.

    Noise on rows depends on the rows, up to rotations only through diag(c), so it is recomputed
    for each c, from the same random numbers.
    """
    p, source, mean = values.size, stream(), trace / values.size
    noise_at = _simulated_noise(source, number_of_draws(_FIT_DRAWS, p), p, law, rows)
    width = _dead_zone(*_residuals(values, np.full(p, mean), noise_at))
    share = _signal_share(values, law, trace, rows)
    spectrum = project_to_trace(mean + math.sqrt(share) * (values - mean), trace)
    for _ in range(_STEPS if p <= _FEW_STEPS_ABOVE else _FEW_STEPS):
        residual, deviations = _residuals(values, spectrum, noise_at)
        change = residual - _within_noise(residual, width * deviations)
        spectrum = project_to_trace(spectrum + _STEP_LENGTH * change, trace)
    noise_at = _simulated_noise(source, number_of_draws(_MEAN_DRAWS, p), p, law, rows)
    noisy, vectors = np.linalg.eigh(np.diag(spectrum) + noise_at(spectrum))
    overlap = (vectors**2).mean(axis=0)  # mean squared coordinate j of the k-th eigenvector
    determined = np.clip((p * np.diag(overlap) - 1) / max(p - 1, 1), 0.0, 1.0)
    residual = values - noisy.mean(axis=0)
    return project_to_trace((spectrum + determined * residual) @ overlap, trace)


def number_of_draws(most: int, p: int) -> int:
    """Number of simulated p x p matrices, which cost about p^3 each."""
    return max(_FEWEST_DRAWS, round(most * min(1.0, SIMULATED_UP_TO / p) ** 3))


def _signal_share(values: Array, law: NoiseLaw, trace: float, rows: float) -> float:
    """Share of the released eigenvalues' sum of squares about their mean that is not noise."""
    p = values.size
    mean = trace / p
    deviations = law.row_deviations(np.full(p, mean), rows)
    noise = float((deviations**2).sum() - (np.diag(deviations) ** 2).mean())  # without its trace
    total = float(((values - mean) ** 2).sum())
    return max(0.0, 1 - noise * (1 + _MARGIN / p) / total) if total > 0 else 0.0


def _residuals(
    values: Array, spectrum: Array, noise_at: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Released eigenvalues minus the mean of simulated ones, whose deviations are returned too."""
    noisy = np.linalg.eigvalsh(np.diag(spectrum) + noise_at(spectrum))
    return values - noisy.mean(axis=0), noisy.std(axis=0, ddof=1)


def _dead_zone(residual: Array, deviations: Array) -> Array:
    """Half widths, in standard deviations, from the residuals of a flat spectrum."""
    sure = np.abs(residual) / np.maximum(deviations, np.finfo(np.float64).tiny)
    widths: Array = np.interp(sure, _SURE, _HALF_WIDTHS)
    return widths


def _within_noise(residual: Array, width: Array) -> Array:
    """The part of the residuals that is ignored: at most `width` each, less if all are larger."""
    size, noise = float(np.linalg.norm(residual)), float(np.linalg.norm(width))
    limit = width * (noise / size if size > noise else 1.0)
    ignored: Array = np.clip(residual, -limit, limit)
    return ignored


def _simulated_noise(
    source: Stream, count: int, p: int, law: NoiseLaw, rows: float
) -> Callable[[Array], Array]:
    """Draws of the noise minus its trace, shape (count, p, p), as a function of the spectrum."""
    variance = law.cell_variance
    if variance is None:
        fixed = _without_trace(np.array([draw(source, p, law) for _ in range(count)]))
        return lambda _: fixed
    n = max(1, round(rows))
    first = min(n, p)
    parts = [draw_row_noise_parts(source, p, variance, n, first) for _ in range(count)]

    def noise_at(spectrum: Array) -> Array:
        # Rows with this second moment. Not `equivalent_rows`: an eigendecomposition may order
        # ties in any way.
        lengths = np.sqrt(n * spectrum[p - first :])[:, None]
        drawn = np.array([squares for _, squares in parts])
        for matrix, (noise, _) in zip(drawn, parts, strict=True):
            matrix[p - first :] += lengths * noise
            matrix[:, p - first :] += (lengths * noise).T
        return _without_trace(drawn / n)

    return noise_at


def _without_trace(drawn: Array) -> Array:
    means = np.trace(drawn, axis1=1, axis2=2) / drawn.shape[1]
    traceless: Array = drawn - means[:, None, None] * np.eye(drawn.shape[1])
    return traceless
