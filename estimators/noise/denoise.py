"""Denoising a released matrix: more accuracy at no privacy cost, as it is post-processing.

If the noise law is rotation-invariant, the best estimator without knowledge of the data keeps the
eigenvectors and shrinks the eigenvalues. The best shrinkage follows from the public noise law;
nothing is tuned. Noise with independent entries of one scale is not rotation-invariant, but the
effect on eigenvectors is small, and the same shrinkage is used.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.common.machine import single_blas_thread
from gramercy.estimators.noise.released_trace import estimate_trace
from gramercy.estimators.noise.shrinkage import shrunken_spectrum
from gramercy.estimators.noise.spectrum_projection import project_spectrum
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
Repair = Literal["denoised", "shrunk", "projected"]


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


def denoise(
    matrix: Array,
    law: NoiseLaw,
    trace: float = 1.0,
    rows: float | None = None,
    *,
    unit: bool = True,
) -> Array:
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
    unit
        Whether rows were divided by their own length. Then the trace is `trace`, unless the
        released trace contradicts it: see `estimate_trace`.

    Returns
    -------
    ndarray, shape (p, p)
        Symmetric, positive semidefinite, trace at most `trace`. See `repair_name`.

    Notes
    -----
    First the trace is estimated, by `estimate_trace`, and the released matrix is given this trace
    by adding a multiple of the identity. Then its eigenvalues are shrunk by simulation of the
    noise, by `shrunken_spectrum`. With 16 and 60 draws up to 300 columns; above, with fewer, and
    two of each from 750 columns on, which are enough because a spectrum of many eigenvalues varies
    little.

    The draws come from a public seed, and BLAS uses one thread: anyone who verifies a release
    recomputes the same matrix.
    """
    with single_blas_thread():
        values, vectors = np.linalg.eigh(matrix)
        if repair_name(law, rows) == "projected":
            shrunk = project_spectrum(values, trace)
        else:
            shrunk = _shrink(values, law, trace, rows or 1.0, unit)
        return _assemble(vectors, shrunk)


def project(matrix: Array, trace: float = 1.0) -> Array:
    """The nearest positive semidefinite matrix with trace at most `trace`; shape (p, p)."""
    values, vectors = np.linalg.eigh(matrix)
    return _assemble(vectors, project_spectrum(values, trace))


def _shrink(values: Array, law: NoiseLaw, bound: float, rows: float, unit: bool) -> Array:
    p, released = values.size, float(values.sum())
    likely = bound if unit and math.isfinite(bound) else min(max(released, 0.0), bound)
    deviations = law.row_deviations(np.full(p, likely / p), rows)
    sd = math.sqrt(float((np.diag(deviations) ** 2).sum()))
    trace = estimate_trace(released, sd, bound, unit)
    return shrunken_spectrum(values + (trace - released) / p, law, trace, rows)


def _assemble(vectors: Array, values: Array) -> Array:
    product: Array = (vectors * values) @ vectors.T
    return (product + product.T) / 2
