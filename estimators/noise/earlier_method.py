"""How releases of formats up to 7 were denoised, so that their bundles can still be verified.

It differs from the present method in three ways: up to 300 columns it starts from a flat spectrum
and takes more steps, above 300 columns it is an asymptotic formula, and it does not use that the
trace of unit rows is public.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.draws import Stream, draw, draw_row_noise, stream
from gramercy.estimators.noise.spectrum_projection import project_spectrum
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]

LAST_FORMAT = 7

_SIMULATED_UP_TO = 300
_FIT_DRAWS, _FIT_STEPS, _DAMPING, _DEAD_ZONE = 16, 12, 0.7, 0.5
_MEAN_DRAWS = 60


def earlier_spectrum(values: Array, law: NoiseLaw, trace: float, rows: float | None) -> Array:
    """The denoised eigenvalues; parameters as in `denoise`, with ascending `values`; shape (p,)."""
    if values.size <= _SIMULATED_UP_TO:
        return _simulated_shrinkage(values, law, trace, rows)
    mean = _mean_eigenvalue(values, trace)
    sd = law.row_deviations(np.full(2, mean), rows or 1.0)[0, 1]
    return project_spectrum(_asymptotic_shrinkage(values, float(sd)), trace)


def _mean_eigenvalue(values: Array, trace: float) -> float:
    """The average released eigenvalue, clipped to its possible range."""
    return float(min(max(values.sum(), 0.0), trace) / values.size)


def _asymptotic_shrinkage(values: Array, sd: float) -> Array:
    """The formula of Bun, Allez, Bouchaud and Potters (2016) for a GOE matrix: l - 2 v h(l)."""
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
        spectrum = project_spectrum(spectrum + step, trace)
    noise = (
        _draw_row_noise(source, _MEAN_DRAWS, spectrum, law, rows)
        if fixed is None
        else _draw_noise(source, _MEAN_DRAWS, p, law)
    )
    noisy, vectors = np.linalg.eigh(np.diag(spectrum) + noise)
    overlap = (vectors**2).mean(axis=0)
    determined = np.clip((p * np.diag(overlap) - 1) / max(p - 1, 1), 0.0, 1.0)
    residual = values - noisy.mean(axis=0)
    return project_spectrum((spectrum + determined * residual) @ overlap, trace)


def _draw_noise(source: Stream, count: int, p: int, law: NoiseLaw) -> Array:
    return np.array([draw(source, p, law) for _ in range(count)])


def _draw_row_noise(
    source: Stream, count: int, spectrum: Array, law: NoiseLaw, rows: float | None
) -> Array:
    row_count = max(1, round(rows or 1.0))
    like = np.diag(np.sqrt(row_count * spectrum))[:, max(spectrum.size - row_count, 0) :]
    return np.array(
        [draw_row_noise(source, like, law.cell_variance or 0.0, row_count) for _ in range(count)]
    )
