"""Tails of Gaussian error plus the noise of a release, whatever the family of the noise.

Every family is a scale mixture of normals, or is close to one: the noise in an entry is
sqrt(V) times a normal variable with V a Gamma variable of some shape k and mean 1 (a symmetric
variance-gamma law, of excess kurtosis 3 / k). Exactly: k = 1 for ``laplace``, (d + 1) / 2 for
``k-norm`` in d = p (p + 1) / 2 dimensions, m off the diagonal and m / 2 on it for
``matrix-laplace`` of m degrees of freedom, m / 2 off the diagonal for ``wishart``, infinity for
Gaussian noise. For sums of several entries, and on the diagonal of ``wishart``, k is that of the
same kurtosis.

So with a share s of the variance from noise, P(|T| > t) = E[2 Phi(-t / sqrt(1 - s + s V))].
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv, ndtr, ndtri

from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]

_NORMAL = 1e-3  # excess kurtosis that makes no difference
_NODES, _SHARES, _HALVINGS = 81, 33, 45
_COARSE = 8  # shapes are told apart by 1/8 of their logarithm
_AT_ONCE = 1 << 16  # entries: 40 MB an array of all their nodes


def shape_of(law: NoiseLaw, linear: Array) -> Array:
    """Shape k of the noise in the entries of L E L^T, infinite where it is normal.

    Parameters
    ----------
    law
        Noise law of E.
    linear
        L, shape (q, p); the identity for the entries of E themselves.

    Returns
    -------
    ndarray, shape (q, q)

    Notes
    -----
    From the fourth cumulants. E Wishart of m degrees of freedom gives tr(B E) the excess kurtosis
    12 sum b^4 / (m (sum b^2)^2) over the eigenvalues b of B, a difference of two half of it; here B
    is (l_i l_j^T + l_j l_i^T) / 2. Independent Laplace entries with weights w give it
    3 sum w^4 / (sum w^2)^2.
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
    fours = sum(b * powers[k] * powers[4 - k] for k, b in enumerate(binomials))
    ends = linear**4 @ (linear**4).T  # of m = q: once, of weight l_im l_jm
    squares = np.diag(powers_of_two := linear @ linear.T)
    twos = np.outer(squares, squares) + powers_of_two**2 - linear**2 @ (linear**2).T
    return 1 / _ratio((fours - 16 * ends) / 2 + ends, twos**2, 1.0)


def two_sided(t: Array, share: Array, shape: Array) -> Array:
    """P(|T| > t) for T of unit variance; arrays of one shape.

    Parameters
    ----------
    t
        In standard deviations, not negative.
    share
        Of the variance that is noise, in [0, 1].
    shape
        Shape k of the noise; see `shape_of`.
    """
    found: Array = 2 * ndtr(-t)
    rough, of = _rough(share, shape)
    for k in np.unique(of[rough]):
        here = rough & (of == k)
        found[here] = _tail(t[here], share[here], *_mixture(float(k)))
    return found


def critical(alpha: float, share: Array, shape: Array) -> Array:
    """The t with P(|T| > t) = alpha, for T as in `two_sided`."""
    found = np.full(share.shape, -ndtri(alpha / 2))
    rough, of = _rough(share, shape)
    for k in np.unique(of[rough]):
        here = rough & (of == k)
        found[here] = np.interp(share[here], *_critical(alpha, float(k)))
    return found


@lru_cache(maxsize=4096)
def _critical(alpha: float, shape: float) -> tuple[Array, Array]:
    """Shares, and the critical value of each; read only."""
    grid = np.linspace(0.0, 1.0, _SHARES)
    low, high = np.zeros(_SHARES), np.full(_SHARES, 100.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        out = _tail(middle, grid, *_mixture(shape)) > alpha
        low, high = np.where(out, middle, low), np.where(out, high, middle)
    return grid, (low + high) / 2


def _rough(share: Array, shape: Array) -> tuple[NDArray[np.bool_], Array]:
    """Where the law is not normal, and shapes rounded to few; infinite ones as 1."""
    rough = 3 * share**2 / shape > _NORMAL
    few = np.exp(np.round(np.log(np.where(rough, shape, 1.0)) * _COARSE) / _COARSE)
    return rough, few


@lru_cache(maxsize=4096)
def _mixture(shape: float) -> tuple[Array, Array]:
    """Values of V and their weights, by the trapezoid rule in log V; read only."""
    low = np.log(max(float(gammaincinv(shape, 1e-14)) / shape, 1e-200))
    high = np.log(float(gammainccinv(shape, 1e-18)) / shape)
    log = np.linspace(low, high, _NODES)
    weight = np.exp(shape * (log - np.exp(log) + 1))
    return np.exp(log), weight / weight.sum()


def _tail(t: Array, share: Array, values: Array, weights: Array) -> Array:
    found = np.empty_like(t)
    for begin in range(0, t.size, _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        noisy = share[part, None]
        deviation = np.sqrt((1 - noisy) + noisy * values)
        found[part] = 2 * (ndtr(-t[part, None] / deviation) @ weights)
    return found


def _ratio(above: Array, below: Array, otherwise: float) -> Array:
    """A quotient, and another number where nothing is divided by nothing."""
    ratio: Array = np.divide(above, below, out=np.full_like(above, otherwise), where=below > 0)
    return np.maximum(ratio, 1e-12)
