"""Gramercy's mechanisms, with seeded noise (benchmarks only), and its post-processing."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.utility.data import Dataset
from benchmarks.utility.guarantees import DELTA, Privacy
from benchmarks.utility.matrices import goe, projected, triangle
from benchmarks.utility.method import Forms, Method, independent_draws
from gramercy.estimators.noise.denoise import denoise
from gramercy.mechanisms import registry
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.noise import Family, NoiseLaw


def scale(name: str, data: Dataset, privacy: Privacy) -> float:
    """The scale of a mechanism on the Gram matrix, as a release calibrates it."""
    made = registry[name].calibrated(
        p=data.p,
        n=data.n,
        neighbours=Neighbours.REPLACE_ONE,
        epsilon=None if privacy.kind == "zcdp" else privacy.epsilon,
        delta=None if privacy.kind == "pure" else DELTA,
        mu=privacy.mu if privacy.kind == "zcdp" else None,
    )
    return float(made.constants()["scale"])


def unit_noise(name: str, p: int) -> float:
    """Root mean square Frobenius norm of the noise on the Gram matrix at mu or epsilon of 1."""
    dimension = p * (p + 1) / 2
    return {
        "gaussian": math.sqrt(2 * dimension),
        "laplace": math.sqrt((p * p + 3 * p) / 2) * math.sqrt(2) * p,
        "k-norm": math.sqrt(2 * dimension * (dimension + 1)),
        "matrix-laplace": math.sqrt(2 * p) * (p + 1),
    }[name]


def gaussian(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    """Gaussian mechanism: white noise in svec."""
    s = scale("gaussian", data, privacy) / data.n
    noisy = data.moment + goe(rng, data.p, s)
    return _invariant(data, noisy, "gaussian-isotropic", s / math.sqrt(2))


def k_norm(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    """K-norm mechanism: uniform direction in svec, length Gamma(D, s), s = sqrt2 / epsilon."""
    p, s = data.p, scale("k-norm", data, privacy) / data.n
    dimension = p * (p + 1) // 2
    direction = goe(rng, p, 1.0)
    noise = direction * (rng.gamma(dimension, s) / np.linalg.norm(direction))
    return _invariant(data, data.moment + noise, "k-norm", s * math.sqrt((dimension + 1) / 2))


def matrix_laplace(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    """Matrix Laplace: W - W' with independent W_p(p + 1, s I), s = 1 / epsilon."""
    p, s = data.p, scale("matrix-laplace", data, privacy) / data.n
    left, right = (rng.standard_normal((p, p + 1)) for _ in range(2))
    noisy = data.moment + s * (left @ left.T - right @ right.T)
    return _invariant(data, noisy, "matrix-laplace", s * math.sqrt(2 * (p + 1)), dof=p + 1)


def laplace(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    """Laplace noise on the upper triangle, b = sqrt((p^2 + 3p) / 2) / epsilon."""
    b = scale("laplace", data, privacy) / data.n
    noisy = data.moment + triangle(lambda shape: rng.laplace(0, b, shape), data.p)
    return {"raw": noisy, "projected": projected(noisy)}


def _invariant(
    data: Dataset, noisy: Array, family: Family, deviation: float, dof: float | None = None
) -> Forms:
    """The forms of a release with rotation-invariant noise; `deviation` is off the diagonal."""
    law = NoiseLaw(
        family=family,
        sd_diagonal=deviation * math.sqrt(2),
        sd_off_diagonal=deviation,
        dof=dof,
    )
    denoised = denoise(noisy, law, unit=data.unit)
    return {"raw": noisy, "projected": projected(noisy), "denoised": denoised}


OURS = (
    Method(
        "gaussian",
        "Gramercy, Gaussian",
        "Isotropic: sqrt2 / s-GDP, exactly.",
        ("approx", "zcdp"),
        independent_draws(gaussian),
        headline="denoised",
    ),
    Method(
        "matrix-laplace",
        "Gramercy, matrix Laplace",
        "The difference of two Wishart matrices of p + 1 degrees of freedom and scale 1/epsilon.",
        ("pure",),
        independent_draws(matrix_laplace),
        headline="denoised",
    ),
    Method(
        "k-norm",
        "Gramercy, K-norm",
        "Frobenius: a uniform direction and a length Gamma(D, sqrt2/epsilon).",
        ("pure",),
        independent_draws(k_norm),
        headline="denoised",
    ),
    Method(
        "laplace",
        "Gramercy, Laplace",
        "Scale sqrt((p^2 + 3p)/2) / epsilon on the upper triangle.",
        ("pure",),
        independent_draws(laplace),
        headline="projected",
    ),
)
