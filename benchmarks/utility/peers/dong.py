"""Dong, Liang, Yi (NeurIPS 2022), "Differentially private covariance revisited".

GaussCov (the baseline of that paper), SeparateCov (its Algorithm 1: eigenvectors of one noisy
matrix, eigenvalues with noise of their own) and the pure variants of its appendix. Constants and
the split of the budget are those of the authors' code (github.com/hkustDB/PrivateCovariance),
whose neighbours are replace-one as well: sqrt2 in Frobenius norm, 2 for the l1 and sqrt2 for the l2
change of the sorted eigenvalues.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.utility.data import Dataset
from benchmarks.utility.guarantees import Privacy
from benchmarks.utility.matrices import assemble, clipped, plausible, projected, triangle
from benchmarks.utility.method import Forms, Method, independent_draws


def gauss_scale(mu: float) -> float:
    """Gaussian scale on the Gram matrix, sqrt2 / mu; mu = sqrt(2 rho) under rho-zCDP."""
    return math.sqrt(2) / mu


def laplace_scale(p: int, epsilon: float) -> float:
    """Laplace scale Delta_1 / epsilon. Delta_1 is Gramercy's sqrt((p^2+3p)/2), not sqrt2 p."""
    return math.sqrt((p * p + 3 * p) / 2) / epsilon


def noisy_gauss(moment: Array, n: int, mu: float, rng: Rng) -> Array:
    s = gauss_scale(mu) / n
    return moment + triangle(lambda shape: rng.normal(0, s, shape), len(moment))


def noisy_laplace(moment: Array, n: int, epsilon: float, rng: Rng) -> Array:
    b = laplace_scale(len(moment), epsilon) / n
    return moment + triangle(lambda shape: rng.laplace(0, b, shape), len(moment))


def gauss_cov(moment: Array, n: int, mu: float, rng: Rng) -> Forms:
    noisy = noisy_gauss(moment, n, mu, rng)
    return {"raw": noisy, "published": clipped(noisy), "projected": projected(noisy)}


def lap_cov(moment: Array, n: int, epsilon: float, rng: Rng) -> Forms:
    noisy = noisy_laplace(moment, n, epsilon, rng)
    return {"raw": noisy, "published": clipped(noisy), "projected": projected(noisy)}


def separate_cov(moment: Array, n: int, mu: float, rng: Rng) -> Forms:
    """SeparateCov: half of rho (mu / sqrt2) each for eigenvectors and eigenvalues."""
    half = mu / math.sqrt(2)
    values = np.linalg.eigvalsh(moment).astype(np.float64)
    values += rng.normal(0, gauss_scale(half) / n, values.size)
    return _separate(noisy_gauss(moment, n, half, rng), values)


def separate_lap_cov(moment: Array, n: int, epsilon: float, rng: Rng) -> Forms:
    """Pure SeparateCov: half of epsilon each for eigenvectors and eigenvalues."""
    values = np.linalg.eigvalsh(moment).astype(np.float64)
    values += rng.laplace(0, 2 / (epsilon / 2) / n, values.size)
    return _separate(noisy_laplace(moment, n, epsilon / 2, rng), values)


def _separate(noisy: Array, values: Array) -> Forms:
    """Combine vectors and values; `as coded` pairs them by singular value, with its sign."""
    vectors = np.linalg.eigh(noisy)[1]
    left, _, right = np.linalg.svd(noisy)
    kept = np.clip(values, 0, 1)
    return {
        "as coded": (left * kept[::-1]) @ right,
        "published": assemble(vectors, kept),
        "projected": assemble(vectors, plausible(values)),
    }


def _gauss(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    return gauss_cov(data.moment, data.n, privacy.mu, rng)


def _laplace(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    return lap_cov(data.moment, data.n, privacy.epsilon, rng)


def _separate_any(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    if privacy.kind == "pure":
        return separate_lap_cov(data.moment, data.n, privacy.epsilon, rng)
    return separate_cov(data.moment, data.n, privacy.mu, rng)


METHODS = (
    Method(
        "gausscov",
        "GaussCov",
        "Dong, Liang, Yi (2022): i.i.d. Gaussian upper triangle at the exact scale sqrt2 / (n mu) "
        "(raw: the source papers' mechanism, calibrated analytically); as published, eigenvalues "
        "are clipped to [0, 1].",
        ("approx", "zcdp"),
        independent_draws(_gauss),
    ),
    Method(
        "lapcov",
        "LapCov",
        "Dong, Liang, Yi (2022), appendix, with our smaller sensitivity instead of sqrt2 p.",
        ("pure",),
        independent_draws(_laplace),
    ),
    Method(
        "separatecov",
        "SeparateCov",
        "Dong, Liang, Yi (2022), Algorithm 1; both halves are Gaussian, so that the guarantee "
        "converts exactly (mu^2 / 2 each). As coded, eigenvectors are paired by singular value, "
        "which treats large negative noise as signal; as published, by eigenvalue. Pure: "
        "Laplace noise, with our smaller sensitivity for the eigenvectors.",
        ("approx", "zcdp", "pure"),
        independent_draws(_separate_any),
    ),
)
