"""Hard thresholding as published by Wang and Xu and by Li and Wang.

Both add independent Gaussian noise to the sample covariance. They set to zero every entry (also on
the diagonal) that does not exceed c sqrt(log p / n) + 4 sd sqrt(log p), and clip negative
eigenvalues. They differ in the standard deviation sd of the noise, and in the choice of c.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from benchmarks.arrays import Array, Rng
from benchmarks.utility.matrices import triangle
from gramercy.estimators.threshold import psd_projection, threshold_entries

METHODS = ("lw", "wx")
FOLDS = 10
CONSTANTS = np.linspace(0, 4, 41)  # candidates for cross-validation
_VARIANCE = {"lw": 4, "wx": 2}  # variance over log(1.25 / delta) / (n epsilon)^2


def central(method: str, n: int, epsilon: float, delta: float) -> float:
    """Standard deviation of the noise on an entry of the average, as published."""
    return math.sqrt(_VARIANCE[method] * math.log(1.25 / delta)) / (n * epsilon)


def local(n: int, epsilon: float, delta: float) -> float:
    """Deviation in the average of n reports, each of variance 2 log(1.25 / delta) / epsilon^2."""
    return math.sqrt(2 * math.log(1.25 / delta) / n) / epsilon


def noise(p: int, sd: float, rng: Rng) -> Array:
    """Draw symmetric noise with independent entries of deviation `sd` in the upper triangle."""
    return triangle(lambda shape: rng.normal(0, sd, shape), p)


def threshold(constant: float, n: int, p: int, sd: float) -> float:
    """Threshold as published, but `sd` for reports is that of their average (a misprint in LW)."""
    return (constant / math.sqrt(n) + 4 * sd) * math.sqrt(math.log(p))


def estimate(noisy: Array, by: float) -> Array:
    """Apply the last two steps of both algorithms: threshold, and clip negative eigenvalues."""
    return psd_projection(threshold_entries(noisy, by, "hard", keep_diagonal=False))


def errors(result: Array, truth: Array) -> tuple[float, float]:
    """Return the spectral and the Frobenius norm of the difference."""
    difference = result - truth
    values = np.linalg.eigvalsh(difference)
    return float(np.abs(values).max()), float(np.linalg.norm(difference))


def cross_validated(rows: Array, deviation: Callable[[int], float], rng: Rng) -> float:
    """Choose the constant with least Frobenius error over ten folds, as in Cai and Liu.

    Parameters
    ----------
    rows
        Private rows; a release could not use them for this choice.
    deviation
        Standard deviation of the noise as a function of the number of rows. The estimate is from
        nine tenths with noise, and is compared with the covariance of the last tenth without noise.
    """
    n, p = rows.shape
    whole, losses = rows.T @ rows, np.zeros(CONSTANTS.size)
    for part in np.array_split(rng.permutation(n), FOLDS):
        held = rows[part].T @ rows[part]
        m = n - len(part)
        sd = deviation(m)
        noisy = (whole - held) / m + noise(p, sd, rng)
        # Loss of keeping an entry minus that of setting it to zero, entries in descending order.
        gains = (noisy - held / len(part)) ** 2 - (held / len(part)) ** 2
        order = np.argsort(-np.abs(noisy), axis=None)
        sums = np.concatenate([[0.0], np.cumsum(gains.ravel()[order])])
        falling = -np.abs(noisy).ravel()[order]
        kept = [np.searchsorted(falling, -threshold(c, m, p, sd)) for c in CONSTANTS]
        losses += sums[kept]
    return float(CONSTANTS[int(losses.argmin())])


def best(noisy: Array, truths: list[Array], least: list[float]) -> Array:
    """Smallest errors over all thresholds; computing them requires the truth.

    Parameters
    ----------
    noisy
        The matrix to threshold.
    truths
        The matrices that errors are measured from.
    least
        Lower bounds on the threshold.

    Returns
    -------
    ndarray, shape (len(least), len(truths), 2)
        Spectral and Frobenius errors, each with its own best threshold.
    """
    sizes = np.unique(np.abs(noisy))
    grid = np.unique(
        np.concatenate(
            [
                np.quantile(sizes, np.linspace(0, 1, 31)),
                np.linspace(0, sizes[-1], 51),
                least,
            ]
        )
    )
    result = []
    for by in grid:
        made = estimate(noisy, float(by))
        result.append([errors(made, truth) for truth in truths])
        if not made.any():
            break  # larger thresholds give the same matrix
    tried = grid[: len(result)]
    nothing = np.array(result[-1])
    every = np.array(result)
    return np.array(
        [every[tried >= t].min(axis=0) if (tried >= t).any() else nothing for t in least]
    )
