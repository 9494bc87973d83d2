"""Statistics that separate the outputs of two neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import k0e, k1e

from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.k_norm import KNorm
from gramercy.mechanisms.laplace import Laplace
from gramercy.mechanisms.local import Local
from gramercy.mechanisms.marginals import Marginals
from gramercy.mechanisms.matrix_laplace import MatrixLaplace
from gramercy.mechanisms.mechanism import COUNT_WEIGHT, Mechanism, RowWise
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.wishart import Wishart
from tests.support.black_box.outputs import Outputs, Pair
from tests.support.black_box.replay import Array

INFINITE = 1e9  # represents an infinite log-likelihood ratio


def log_likelihood_ratio(mechanism: Any, pair: Pair, outputs: Outputs) -> Array:
    """The log-likelihood ratio of each output in favour of `pair.second`, or an approximation."""
    for kind, statistic in _STATISTICS.items():
        if isinstance(mechanism, kind):
            return statistic(mechanism, pair, outputs)
    raise AssertionError(f"no statistic for outputs of {mechanism.name}")


def _differences(mechanism: Any, pair: Pair, outputs: Outputs) -> list[Array]:
    return [
        (outputs.values - each) / mechanism.lattice.squared_radius
        for each in (pair.first, pair.second)
    ]


def _counts(pair: Pair, outputs: Outputs) -> list[Array]:
    return [np.zeros(1) if outputs.rows is None else outputs.rows - rows for rows in pair.rows]


def _by_projection(mechanism: Any, pair: Pair, outputs: Outputs) -> Array:
    """Project onto the whitened difference of the neighbours."""
    difference = _differences(mechanism, pair, outputs)[0]
    # With half the variance, each of the two symmetric off-diagonal entries counts fully.
    off_diagonal = 1.0 if mechanism.law.family == "gaussian-isotropic" else 0.5
    weight = (pair.second - pair.first) * np.where(np.eye(len(pair.first)) == 1, 1.0, off_diagonal)
    projection = (difference * weight).sum(axis=(1, 2)) / mechanism.lattice.squared_radius
    row_difference = pair.rows[1] - pair.rows[0]
    return np.asarray(projection + COUNT_WEIGHT**2 * row_difference * _counts(pair, outputs)[0])


def _by_sums(mechanism: Any, pair: Pair, outputs: Outputs) -> Array:
    i, j = np.triu_indices(mechanism.parameters.p)
    matrices = [
        np.abs(difference[:, i, j]).sum(axis=1)
        for difference in _differences(mechanism, pair, outputs)
    ]
    counts = [COUNT_WEIGHT * np.abs(count) for count in _counts(pair, outputs)]
    return np.asarray(matrices[0] - matrices[1] + counts[0] - counts[1])


def _by_lengths(mechanism: Any, pair: Pair, outputs: Outputs) -> Array:
    squares = [
        (difference**2).sum(axis=(1, 2)) for difference in _differences(mechanism, pair, outputs)
    ]
    counts = [(COUNT_WEIGHT * count) ** 2 for count in _counts(pair, outputs)]
    return np.asarray(np.sqrt(squares[0] + counts[0]) - np.sqrt(squares[1] + counts[1]))


def _by_densities(mechanism: Any, pair: Pair, outputs: Outputs) -> Array:
    densities = [
        log_density(difference / mechanism.scale)
        for difference in _differences(mechanism, pair, outputs)
    ]
    counts = [0.1 * np.abs(count) / (2 * mechanism.scale) for count in _counts(pair, outputs)]
    return np.asarray(densities[1] - densities[0] + counts[0] - counts[1])


def _by_counts(mechanism: Any, pair: Pair, outputs: Outputs) -> Array:
    """Project onto the difference of the counts, in units of the variance of each draw."""
    variances = np.concatenate(
        [np.full(2 * each.histograms, each.scale**2) for each in mechanism.noise.draws]
    )
    return np.asarray(outputs.values @ ((pair.second - pair.first) / variances))


def _by_rows(mechanism: Any, pair: Pair, outputs: Outputs) -> Array:
    return np.asarray(outputs.values @ (pair.second - pair.first).astype(float))


def _by_reports(mechanism: Any, pair: Pair, outputs: Outputs) -> Array:
    i, j = np.triu_indices(mechanism.parameters.p)
    product_difference = (pair.second[i] * pair.second[j] - pair.first[i] * pair.first[j]).astype(
        float
    )
    weight = np.where((i == j) | mechanism.iid, 1.0, 2.0)
    return np.asarray(outputs.values @ (product_difference * weight))


def _by_determinants(mechanism: Any, pair: Pair, outputs: Outputs) -> Array:
    """(m - p - 1)/2 times the log-ratio of determinants; infinite where one is not positive."""
    p = mechanism.parameters.p
    mean = 0.0 if mechanism.keeps_mean else mechanism.dof * mechanism.scale
    shape = max((mechanism.dof - p - 1) / 2, 1.0)  # where it is 0, the ratio is constant
    logs = []
    for difference in _differences(mechanism, pair, outputs):
        values = eigenvalues(difference + mean * np.eye(p))
        possible = values[:, 0] > 0
        log = np.log(np.where(possible[:, None], values, 1.0)).sum(axis=1)
        logs.append(np.where(possible, log, -INFINITE))
    return np.asarray(shape * (logs[1] - logs[0]))


def eigenvalues(matrices: Array) -> Array:
    """Ascending eigenvalues, shape (..., p); without LAPACK for two columns, ten times faster."""
    if matrices.shape[-1] != 2:
        return np.asarray(np.linalg.eigvalsh(matrices))
    middle = (matrices[..., 0, 0] + matrices[..., 1, 1]) / 2
    half = np.hypot((matrices[..., 0, 0] - matrices[..., 1, 1]) / 2, matrices[..., 0, 1])
    return np.stack([middle - half, middle + half], axis=-1)


def log_density(noise: Array, nodes: int = 8) -> Array:
    """Log density of matrix Laplace noise in units of s, shape (draws, p, p), up to a constant.

    It is exact for two columns. Symmetric 2 x 2 matrices are points (a, u) of three-dimensional
    space, with eigenvalues a +- |u|, and W, W - Z >= 0 means a_W >= max(|u_W|, a_Z + |u_W - u_Z|).
    So the integral over W reduces to one over the plane,

        f(Z) ~ int exp(a_Z - 2 max(|u|, a_Z + |u - u_Z|)) du,

    and in elliptic coordinates with foci 0 and u_Z, d = |u_Z|, one of Bessel functions:

        f(Z) ~ int_0^pi exp(-|d cos v - a_Z|) (d^2 K_0(d) sin^2 v + d K_1(d)) dv.

    It is exact for one column, too. For more columns the nuclear norm, its limit, is used. Eight
    nodes are enough for a statistic, which need not be optimal.
    """
    values = eigenvalues(noise)
    if noise.shape[-1] != 2:
        return -np.abs(values).sum(axis=-1) / 2
    low, high = values[..., 0], values[..., 1]
    middle, half = np.abs(low + high) / 2, np.maximum((high - low) / 2, 1e-9)
    cut = np.arccos(np.minimum(middle / half, 1.0))
    beyond = np.maximum(middle - half, 0.0)
    first, second = half * half * k0e(half), half * k1e(half)
    total = np.zeros(middle.shape)
    rule = np.polynomial.legendre.leggauss(nodes)
    for start, end in ((np.zeros_like(cut), cut), (cut, np.full_like(cut, math.pi))):
        for node, weight in zip(*rule, strict=True):
            v = start + (end - start) / 2 * (1 + node)
            decay = np.exp(beyond - np.abs(half * np.cos(v) - middle))
            total += weight * (end - start) * decay * (first * np.sin(v) ** 2 + second)
    return np.log(total) - half - beyond


_STATISTICS: dict[type[Mechanism], Callable[[Any, Pair, Outputs], Array]] = {
    Gaussian: _by_projection,
    Output: _by_projection,
    Laplace: _by_sums,
    KNorm: _by_lengths,
    MatrixLaplace: _by_densities,
    Wishart: _by_determinants,
    Local: _by_reports,
    Marginals: _by_counts,
    RowWise: _by_rows,
}
