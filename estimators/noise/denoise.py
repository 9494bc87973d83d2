"""Denoising a released matrix: more accuracy at no privacy cost, as it is post-processing.

If the noise law is rotation-invariant, the best estimator without knowledge of the data keeps the
eigenvectors and shrinks the eigenvalues. The best shrinkage follows from the public noise law;
nothing is tuned. Noise with independent entries of one scale is not rotation-invariant, but the
effect on eigenvectors is small, and the same shrinkage is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from gramercy.common.machine import single_blas_thread
from gramercy.estimators.noise.draws import Stream, draw, draw_row_noise_parts, stream
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]


def project_spectrum(values: Array, trace: float) -> Array:
    """The nearest increasing, non-negative sequence with sum at most `trace`; shape (p,)."""
    increasing: Array = scipy.optimize.isotonic_regression(values).x
    clipped: Array = np.maximum(increasing, 0.0)
    return clipped if clipped.sum() <= trace else _shifted(increasing, trace)


def project_to_trace(values: Array, trace: float) -> Array:
    """The nearest increasing, non-negative sequence with sum `trace`; shape (p,).

    `values`: shape (p,), finite. `trace`: not negative, finite.
    """
    return _shifted(scipy.optimize.isotonic_regression(values).x, trace)


def _shifted(increasing: Array, trace: float) -> Array:
    """An increasing sequence plus the constant for which its positive part has this sum."""
    decreasing = increasing[::-1]
    excess = (np.cumsum(decreasing) - trace) / np.arange(1, decreasing.size + 1)
    last = np.flatnonzero(decreasing >= excess)[-1]
    shifted: Array = np.maximum(increasing - excess[last], 0.0)
    return shifted


_DOUBT, _DISBELIEF = 2.0, 4.0  # standard deviations below the public bound
_SMALLEST_SHARE = 1 / 16  # of the bound: the trace of rows clipped at four times their length
_NODES, _REACH = 100, 20.0


def estimate_trace(released: float, sd: float, bound: float, unit: bool) -> float:
    """Estimate the trace without noise.

    `released`: released trace minus the mean of the noise. `sd`: standard deviation of the noise on
    it. `bound`: public upper bound; may be infinite. `unit`: whether rows were divided by their own
    length. Then the trace is the bound, except for rows without a length: zero rows, and lines that
    could not be read. The result is from 0 to `bound`, and positive unless `released` is not and
    `sd` is 0.

    In general the posterior mean, for a prior density proportional to 1 / (t + b / 16) on [0, b], b
    the bound: clipped rows may be about as long as the radius, or several times shorter. Without a
    bound, `sd` takes the place of b / 16. The mean is close to the released trace where that is
    several standard deviations from both ends.

    For unit rows it is the bound, unless the released trace is more than two standard deviations
    below; from four on, it is the posterior mean, and a mixture of both in between. So a public
    fact that does not hold for all rows costs no more than a fraction of the noise.
    """
    mean = _posterior_mean(released, sd, bound)
    if not unit or math.isinf(bound):
        return mean
    shortfall = bound - released
    if shortfall <= _DOUBT * sd:
        return bound
    weight = min((shortfall / sd - _DOUBT) / (_DISBELIEF - _DOUBT), 1.0) if sd else 1.0
    return weight * mean + (1 - weight) * bound


def _posterior_mean(released: float, sd: float, bound: float) -> float:
    """Mean of the posterior that `estimate_trace` describes, by Gauss-Legendre quadrature."""
    mode = min(max(released, 0.0), bound)
    if sd == 0:
        return mode
    decay = sd / (1 + abs(released - mode) / sd)  # the density falls to 1/e at about this distance
    lower, upper = max(0.0, mode - _REACH * decay), min(bound, mode + _REACH * decay)
    nodes, weights = _quadrature()
    offsets = lower - mode + (upper - lower) * (nodes + 1) / 2  # from the mode
    smallest = sd if math.isinf(bound) else _SMALLEST_SHARE * bound
    prior = 1 / (mode + offsets + smallest)
    density = weights * prior * np.exp(-offsets * (offsets + 2 * (mode - released)) / (2 * sd * sd))
    return float(mode + (offsets * density).sum() / density.sum())


@cache
def _quadrature() -> tuple[Array, Array]:
    """Nodes and weights on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


