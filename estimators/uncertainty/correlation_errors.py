"""Correlations of a noisy matrix, with errors that respect the range from -1 to 1.

With d_i = sqrt(S_ii) and everything in units where S_ii = 1, a change dS of the matrix changes the
correlation r of S_ij by dr = dS_ij - r (dS_ii + dS_jj) / 2. If the true correlation is rho, the
variance of r is therefore

s (1 - rho^2)^2 + a + b rho + c rho^2:

the first term is due to sampling, the others to noise. (1 - rho^2)^2 is the law of Gaussian rows;
the factor s follows from the law of the rows, and is 1 / n for Gaussian ones. An interval has every
rho from which the observed r differs by at most the critical value times its standard error at that
rho: a score interval, as Wilson's for a proportion and Fieller's for a quotient. Where it would be
all of [-1, 1], the correlation is not estimable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance
from gramercy.estimators.uncertainty.tails import critical_value, tail_probability

Array = NDArray[np.float64]

_BISECTIONS = 45
_MAX_CORRELATION = 0.999  # at 1 the variance would be zero


@dataclass(frozen=True)
class CorrelationErrors:
    """Correlations and their errors; every array has shape (p, p).

    Parameters
    ----------
    observed
        r, of the noisy matrix; may exceed 1. Where it is not estimable, the diagonal of the
        denoised matrix is used to scale it.
    sampling_factor
        s; see the module.
    noise_coefficients
        a, b and c; see the module.
    shape
        Gamma shape of the noise; see `estimators.uncertainty.tails`.
    estimable
        Whether the correlation can be estimated; False on the diagonal.
    z_score
        r divided by its standard error at rho = 0. It needs no quotient, so it exists where the
        correlation is not estimable, too.
    noise_share
        Share of the variance of `z_score` that is due to noise.
    """

    observed: Array
    sampling_factor: Array
    noise_coefficients: tuple[Array, Array, Array]
    shape: Array
    estimable: NDArray[np.bool_]
    z_score: Array
    noise_share: Array

    def variance(self, rho: Array) -> tuple[Array, Array]:
        """Variances of r by sampling and by noise, if the true correlation is rho."""
        a, b, c = self.noise_coefficients
        by_noise = np.maximum(a + b * rho + c * rho**2, 0.0)
        return self.sampling_factor * (1 - rho**2) ** 2, by_noise

    @property
    def estimate(self) -> Array:
        """The observed r, clipped to [-1, 1]."""
        return np.clip(self.observed, -1.0, 1.0)

    @property
    def standard_error(self) -> Array:
        """Standard error at the estimate."""
        return np.sqrt(sum(self.variance(self.estimate)))

    def interval(self, level: float) -> tuple[Array, Array]:
        """Lower and upper bounds of rho, within [-1, 1]."""
        by_sampling, by_noise = self.variance(self.estimate)
        z = critical_value(1 - level, _noise_share(by_sampling, by_noise), self.shape)
        upper, lower = self._bound(z, 1.0), self._bound(z, -1.0)
        return np.where(self.estimable, lower, -1.0), np.where(self.estimable, upper, 1.0)

    def _bound(self, z: Array, end: float) -> Array:
        """The rho between the estimate and the end whose error is z deviations, by bisection."""
        inside, outside = self.estimate.copy(), np.full_like(z, end)

        def is_covered(rho: Array) -> NDArray[np.bool_]:
            return np.abs(self.observed - rho) <= z * np.sqrt(sum(self.variance(rho)))

        ends: Array = outside.copy()
        end_is_covered = is_covered(outside)
        for _ in range(_BISECTIONS):
            middle = (inside + outside) / 2
            covered = is_covered(middle)
            inside = np.where(covered, middle, inside)
            outside = np.where(covered, outside, middle)
        return np.where(end_is_covered, ends, outside)

    @cached_property
    def p_values(self) -> Array:
        """Two-sided p-values of the hypothesis of no correlation; 1 on the diagonal."""
        p_values = tail_probability(np.abs(self.z_score), self.noise_share, self.shape)
        np.fill_diagonal(p_values, 1.0)
        return np.clip(p_values, 0.0, 1.0)

    def negated(self) -> CorrelationErrors:
        """The same errors for -r."""
        a, b, c = self.noise_coefficients
        return replace(
            self,
            observed=-self.observed,
            noise_coefficients=(a, -b, c),
            z_score=-self.z_score,
        )


def correlations_with_errors(
    matrix: Array,
    denoised: Array,
    sampling: EntryCovariance,
    noise: EntryCovariance,
    shape: Array,
    clear: NDArray[np.bool_],
    inflation: float = 1.0,
) -> CorrelationErrors:
    """Correlations of a matrix whose entries have known errors.

    Parameters
    ----------
    matrix
        Noisy, symmetric, shape (p, p); its diagonal is positive where `clear`.
    denoised
        A positive semidefinite estimate of it, at which sampling errors are computed.
    sampling, noise
        Covariance of the entries of `denoised` and of `matrix`.
    shape
        Gamma shape of the noise, shape (p, p).
    clear
        Columns whose diagonal entry exceeds the noise, shape (p,).
    inflation
        Factor of the sampling variances, for the degrees of freedom that partial correlations lose.
    """
    p = len(matrix)
    power = np.maximum(np.diag(denoised), 0.0)
    inverse_root = 1 / np.sqrt(np.where(power > 0, power, 1.0))
    r = np.clip(
        denoised * np.outer(inverse_root, inverse_root), -_MAX_CORRELATION, _MAX_CORRELATION
    )
    sa, sb, sc = _quadratic(sampling.scaled(inverse_root), p)
    factor = inflation * np.maximum(sa + sb * r + sc * r**2, 0.0) / (1 - r**2) ** 2

    scale = 1 / np.sqrt(np.where(clear, np.diag(matrix), np.where(power > 0, power, 1.0)))
    scales = np.outer(scale, scale)
    pairs = np.outer(clear, clear) & ~np.eye(p, dtype=bool)
    a, b, c = _quadratic(noise.scaled(scale), p)
    deviation = np.sqrt(factor + a)
    z_score = np.divide(matrix * scales, deviation, out=np.zeros((p, p)), where=deviation > 0)
    return CorrelationErrors(
        matrix * scales, factor, (a, b, c), shape, pairs, z_score, _noise_share(factor, a)
    )


def _quadratic(errors: EntryCovariance, p: int) -> tuple[Array, Array, Array]:
    """Coefficients of the variance of a correlation, as a polynomial of the correlation."""
    variance = errors.variance(p)
    with_own, between = errors.covariance_with_diagonal(p)
    diagonal = np.diag(variance)
    c = (np.add.outer(diagonal, diagonal) + 2 * between) / 4
    return variance, -(with_own + with_own.T), c


def _noise_share(by_sampling: Array, by_noise: Array) -> Array:
    total = by_sampling + by_noise
    return np.where(total > 0, by_noise / np.where(total > 0, total, 1.0), 0.0)
