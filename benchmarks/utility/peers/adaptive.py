"""AdaptiveCov of Dong, Liang, Yi (NeurIPS 2022), "Differentially private covariance revisited".

A noisy trace, then a radius by the sparse vector technique over 1, 1/2, 1/4 ..., rows clipped to
it, and the better of GaussCov and SeparateCov by their bounds. Constants are those of the authors'
code (github.com/hkustDB/PrivateCovariance, AdaptiveCov and AdaptiveLapCov), with two errors
corrected: the Gaussian bound also shrinks with the square of the radius in the search, and the
Laplace bound is divided by n epsilon. Replace-one: the trace changes by 1/n, each query by 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.utility.data import Dataset
from benchmarks.utility.guarantees import Privacy
from benchmarks.utility.method import Forms, Method, independent_draws
from benchmarks.utility.peers import dong
from gramercy.mechanisms.accounting.guarantee import Guarantee

BETA = 0.1  # the authors' default: probability that a bound fails
STEPS = 80  # radii down to 2^-79
MAIN = 0.75  # of rho or epsilon, for the matrix


@dataclass(frozen=True)
class Bounds:
    """Error bounds at radius r: `whole` r^2, and `separate` r + `of_values` r^2."""

    whole: float
    separate: float
    of_values: float

    def at(self, r: float) -> tuple[float, float]:
        """Return the bounds of GaussCov and SeparateCov at radius r."""
        return r * r * self.whole, r * self.separate + r * r * self.of_values


def total_mu(rho: float) -> float:
    """Total mu of the three steps at rho: rho/8 Gaussian, sqrt(rho)/2 pure, 3 rho/4 Gaussian."""
    search = Guarantee.from_pure(math.sqrt(rho) / 2).mu
    return math.sqrt(2 * rho / 8 + 2 * MAIN * rho + search**2)


def adaptive_gauss(data: Dataset, rho: float, rng: Rng) -> Forms:
    """The algorithm under rho-zCDP."""
    n, p, main = data.n, data.p, MAIN * rho
    shift = math.sqrt(8 / rho * math.log(8 / BETA)) / n
    trace = np.trace(data.moment) + rng.normal(0, 2 / math.sqrt(rho) / n) + shift
    trace = min(max(trace, 1e-16), 1.0)
    beta = 0.75 * BETA
    spectral = _gauss_spectral(p, beta / 2)
    bounds = Bounds(
        _gauss_frobenius(p, beta) / math.sqrt(main) / n,
        2**1.25 * math.sqrt(trace * spectral / n) / main**0.25 / 6,
        math.sqrt(2 / main) * _gauss_length(p, beta / 2) / n,
    )
    mu = math.sqrt(2 * main)
    return _finish(data, bounds, math.sqrt(rho) / 2, rng, mu, dong.gauss_cov, dong.separate_cov)


def adaptive_laplace(data: Dataset, epsilon: float, rng: Rng) -> Forms:
    """The algorithm under pure epsilon."""
    n, p, main = data.n, data.p, MAIN * epsilon
    trace = np.trace(data.moment) + rng.laplace(0, 8 / epsilon / n)
    trace = min(max(trace + 8 / epsilon * math.log(4 / BETA) / n, 1e-16), 1.0)
    beta = 0.75 * BETA
    spectral = _laplace_spectral(p, beta / 2)
    bounds = Bounds(
        dong.laplace_scale(p, main) * _laplace_frobenius(p, beta) / n,
        math.sqrt(8 * math.sqrt(2) * p * trace * spectral / main / n) / 14,
        4 * _laplace_length(p, beta / 2) / main / n,
    )
    return _finish(data, bounds, epsilon / 8, rng, main, dong.lap_cov, dong.separate_lap_cov)


def _finish(
    data: Dataset,
    bounds: Bounds,
    search: float,
    rng: Rng,
    main: float,
    whole: Callable[[Array, int, float, Rng], Forms],
    separate: Callable[[Array, int, float, Rng], Forms],
) -> Forms:
    lengths = np.linalg.norm(data.rows, axis=1)
    steps = _search(lengths, bounds, search, rng)
    r = min(2.0 ** (1 - steps), 1.0)
    moment = data.moment
    if r < 1:  # rescale the clipped rows to the unit ball
        rows = data.rows * np.minimum(1 / r, 1 / np.maximum(lengths, 1e-300))[:, None]
        moment = rows.T @ rows / data.n
    by_whole, by_separate = bounds.at(2.0**-steps)
    release = whole if by_separate >= by_whole else separate
    forms = release(moment, data.n, main, rng)
    return {form: r * r * forms[form] for form in ("published", "projected")}


def _search(lengths: Array, bounds: Bounds, epsilon: float, rng: Rng) -> int:
    """AboveThreshold: the first k at which clipping to 2^-k adds more error than it saves."""
    threshold = rng.laplace(0, 2 / epsilon)
    bins = np.maximum(1, np.ceil(-np.log2(np.maximum(lengths, 2.0**-STEPS)) + 1e-9).astype(int))
    counts = np.bincount(bins, minlength=STEPS + 2)[: STEPS + 1]  # lengths in (2^-k, 2^(1-k)]
    upper = 4.0 ** (1 - np.arange(STEPS + 1))
    for k in range(STEPS):
        radius = 2.0**-k
        bias = float(counts[1 : k + 1] @ (upper[1 : k + 1] - radius**2))
        query = bias - lengths.size * min(bounds.at(radius))
        if query + rng.laplace(0, 4 / epsilon) >= threshold:
            return k
    return STEPS


def _gauss_length(d: int, b: float) -> float:
    log = math.log(1 / b)
    return math.sqrt(d + 2 * math.sqrt(d * log) + 2 * log)


def _gauss_frobenius(d: int, b: float) -> float:
    log = math.log(2 / b)
    return math.sqrt(d * d + 2 * math.sqrt(d * log) * (1 + math.sqrt(2 * (d - 1))) + 6 * log)


def _gauss_spectral(d: int, b: float) -> float:
    theta = min((math.log(d) / d) ** 0.3, 0.5)
    tail = 6 * math.sqrt(math.log(d)) / math.sqrt(math.log1p(theta))
    return float((1 + theta) * (2 * math.sqrt(d) + tail) + math.sqrt(2 * math.log(2 / b)))


def _laplace_constant(d: float) -> float:
    root = math.sqrt(2)
    return 2 * max((root + 1) / (root - 1), 2 * math.log2(d))


def _laplace_length(d: int, b: float) -> float:
    return 1.5 * math.sqrt(d) + math.log(2 / b) * _laplace_constant(d)


def _laplace_frobenius(d: int, b: float) -> float:
    return 1.5 * d + math.log(2 / b) * _laplace_constant(d * (d + 1) / 2)


def _laplace_spectral(d: int, b: float) -> float:
    theta = min((math.log(d) / d) ** 0.3, 0.5)
    tail = 6 * math.log(d) / math.sqrt(math.log1p(theta))
    last = math.sqrt(2) * math.log(2 / b) * _laplace_constant(d * (d + 1) / 2)
    return float((1 + theta) * (2 * math.sqrt(d) + tail) + last)


def _adaptive(data: Dataset, privacy: Privacy, rng: Rng) -> Forms:
    if privacy.kind == "pure":
        return adaptive_laplace(data, privacy.epsilon, rng)
    return adaptive_gauss(data, _rho(privacy), rng)


@lru_cache(maxsize=32)
def _rho(privacy: Privacy) -> float:
    return privacy.rho_by_gdp(total_mu)


METHODS = (
    Method(
        "adaptivecov",
        "AdaptiveCov",
        "Dong, Liang, Yi (2022): noisy trace, radius by sparse vector, then GaussCov or "
        "SeparateCov. Under (epsilon, delta) its rho is the larger of those by the optimal zCDP "
        "conversion and by Gaussian DP of its three steps.",
        ("approx", "zcdp", "pure"),
        independent_draws(_adaptive),
    ),
)
