"""Moderated variances: many variances with few degrees of freedom each borrow from each other.

A jackknife over K folds has K - 1 degrees of freedom, and tests of thousands of pairs need the far
tails of Student's t distribution, where nothing is discovered with nine of them. If the ratios of
true to assumed variances vary as d0 s0^2 / chi^2(d0) between the pairs, then a pair's best estimate
of its ratio is (d0 s0^2 + d ratio) / (d0 + d), with d0 + d degrees of freedom. d0 and s0 are found
from the mean and the variance of the logarithms of the ratios.

Smyth (2004), "Linear models and empirical Bayes methods for assessing differential expression",
section 6.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

Array = NDArray[np.float64]

_MIN_RATIOS = 10  # with fewer, d0 cannot be estimated
_LARGEST_FREEDOM = 1e6


def moderated(ratios: Array, freedom: int) -> tuple[Array, float]:
    """Moderated ratios of variances, and their degrees of freedom.

    Parameters
    ----------
    ratios
        Estimated over assumed variances, positive; shape (k,).
    freedom
        Degrees of freedom of each.

    Returns
    -------
    tuple of ndarray, shape (k,), and float
        The ratios themselves and `freedom`, if there are fewer than ten.
    """
    if ratios.size < _MIN_RATIOS:
        return ratios, float(freedom)
    half = freedom / 2
    log = np.log(ratios) - digamma(half) + math.log(half)
    excess = float(log.var(ddof=1) - polygamma(1, half))
    prior = 2 * _inverse_trigamma(excess) if excess > 0 else _LARGEST_FREEDOM
    if prior >= _LARGEST_FREEDOM:
        return np.full_like(ratios, math.exp(log.mean())), _LARGEST_FREEDOM
    centre = math.exp(log.mean() + digamma(prior / 2) - math.log(prior / 2))
    return (prior * centre + freedom * ratios) / (prior + freedom), prior + freedom


def _inverse_trigamma(value: float) -> float:
    """The x with trigamma(x) = value, between 1e-3 and half of the largest freedom."""
    low, high = 1e-3, _LARGEST_FREEDOM / 2
    if value <= polygamma(1, high):
        return high
    if value >= polygamma(1, low):
        return low
    log: float = scipy.optimize.brentq(
        lambda x: polygamma(1, math.exp(x)) - value, math.log(low), math.log(high)
    )
    return math.exp(log)
