"""Tail probabilities of a Gaussian error plus the noise of a release, for any family of noise.

Every family is a scale mixture of normals, or is close to one: the noise in an entry is sqrt(V)
times a normal variable, where V is a Gamma variable of some shape k and mean 1 (a symmetric
variance-gamma law, of excess kurtosis 3 / k). Exactly: k = 1 for ``laplace``, (d + 1) / 2 for
``k-norm`` in d = p (p + 1) / 2 dimensions, m off the diagonal and m / 2 on it for
``matrix-laplace`` of m degrees of freedom, m / 2 off the diagonal for ``wishart``, infinity for
Gaussian noise. For sums of several entries, and on the diagonal of ``wishart``, k is chosen to give
the same kurtosis.

With a share s of the variance due to noise, P(|T| > t) = E[2 Phi(-t / sqrt(1 - s + s V))].
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri, gammainccinv, gammaincinv, ndtr, ndtri

from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]

_NORMAL_KURTOSIS = 1e-3  # excess kurtosis below which the law is taken as normal
_NODES, _SHARES, _BISECTIONS = 81, 33, 45
_STEPS_PER_LOG = 8  # log(shape) is rounded to multiples of 1/8
_CHUNK = 1 << 16  # entries at a time: 40 MB for each array of their nodes


def gamma_shape(law: NoiseLaw, linear: Array) -> Array:
    """Gamma shape k of the noise in the entries of L E L^T, infinite where it is normal.

    `linear`: L, shape (q, p); the identity for the entries of E. Returns shape (q, q).

    From the fourth cumulants. If E is Wishart with m degrees of freedom, tr(B E) has the excess
    kurtosis 12 sum b^4 / (m (sum b^2)^2) over the eigenvalues b of B, and half of it for the
    difference of two Wishart matrices. Here B is (l_i l_j^T + l_j l_i^T) / 2. For independent
    Laplace entries with weights w the excess kurtosis is 3 sum w^4 / (sum w^2)^2.
    """
    q, p = linear.shape
    if law.family == "k-norm":
        return np.full((q, q), (p * (p + 1) / 2 + 1) / 2)
    if law.family in {"wishart", "matrix-laplace"}:
        inner = linear @ linear.T
        lengths = np.sqrt(np.outer(np.diag(inner), np.diag(inner)))
        plus, minus = (inner + lengths) / 2, (inner - lengths) / 2
        fourth = _ratio(plus**4 + minus**4, (plus**2 + minus**2) ** 2, 0.125)
        return (law.dof or 1.0) / ((4 if law.family == "wishart" else 2) * fourth)
    if law.family != "laplace":
        return np.full((q, q), np.inf)
    powers = [linear**k @ (linear ** (4 - k)).T for k in range(5)]
    binomials = (1, 4, 6, 4, 1)
    all_fourth = sum(b * powers[k] * powers[4 - k] for k, b in enumerate(binomials))
    diagonal = linear**4 @ (linear**4).T  # entries E_mm occur once, with weight l_im l_jm
    inner = linear @ linear.T
    lengths = np.diag(inner)
    second = np.outer(lengths, lengths) + inner**2 - linear**2 @ (linear**2).T
    return 1 / _ratio((all_fourth - 16 * diagonal) / 2 + diagonal, second**2, 1.0)


def tail_probability(t: Array, share: Array, shape: Array) -> Array:
    """P(|T| > t) for T of unit variance, elementwise.

    `t`: value of t in standard deviations, not negative. `share`: share of the variance that is due
    to noise, in [0, 1]. `shape`: Gamma shape k of the noise; see `gamma_shape`.
    """
    probability: Array = 2 * ndtr(-t)
    non_normal, rounded = _non_normal(share, shape)
    for k in np.unique(rounded[non_normal]):
        entries = non_normal & (rounded == k)
        probability[entries] = _mixture_tail(t[entries], share[entries], *_mixture(float(k)))
    return probability


def critical_value(alpha: float, share: Array, shape: Array) -> Array:
    """The t with P(|T| > t) = alpha, for T as in `tail_probability`."""
    critical = np.full(share.shape, -ndtri(alpha / 2))
    non_normal, rounded = _non_normal(share, shape)
    for k in np.unique(rounded[non_normal]):
        entries = non_normal & (rounded == k)
        critical[entries] = np.interp(share[entries], *_critical_values(alpha, float(k)))
    return critical


def squared_length_quantile(alpha: float, q: int, shape: float) -> float:
    """The x with P(|T|^2 > x) = `alpha` for q noise variables of unit variance with one V.

    At least that of the chi-squared distribution. `shape`: Gamma shape k of the noise.
    """
    normal = float(chdtri(q, alpha))
    non_normal, rounded = _non_normal(np.ones(1), np.array([shape]))
    if not non_normal[0]:
        return normal
    values, weights = _mixture(float(rounded[0]))
    least, most = 0.0, 100.0 + 10.0 * normal
    while chdtrc(q, most / values) @ weights > alpha:
        most *= 2
    for _ in range(_BISECTIONS):
        middle = (least + most) / 2
        too_low = chdtrc(q, middle / values) @ weights > alpha
        least, most = (middle, most) if too_low else (least, middle)
    return max(most, normal)


def noise_share(by_sampling: Array, by_noise: Array) -> Array:
    """Share of the variance that is due to noise; 0 where the variance is zero."""
    total = by_sampling + by_noise
    return np.where(total > 0, by_noise / np.where(total > 0, total, 1.0), 0.0)


@lru_cache(maxsize=4096)
def _critical_values(alpha: float, shape: float) -> tuple[Array, Array]:
    """A grid of shares and the critical value of each, by bisection; read only."""
    grid = np.linspace(0.0, 1.0, _SHARES)
    low, high = np.zeros(_SHARES), np.full(_SHARES, 100.0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_low = _mixture_tail(middle, grid, *_mixture(shape)) > alpha
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    return grid, (low + high) / 2


def _non_normal(share: Array, shape: Array) -> tuple[NDArray[np.bool_], Array]:
    """Where the law is not normal, and the rounded shapes; 1 where it is normal."""
    non_normal = 3 * share**2 / shape > _NORMAL_KURTOSIS
    log = np.log(np.where(non_normal, shape, 1.0))
    return non_normal, np.exp(np.round(log * _STEPS_PER_LOG) / _STEPS_PER_LOG)


@lru_cache(maxsize=4096)
def _mixture(shape: float) -> tuple[Array, Array]:
    """Values of V and their weights, by the trapezoid rule in log V; read only."""
    low = np.log(max(float(gammaincinv(shape, 1e-14)) / shape, 1e-200))
    high = np.log(float(gammainccinv(shape, 1e-18)) / shape)
    log = np.linspace(low, high, _NODES)
    weight = np.exp(shape * (log - np.exp(log) + 1))
    return np.exp(log), weight / weight.sum()


def _mixture_tail(t: Array, share: Array, values: Array, weights: Array) -> Array:
    probability = np.empty_like(t)
    for begin in range(0, t.size, _CHUNK):
        part = slice(begin, begin + _CHUNK)
        by_noise = share[part, None]
        deviation = np.sqrt((1 - by_noise) + by_noise * values)
        probability[part] = 2 * (ndtr(-t[part, None] / deviation) @ weights)
    return probability


def _ratio(numerator: Array, denominator: Array, default: float) -> Array:
    """The quotient, or `default` where the denominator is zero."""
    out = np.full_like(numerator, default)
    ratio: Array = np.divide(numerator, denominator, out=out, where=denominator > 0)
    return np.maximum(ratio, 1e-12)
