"""EMCov: Amin, Dick, Kulesza, Munoz Medina, Vassilvitskii (NeurIPS 2019).

"Differentially private covariance estimation", Algorithms 1 and 2: noisy eigenvalues, then
eigenvectors one by one, each by the exponential mechanism in the orthogonal complement of the
earlier ones: a Bingham law, drawn by rejection from an angular central Gaussian (Kent, Ganeiban,
Mardia 2018).

Adapted to replace-one: u^T G u moves by at most 1, so the law is exp(epsilon_i/2 u^T G u), where
the paper, without that bound, has epsilon_i/4; the eigenvalues move by 2 in l1 norm. Half of
epsilon goes to the eigenvalues, the rest to the vectors in proportion to sqrt(lambda + tau), as the
paper advises.

Under zCDP the method is improved: the eigenvalues get Gaussian noise (sqrt2 in l2 norm) with half
of rho. Each vector costs epsilon_i^2 / 8, because the exponential mechanism has bounded range
epsilon_i (Cesar and Rogers 2021). The epsilon_i are proportional to (lambda + tau)^(1/3), which
minimises the sum of lambda / epsilon_i. Under (epsilon, delta), rho is from the optimal conversion.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from benchmarks.arrays import Array, Rng
from benchmarks.utility.data import Dataset
from benchmarks.utility.guarantees import Privacy
from benchmarks.utility.matrices import assemble, plausible
from benchmarks.utility.method import Forms, Method, independent_draws

BETA = 0.1


def emcov(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    """Release a second moment by EMCov."""
    gram = data.moment * data.n
    values = np.linalg.eigvalsh(gram)[::-1]
    if privacy.kind == "pure":
        half = privacy.epsilon / 2
        noisy = values + rng.laplace(0, 2 / half, data.p)
        weights = _weights(noisy, data.n, 2 / half * math.log(2 * data.p / BETA), 0.5)
        epsilons = half * weights / weights.sum()
    else:
        half = privacy.rho / 2
        deviation = math.sqrt(2) / math.sqrt(2 * half)
        noisy = values + rng.normal(0, deviation, data.p)
        weights = _weights(noisy, data.n, deviation * math.sqrt(2 * math.log(data.p)), 1 / 3)
        epsilons = np.sqrt(8 * half / np.sum(weights**2)) * weights
    vectors = eigenvectors(gram, epsilons, rng)
    noisy /= data.n
    return {
        "published": assemble(vectors, np.clip(noisy, 0, 1)),
        "projected": assemble(vectors, plausible(noisy[::-1])[::-1]),
    }


def _weights(noisy: Array, n: int, tau: float, power: float) -> Array:
    return (np.clip(noisy, 0, n) + tau) ** power


def eigenvectors(gram: Array, epsilons: Array, rng: Rng) -> Array:
    """Draw orthonormal columns by the exponential mechanism, each orthogonal to the earlier."""
    p = len(gram)
    basis, left, result = np.eye(p), gram, np.empty((p, p))
    for i, epsilon in enumerate(epsilons):
        u = bingham(left, epsilon / 2, rng)
        result[:, i] = basis @ u
        mirror = u.copy()  # Householder: exchanges u and the first axis
        mirror[0] += math.copysign(1, u[0])
        mirror /= np.linalg.norm(mirror)
        basis = (basis - 2 * np.outer(basis @ mirror, mirror))[:, 1:]
        left = left - 2 * np.outer(left @ mirror, mirror)
        left = (left - 2 * np.outer(mirror, mirror @ left))[1:, 1:]
    return result


def bingham(matrix: Array, strength: float, rng: Rng) -> Array:
    """Draw a unit vector u with density proportional to exp(strength u^T matrix u)."""
    values, vectors = np.linalg.eigh(matrix)
    a, q = strength * (values[-1] - values), len(values)
    if q == 1:
        return vectors[:, 0]
    b = brentq(lambda x: np.sum(1 / (x + 2 * a)) - 1, 1e-9, q)
    omega = 1 + 2 * a / b
    log_bound = -(q - b) / 2 + q / 2 * math.log(q / b)
    while True:
        u = rng.standard_normal((16, q)) / np.sqrt(omega)
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        squares = u**2
        log_ratio = q / 2 * np.log(squares @ omega) - squares @ a - log_bound
        accepted = np.flatnonzero(np.log(rng.random(16)) < log_ratio)
        if accepted.size:
            found: Array = vectors @ u[accepted[0]]
            return found


METHODS = (
    Method(
        "emcov",
        "EMCov",
        "Amin et al. (2019), Algorithms 1 and 2: eigenvectors by the exponential mechanism, twice "
        "as sharp as printed thanks to the exact sensitivity under replace-one. Under zCDP by "
        "bounded range: epsilon_i^2 / 8 per vector.",
        ("approx", "zcdp", "pure"),
        independent_draws(emcov),
        many_columns=5,
    ),
)