SIMULATED_UP_TO = 300  # columns; above, the number of draws falls, so that the time hardly rises
_FIT_DRAWS, _MEAN_DRAWS, _FEWEST_DRAWS = 16, 60, 2
_STEPS, _STEP_LENGTH = 6, 1.5
_FEW_STEPS, _FEW_STEPS_ABOVE = 3, 1000  # columns: a step takes a second at 2000 columns
# Half width of the dead zone, for residuals of a flat spectrum of 3 and of 5 standard deviations.
_SURE, _HALF_WIDTHS = (3.0, 5.0), (2.0, 0.5)
_MARGIN = 4.0  # divided by p: two standard deviations of the squared norm of a GOE matrix


def shrunken_spectrum(values: Array, law: NoiseLaw, trace: float, rows: float) -> Array:
    """The best eigenvalues for the released eigenvectors, if noise has this law.

    `values`: released eigenvalues minus the mean of the noise, ascending, with sum `trace`; shape
    (p,). `law`: noise law in the units of `values`. `trace`: trace of the matrix without noise,
    positive. `rows`: number of rows; used for ``noisy-rows`` only. Returns shape (p,): increasing,
    non-negative, with sum `trace`.

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
    # The dead zone, in standard deviations: eigenvalues that cannot be noise have a narrow one.
    residual, deviations = _residuals(values, np.full(p, mean), noise_at)
    sure = np.abs(residual) / np.maximum(deviations, np.finfo(np.float64).tiny)
    width = np.interp(sure, _SURE, _HALF_WIDTHS)
    # Share of the eigenvalues' sum of squares about their mean that is not noise.
    flat = law.row_deviations(np.full(p, mean), rows)
    noise = float((flat**2).sum() - (np.diag(flat) ** 2).mean())  # without its trace
    total = float(((values - mean) ** 2).sum())
    share = max(0.0, 1 - noise * (1 + _MARGIN / p) / total) if total > 0 else 0.0
    spectrum = project_to_trace(mean + math.sqrt(share) * (values - mean), trace)
    for _ in range(_STEPS if p <= _FEW_STEPS_ABOVE else _FEW_STEPS):
        residual, deviations = _residuals(values, spectrum, noise_at)
        # The part of the residuals that is ignored: at most `zone` each, less if all are larger.
        zone = width * deviations
        size, noise = float(np.linalg.norm(residual)), float(np.linalg.norm(zone))
        limit = zone * (noise / size if size > noise else 1.0)
        change = residual - np.clip(residual, -limit, limit)
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


def _residuals(
    values: Array, spectrum: Array, noise_at: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Released eigenvalues minus the mean of simulated ones, whose deviations are returned too."""
    noisy = np.linalg.eigvalsh(np.diag(spectrum) + noise_at(spectrum))
    return values - noisy.mean(axis=0), noisy.std(axis=0, ddof=1)


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


Repair = Literal["denoised", "shrunk", "projected"]


def repair_name(law: NoiseLaw, rows: float | None = None) -> Repair:
    """The method that `denoise` uses for noise of this law.

    Returns ``denoised``: the law is rotation-invariant, and the shrinkage is the best possible.
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

    `matrix`: released matrix minus the mean of the noise, symmetric, shape (p, p); often
    indefinite. `law`: noise law in the units of `matrix`. `trace`: public upper bound on the trace:
    1 for the second moment of rows in the unit ball. `rows`: number of rows; used for
    ``noisy-rows`` only, which is projected if it is None. `unit`: whether rows were divided by
    their own length. Then the trace is `trace`, unless the released trace contradicts it: see
    `estimate_trace`. Returns shape (p, p): symmetric, positive semidefinite, trace at most `trace`.
    See `repair_name`.

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
            return with_spectrum(vectors, project_spectrum(values, trace))
        # The trace without noise, from the released one and its error at a flat spectrum.
        p, released, n = values.size, float(values.sum()), rows or 1.0
        likely = trace if unit and math.isfinite(trace) else min(max(released, 0.0), trace)
        deviations = law.row_deviations(np.full(p, likely / p), n)
        sd = math.sqrt(float((np.diag(deviations) ** 2).sum()))
        wanted = estimate_trace(released, sd, trace, unit)
        shrunk = shrunken_spectrum(values + (wanted - released) / p, law, wanted, n)
        return with_spectrum(vectors, shrunk)


def project(matrix: Array, trace: float = 1.0) -> Array:
    """The nearest positive semidefinite matrix with trace at most `trace`; shape (p, p)."""
    values, vectors = np.linalg.eigh(matrix)
    return with_spectrum(vectors, project_spectrum(values, trace))


def with_spectrum(vectors: Array, values: Array) -> Array:
    """The symmetric matrix with these eigenvectors and eigenvalues."""
    product: Array = (vectors * values) @ vectors.T
    return (product + product.T) / 2
