"""Correlations of a noisy matrix, with errors that know they lie between -1 and 1.

With d_i = sqrt(S_ii) and everything in units where S_ii = 1, the correlation r of S_ij moves by
dr = dS_ij - r (dS_ii + dS_jj) / 2. What it varies by if the truth is rho is therefore

s (1 - rho^2)^2 + a + b rho + c rho^2:

sampling, whose law (1 - rho^2)^2 is that of Gaussian rows and whose factor s follows from the law
of the rows (1 / n for Gaussian ones), and noise, which does not end where correlations end. An
interval holds every rho from which the observed r is no further than its error there (a score
interval, as Wilson's for a share, and Fieller's for a quotient). Where it would be everything,
nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.uncertainty.entry_covariance import Spread
from gramercy.estimators.uncertainty.tails import critical, two_sided

Array = NDArray[np.float64]

_HALVINGS = 45
_ALMOST = 0.999  # a correlation, where 1 would be no variance at all


@dataclass(frozen=True)
class Relation:
    """Correlations and what is known of their errors; every array has shape (p, p).

    Parameters
    ----------
    observed
        r, of the noisy matrix: may lie beyond 1. Of unknown ones the quotient is by other powers.
    sampling
        s; see the module.
    noise
        a, b and c.
    shape
        Of the noise; see `estimators.uncertainty.tails`.
    known
        Where anything is known: never on the diagonal.
    score
        r in the deviations it would have were there no correlation, which asks for no quotient: it
        is there for unknown ones too.
    share
        Of the variance of `score` that is noise.
    """

    observed: Array
    sampling: Array
    noise: tuple[Array, Array, Array]
    shape: Array
    known: NDArray[np.bool_]
    score: Array
    share: Array

    def variance(self, rho: Array) -> tuple[Array, Array]:
        """Of r if the truth is rho: by sampling, by noise."""
        a, b, c = self.noise
        by_noise = np.maximum(a + b * rho + c * rho**2, 0.0)
        return self.sampling * (1 - rho**2) ** 2, by_noise

    @property
    def estimate(self) -> Array:
        """The observed r, within [-1, 1]."""
        return np.clip(self.observed, -1.0, 1.0)

    @property
    def deviation(self) -> Array:
        """Standard error at the estimate."""
        return np.sqrt(sum(self.variance(self.estimate)))

    def interval(self, level: float) -> tuple[Array, Array]:
        """Lower and upper bounds of rho, within [-1, 1]."""
        sampled, noisy = self.variance(self.estimate)
        z = critical(1 - level, _share(sampled, noisy), self.shape)
        upper, lower = self._bound(z, 1.0), self._bound(z, -1.0)
        return np.where(self.known, lower, -1.0), np.where(self.known, upper, 1.0)

    def _bound(self, z: Array, side: float) -> Array:
        """Halve between the estimate and the end: the rho where the error is z deviations."""
        inside, outside = self.estimate.copy(), np.full_like(z, side)

        def within(rho: Array) -> NDArray[np.bool_]:
            return np.abs(self.observed - rho) <= z * np.sqrt(sum(self.variance(rho)))

        found: Array = outside.copy()
        whole = within(outside)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            held = within(middle)
            inside = np.where(held, middle, inside)
            outside = np.where(held, outside, middle)
        return np.where(whole, found, outside)

    @cached_property
    def p_values(self) -> Array:
        """Two-sided, of no correlation; 1 on the diagonal."""
        found = two_sided(np.abs(self.score), self.share, self.shape)
        np.fill_diagonal(found, 1.0)
        return np.clip(found, 0.0, 1.0)

    def turned(self) -> Relation:
        """With the other sign."""
        a, b, c = self.noise
        return replace(self, observed=-self.observed, noise=(a, -b, c), score=-self.score)


def relation(
    matrix: Array,
    plain: Array,
    sampling: Spread,
    noise: Spread,
    shape: Array,
    known: NDArray[np.bool_],
    inflation: float = 1.0,
) -> Relation:
    """Correlations of a matrix whose errors are known.

    Parameters
    ----------
    matrix
        Noisy, symmetric; diagonal entries are positive where known.
    plain
        The best positive semidefinite form of it, about which sampling is reckoned.
    sampling, noise
        Spread of `plain`, and of `matrix`.
    shape
        Of the noise.
    known
        Of which columns the diagonal stands clear of the noise, shape (p,).
    inflation
        Of sampling variances: by as many rows fewer as there are columns held fixed.
    """
    p = len(matrix)
    power = np.maximum(np.diag(plain), 0.0)
    own = 1 / np.sqrt(np.where(power > 0, power, 1.0))
    r = np.clip(plain * np.outer(own, own), -_ALMOST, _ALMOST)
    sa, sb, sc = _quadratic(sampling.scaled(own), p)
    factor = inflation * np.maximum(sa + sb * r + sc * r**2, 0.0) / (1 - r**2) ** 2

    scale = 1 / np.sqrt(np.where(known, np.diag(matrix), np.where(power > 0, power, 1.0)))
    both = np.outer(scale, scale)
    pairs = np.outer(known, known) & ~np.eye(p, dtype=bool)
    a, b, c = _quadratic(noise.scaled(scale), p)
    deviation = np.sqrt(factor + a)
    score = np.divide(matrix * both, deviation, out=np.zeros((p, p)), where=deviation > 0)
    return Relation(matrix * both, factor, (a, b, c), shape, pairs, score, _share(factor, a))


def _quadratic(spread: Spread, p: int) -> tuple[Array, Array, Array]:
    """The variance of a correlation, by powers of the correlation."""
    variance = spread.variance(p)
    own, ends = spread.with_diagonal(p)
    diagonal = np.diag(variance)
    return variance, -(own + own.T), (np.add.outer(diagonal, diagonal) + 2 * ends) / 4


def _share(sampled: Array, noisy: Array) -> Array:
    total = sampled + noisy
    return np.where(total > 0, noisy / np.where(total > 0, total, 1.0), 0.0)
