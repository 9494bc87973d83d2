"""Hard thresholding as Wang and Xu, and Li and Wang, publish it.

Both add independent Gaussian noise to the sample covariance, put to zero every entry, the
diagonal's too, that does not exceed c sqrt(log p / n) + 4 sd sqrt(log p), and clip negative
eigenvalues. They differ in the noise's deviation sd, and in how they come by c.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.utility.matrices import triangle
from gramercy.estimators.threshold import psd_projection, threshold_entries

Array = NDArray[np.float64]
Rng = np.random.Generator
METHODS = ("lw", "wx")
FOLDS = 10
CONSTANTS = np.linspace(0, 4, 41)  # what cross-validation chooses from
_VARIANCE = {"lw": 4, "wx": 2}  # over log(1.25 / delta) / (n epsilon)^2


def central(method: str, n: int, epsilon: float, delta: float) -> float:
    """Of the noise on an entry of the average, as published."""
    return math.sqrt(_VARIANCE[method] * math.log(1.25 / delta)) / (n * epsilon)


def local(n: int, epsilon: float, delta: float) -> float:
    """Of the average of n reports: both papers print 2 log(1.25 / delta) / epsilon^2 for one."""
    return math.sqrt(2 * math.log(1.25 / delta) / n) / epsilon


def noise(p: int, sd: float, rng: Rng) -> Array:
    """Symmetric; one deviation on the whole upper triangle."""
    return triangle(lambda shape: rng.normal(0, sd, shape), p)


def threshold(constant: float, n: int, p: int, sd: float) -> float:
    """As both print it; of reports, sd is that of their average, where Li and Wang misprint it."""
    return (constant / math.sqrt(n) + 4 * sd) * math.sqrt(math.log(p))


def estimate(noisy: Array, by: float) -> Array:
    """Both algorithms' last two steps."""
    return psd_projection(threshold_entries(noisy, by, "hard", keep_diagonal=False))


def errors(result: Array, truth: Array) -> tuple[float, float]:
    """Spectral and Frobenius norm of the difference."""
    difference = result - truth
    values = np.linalg.eigvalsh(difference)
    return float(np.abs(values).max()), float(np.linalg.norm(difference))


def cross_validated(rows: Array, deviation: Callable[[int], float], rng: Rng) -> float:
    """The constant of least Frobenius error over ten folds, as Cai and Liu choose theirs.

    Parameters
    ----------
    rows
        Private: no release could choose like this.
    deviation
        Of the noise, for a number of rows: nine tenths are estimated from with noise of their own,
        and compared with the covariance of the tenth without noise.
    """
    n, p = rows.shape
    whole, losses = rows.T @ rows, np.zeros(CONSTANTS.size)
    for part in np.array_split(rng.permutation(n), FOLDS):
        held = rows[part].T @ rows[part]
        m = n - len(part)
        sd = deviation(m)
        noisy = (whole - held) / m + noise(p, sd, rng)
        # What keeping an entry adds to the loss of putting it to zero, entries in falling order.
        gains = (noisy - held / len(part)) ** 2 - (held / len(part)) ** 2
        order = np.argsort(-np.abs(noisy), axis=None)
        sums = np.concatenate([[0.0], np.cumsum(gains.ravel()[order])])
        falling = -np.abs(noisy).ravel()[order]
        kept = [np.searchsorted(falling, -threshold(c, m, p, sd)) for c in CONSTANTS]
        losses += sums[kept]
    return float(CONSTANTS[int(losses.argmin())])


def best(noisy: Array, truths: list[Array], least: list[float]) -> Array:
    """Least errors over all thresholds, which requires the truth.

    Parameters
    ----------
    noisy
        What is thresholded.
    truths
        What errors are measured against.
    least
        Thresholds must not be smaller than that.

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
            break  # larger thresholds give the same
    tried = grid[: len(result)]
    nothing = np.array(result[-1])
    every = np.array(result)
    return np.array(
        [every[tried >= t].min(axis=0) if (tried >= t).any() else nothing for t in least]
    )
