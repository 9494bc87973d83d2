"""Noise as the original papers print it: i.i.d. Gaussian, Laplace with 2p, Wishart.

Su, Guo, Zhang (2020), Alg. 1 and Li, Wang (2023), Alg. 1: Gaussian at the classical scale.
Wang, Huai, Xu (2018): Laplace of scale 2p / (n epsilon), and Wishart noise.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import chi2

from benchmarks.arrays import Array, Rng
from benchmarks.utility.data import Dataset
from benchmarks.utility.guarantees import DELTA, Privacy
from benchmarks.utility.matrices import projected, triangle
from benchmarks.utility.method import Forms, Method, independent_draws


def classical_scale(epsilon: float) -> float:
    """Dwork and Roth's scale on the Gram matrix, sqrt2 sqrt(2 ln(1.25 / delta)) / epsilon."""
    return math.sqrt(2) * math.sqrt(2 * math.log(1.25 / DELTA)) / epsilon


def laplace_scale(p: int, epsilon: float) -> float:
    """Laplace scale on the Gram matrix, 2p / epsilon."""
    return 2 * p / epsilon


def wishart_dof(p: int, epsilon: float) -> float:
    """Degrees of freedom p + (14 / epsilon^2) ln(4 / delta) of the noise on the Gram matrix."""
    return p + 14 / epsilon**2 * math.log(4 / DELTA)


def gaussian(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    """Add i.i.d. Gaussian noise to the upper triangle, at the classical scale."""
    s = classical_scale(privacy.epsilon) / data.n
    return _forms(data.moment + triangle(lambda shape: rng.normal(0, s, shape), data.p))


def laplace(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    """Add i.i.d. Laplace noise of scale 2p / (n epsilon) to the upper triangle."""
    b = laplace_scale(data.p, privacy.epsilon) / data.n
    return _forms(data.moment + triangle(lambda shape: rng.laplace(0, b, shape), data.p))


def wishart(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    """Add Wishart noise; the form `centred` subtracts its public mean m I / n."""
    m = wishart_dof(data.p, privacy.epsilon)
    noisy = data.moment + wishart_noise(rng, data.p, m) / data.n
    centred = noisy - m / data.n * np.eye(data.p)
    return {"raw": noisy, "centred": centred, "centred and projected": projected(centred)}


def wishart_noise(rng: Rng, p: int, dof: float) -> Array:
    """Draw W_p(dof, I) by Bartlett's decomposition; dof need not be an integer."""
    lower = np.tril(rng.standard_normal((p, p)), -1)
    squares = chi2.rvs(dof - np.arange(p), random_state=rng)
    lower[np.diag_indices(p)] = np.sqrt(squares)
    return lower @ lower.T


def _forms(noisy: Array) -> Forms:
    return {"raw": noisy, "projected": projected(noisy)}


METHODS = (
    Method(
        "iid-classical",
        "i.i.d. Gaussian, classical scale",
        "Su, Guo, Zhang (2020); Li, Wang (2023): sqrt2 sqrt(2 ln(1.25/delta)) / (n epsilon) on the "
        "upper triangle. The scale is proven only for epsilon <= 1, but is shown for all.",
        ("approx",),
        independent_draws(gaussian),
    ),
    Method(
        "laplace-2p",
        "Laplace with 2p",
        "Wang, Huai, Xu (2018): scale 2p / (n epsilon) on the upper triangle.",
        ("pure",),
        independent_draws(laplace),
    ),
    Method(
        "wishart-published",
        "Wishart, as published",
        "Wang, Huai, Xu (2018): W_p(m, I/n), m = p + (14/epsilon^2) ln(4/delta). Valid but "
        "far from tight; subtracting its public mean improves it.",
        ("approx",),
        independent_draws(wishart),
    ),
)
