"""The computed part of the proof of `mechanisms.matrix_laplace.one_row_score_bound`.

docs/mechanisms/matrix-laplace.md shows that the score for one row, divided by epsilon, is in
[-1, 1], has mean zero, and is in convex order at most

    X = (1 + 2 d^2) k + d R N + d^2 Lap(b),    b^2 = (3/4) (p - 1) / (2 p - 1),

with independent variables: k in [-1, 1], (1 + k)/2 ~ Beta((p + 1)/2, (p + 1)/2); R^2 ~
Beta((p - 1)/2, p/2 + 1); 1/d^2 ~ chi-squared with p + 3 degrees of freedom; N standard normal;
Lap(b) Laplace of scale b, which is b g N' with g Rayleigh and N' normal. To show: the score is at
most c N in convex order, or, for 0 <= t <= 1,

    pi(t) = E (score - t)+  <=  c E (N - t/c)+.

Everything here is an upper bound on the left side, or a lower bound on the right side, up to the
rounding of double precision:

* E (X - t)+ is convex in k and in each of the scales R, g and d >= 0, the others fixed. So it
  grows if one of them is replaced by a finite law on a grid with the chords' weights
  (`chord_weights`). Values of d and g beyond their grids are bounded separately.
* pi is convex, and at most min(E (X - t)+, (1 - t)/2): so it is at most the largest convex function
  below these values at the points of a grid, and at most its chords between them.

All dimensions from `ALL_LARGER_FROM` on are checked at once: k and d are less dispersed in more
dimensions, R <= 1 and b^2 < 3/8.

    python -m tests.proofs.matrix_laplace    # every dimension, in a few minutes
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import (
    betaincc,
    betaincinv,
    betaln,
    gammainc,
    gammaincc,
    gammaincinv,
    gammaln,
    ndtr,
    ndtri,
)

from gramercy.mechanisms.matrix_laplace import one_row_score_bound

Array = NDArray[np.float64]

ALL_LARGER_FROM = 1050


def largest_ratio(p: int, c: float, *, onwards: bool = False) -> float:
    """The largest bound of pi(t) over c E (N - t/c)+, 0 <= t <= 1: at most 1 proves c.

    Parameters
    ----------
    p
        Number of columns, 2 or more.
    c
        The constant to be proven.
    onwards
        Whether the bound is for all numbers of columns from p on.
    """
    z = _deviations(1 / c)
    t = np.append(c * z, 1.0)
    bound = _convex_minorant(t, np.minimum(stop_loss(p, t, 1 / c, onwards=onwards), (1 - t) / 2))
    target = c * _normal_stop_loss(t / c)
    # A chord of the target exceeds it by at most step^2 / 8 times the largest second derivative.
    lower = np.diff(t) ** 2 / 8 * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) / c
    with np.errstate(divide="ignore", invalid="ignore"):
        left, right = (
            np.where(end > lower, value / (end - lower), np.inf)
            for value, end in ((bound[:-1], target[:-1]), (bound[1:], target[1:]))
        )
    by_chords, by_ends = np.maximum(left, right), bound[:-1] / target[1:]
    return float(np.minimum(by_chords, by_ends).max())


def least_mu(p: int, epsilon: float, *, rows: int) -> float:
    """A lower bound on mu, from one test, by quadrature.

    <D, Z> is 2 s (G - G'), G and G' independent Gamma variables of shape rows (p + 1) / 2, and
    neighbours change it by `rows`. The threshold of the test is halfway.

    Parameters
    ----------
    p, epsilon
        Number of columns, and the pure epsilon.
    rows
        2 if orthogonal rows replace each other; 1 for one row, or one column.
    """
    shape = rows * (p + 1) / 2

    def miss_density(g: float) -> float:
        log_density = (shape - 1) * math.log(g) - g - math.lgamma(shape)
        return math.exp(log_density) * float(gammaincc(shape, g + epsilon / 2))

    reach = shape + 12 * math.sqrt(shape) + 40
    left, right = (quad(miss_density, *ends, epsabs=0)[0] for ends in ((0, shape), (shape, reach)))
    return -2 * float(ndtri(left + right))


def chord_weights(grid: Array, tails: Array) -> Array:
    """Weights on an ascending grid whose weighted sums of convex functions are upper bounds.

    The sum is the mean of the function's chords, which are constant beyond the last point.

    Parameters
    ----------
    grid
        Grid from the least value of the variable V on.
    tails
        E (V - x)+ at the points of the grid.
    """
    slopes = np.diff(tails) / np.diff(grid)
    weights = np.concatenate([[1 + slopes[0]], np.diff(slopes), [-slopes[-1]]])
    return weights.clip(min=0)


def stop_loss(p: int, t: Array, deviations: float, *, onwards: bool = False) -> Array:
    """An upper bound on E (X - t)+ at t >= 0, with grids of this many standard deviations."""
    reach = deviations + 3.5
    k, weights_k = _entry(p, reach)
    r, weights_r = (np.ones(1), np.ones(1)) if onwards else _length(p, reach)
    d, weights_d, beyond = _inverse_root(p, reach)
    g, weights_g = _rayleigh(reach)
    b = math.sqrt(0.375 if onwards else 0.75 * (p - 1) / (2 * p - 1))
    # Beyond the last g the slope is at most b d^2 E N+, with E d^2 = 1 / (p + 1).
    total = np.full(t.size, beyond + b / (p + 1) * float(ndtr(-g[-1])))
    weights_noise = np.outer(weights_r, weights_g).ravel()
    for scale, weight in zip(d, weights_d, strict=True):
        sd = np.hypot(scale * r[:, None], b * scale**2 * g[None, :]).ravel()
        positive = sd > 0
        unit = max(scale, b * scale**2)
        y = unit * _NOISE_GRID
        noise = _normal_stop_loss(y[:, None] / sd[positive]) @ (
            weights_noise[positive] * sd[positive]
        )
        shifted = t[:, None] - (1 + 2 * scale**2) * k
        # E (noise - y)+ is convex and falls in y, so that chords, and then a constant, exceed it.
        total += weight * (
            (np.interp(np.abs(shifted), y, noise) + np.maximum(-shifted, 0)) @ weights_k
        )
    return total


_NOISE_GRID = np.unique(
    np.concatenate([np.arange(0, 4, 0.12), np.arange(4, 20, 0.25), np.geomspace(20, 4000, 50)])
)


def _entry(p: int, reach: float) -> tuple[Array, Array]:
    """A discrete law for k, on [-1, 1]."""
    half = (p + 1) / 2
    inner = 1 - 2 * betaincinv(half, half, ndtr(-np.arange(0.15, reach, 0.3)))
    x = np.unique(np.concatenate([[0.0], inner, [1.0]]))
    tail = betaincc(half + 1, half, (1 + x) / 2) - (1 + x) * betaincc(half, half, (1 + x) / 2)
    weights_x = chord_weights(x, np.maximum(tail, 0))[1:]
    weights = np.concatenate([weights_x[::-1], [1 - 2 * weights_x.sum()], weights_x])
    return np.concatenate([-x[:0:-1], x]), weights


def _length(p: int, reach: float) -> tuple[Array, Array]:
    """A discrete law for R, on [0, 1]."""
    a, b = (p - 1) / 2, p / 2 + 1
    squares = 1 - betaincinv(b, a, ndtr(-np.arange(-2.5, reach, 0.6)))
    x = np.sqrt(np.unique(np.concatenate([[0.0], squares, [1.0]])))
    mean = math.exp(betaln(a + 0.5, b) - betaln(a, b))
    tail = mean * betaincc(a + 0.5, b, x * x) - x * betaincc(a, b, x * x)
    return x, chord_weights(x, np.maximum(tail, 0))


def _inverse_root(p: int, reach: float) -> tuple[Array, Array, float]:
    """A discrete law for d = 1 / sqrt(C), and a bound of E (X - t)+ beyond its last point.

    There E (X - t)+ <= E |X| / 2 <= 1 + 3 d^2 given d, and E (1/C; C < x) = P(C' < x) / (n - 2)
    for C' with two degrees of freedom less than n.
    """
    n = p + 3
    c = 2 * gammaincinv(n / 2, ndtr(-np.arange(-2.5, reach, 0.4)))
    x = np.sort(c**-0.5)
    half = 0.5 / x**2
    mean = math.exp(gammaln((n - 1) / 2) - gammaln(n / 2)) / math.sqrt(2)
    tail = mean * gammainc((n - 1) / 2, half) - x * gammainc(n / 2, half)
    beyond = gammainc(n / 2, half[-1]) + 3 / (n - 2) * gammainc((n - 2) / 2, half[-1])
    grid = np.concatenate([[0.0], x])
    weights = chord_weights(grid, np.concatenate([[mean], np.maximum(tail, 0)]))
    return grid, weights, float(beyond)


def _rayleigh(reach: float) -> tuple[Array, Array]:
    """A discrete law for g, whose density is g exp(-g^2 / 2)."""
    x = np.concatenate([np.arange(0, 4, 0.4), np.arange(4, 2 * reach, 1.5)])
    return x, chord_weights(x, math.sqrt(2 * math.pi) * ndtr(-x))


def _deviations(last: float) -> Array:
    """Points from 0 to `last`, exclusive; denser where the normal density falls faster."""
    points = [*np.arange(0, 2, 0.05), *np.arange(2, 6, 0.1), 6.0]
    while points[-1] < last:
        points.append(points[-1] + 0.5 / points[-1])
    z = np.array(points)
    return z[z < last * (1 - 1e-9)]


def _normal_stop_loss(z: Array) -> Array:
    """E (N - z)+ of a standard normal N."""
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    expected: Array = density - z * ndtr(-z)
    return expected.clip(min=0)


def _convex_minorant(x: Array, y: Array) -> Array:
    """The largest convex function at most y at the points x, at these points."""
    hull: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(hull) > 1 and _is_concave(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    corners = np.array(hull)
    lower: Array = np.interp(x, corners[:, 0], corners[:, 1])
    return lower


def _is_concave(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


if __name__ == "__main__":
    ratios = {p: largest_ratio(p, one_row_score_bound(p)) for p in range(2, ALL_LARGER_FROM)}
    for first, last in ((2, 40), (41, 225), (226, 823), (824, ALL_LARGER_FROM - 1)):
        ratio, p = max((ratios[p], p) for p in range(first, last + 1))
        print(f"p = {first}..{last}: at most {ratio:.4f}, at p = {p}")
    p = ALL_LARGER_FROM
    print(f"p >= {p}: {largest_ratio(p, one_row_score_bound(p), onwards=True):.4f}")
