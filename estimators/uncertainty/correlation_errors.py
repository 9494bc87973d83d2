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

The sampling factor s can also come from the folds of the release (`with_jackknife`), for rows of
any law. Missing cells that count as zeros shrink a correlation to h rho: see
`estimators.table_units`.

*Moderated variances.* Many variances with few degrees of freedom each borrow from each other. A
jackknife over K folds has K - 1 degrees of freedom, and tests of thousands of pairs need the far
tails of Student's t distribution, where nothing is discovered with nine of them. If the ratios of
true to assumed variances vary as d0 s0^2 / chi^2(d0) between the pairs, then a pair's best estimate
of its ratio is (d0 s0^2 + d ratio) / (d0 + d), with d0 + d degrees of freedom. d0 and s0 are found
from the mean and the variance of the logarithms of the ratios.

Smyth (2004), "Linear models and empirical Bayes methods for assessing differential expression",
section 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance
from gramercy.estimators.uncertainty.jackknife import reach_tail, squared_reaches, student_tail
from gramercy.estimators.uncertainty.tails import critical_value, noise_share, tail_probability

Array = NDArray[np.float64]

_BISECTIONS = 45
_MAX_CORRELATION = 0.999  # at 1 the variance would be zero
_MIN_RATIOS = 10  # with fewer, d0 cannot be estimated
_LARGEST_FREEDOM = 1e6


@dataclass(frozen=True)
class CorrelationErrors:
    """Correlations and their errors; every array has shape (p, p)."""

    # r, of the noisy matrix; may exceed 1. Where it is not estimable, the diagonal of the denoised
    # matrix is used to scale it.
    observed: Array
    sampling_factor: Array  # s; see the module
    noise_coefficients: tuple[Array, Array, Array]  # a, b and c; see the module
    shape: Array  # Gamma shape of the noise; see `estimators.uncertainty.tails`
    estimable: NDArray[np.bool_]  # whether the correlation can be estimated; False on the diagonal
    # r divided by its standard error at rho = 0. It needs no quotient, so it exists where the
    # correlation is not estimable, too.
    z_score: Array
    noise_share: Array  # share of the variance of `z_score` that is due to noise
    # h: the factor by which missing cells shrink the correlation in the matrix. `observed` and all
    # bounds are corrected for it; the coefficients above are of the shrunken correlation.
    attenuation: Array | float = 1.0
    # bound on the bias of r, by which intervals are wider and z-scores smaller
    bias: Array | float = 0.0
    # standard deviation of what is not known of the bias of clipping, in intervals and z-scores
    clipping: Array | float = 0.0
    # degrees of freedom of the standard error, and of `z_score`: infinite without folds
    freedom: float = math.inf
    test_freedom: float = math.inf

    def variance(self, rho: Array) -> tuple[Array, Array]:
        """Variances of r by sampling and by noise, if the true correlation is rho."""
        a, b, c = self.noise_coefficients
        r, square = rho * self.attenuation, self.attenuation**2
        by_noise = np.maximum(a + b * r + c * r**2, 0.0)
        return self.sampling_factor * (1 - r**2) ** 2 / square, by_noise / square

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
        share = noise_share(by_sampling, by_noise)
        if math.isinf(self.freedom):
            z = critical_value(1 - level, share, self.shape)
        else:
            z = np.sqrt(sum(squared_reaches(level, self.freedom, 1 - share, share, self.shape)))
        upper, lower = self._bound(z, 1.0), self._bound(z, -1.0)
        return np.where(self.estimable, lower, -1.0), np.where(self.estimable, upper, 1.0)

    def _bound(self, z: Array, end: float) -> Array:
        """The rho between the estimate and the end whose error is z deviations, by bisection."""
        inside, outside = self.estimate.copy(), np.full_like(z, end)

        def is_covered(rho: Array) -> NDArray[np.bool_]:
            error = np.abs(self.observed - rho) - self.bias
            return error <= z * np.sqrt(sum(self.variance(rho)) + self.clipping**2)

        ends: Array = outside.copy()
        end_is_covered = is_covered(outside)
        for _ in range(_BISECTIONS):
            middle = (inside + outside) / 2
            covered = is_covered(middle)
            inside = np.where(covered, middle, inside)
            outside = np.where(covered, outside, middle)
        return np.where(end_is_covered, ends, outside)

    @cached_property
    def tail(self) -> Array:
        """The 1 - level of the interval that ends at 0, where the noise is normal.

        So they are two-sided p-values of no correlation, which agree with the intervals. 1 where
        not estimable. Unlike `p_values`, each with folds is from its own variance.
        """
        share = noise_share(*self.variance(self.estimate))
        # An interval contains 0 as well if it contains the end of the range beyond 0.
        distances = list[Array]()
        for rho in (np.zeros_like(share), -np.sign(self.observed)):
            error = np.sqrt(sum(self.variance(rho)) + self.clipping**2)
            beyond = np.maximum(np.abs(self.observed - rho) - self.bias, 0.0)
            sure = np.where(beyond > 0, np.inf, 0.0)
            distances.append(np.divide(beyond, error, out=sure, where=error > 0))
        distance = np.minimum(*distances)
        if math.isinf(self.freedom):
            tail = tail_probability(distance, share, self.shape)
        else:
            tail = reach_tail(distance, self.freedom, share)
        return np.where(self.estimable, np.minimum(tail, 1.0), 1.0)

    @property
    def testable(self) -> NDArray[np.bool_]:
        """Whether the hypothesis of no correlation can be tested."""
        tested: NDArray[np.bool_] = self.estimable | (self.z_score != 0)
        return tested

    @cached_property
    def p_values(self) -> Array:
        """Two-sided p-values of the hypothesis of no correlation; 1 on the diagonal."""
        p_values = tail_probability(np.abs(self.z_score), self.noise_share, self.shape)
        p_values = np.maximum(p_values, student_tail(np.abs(self.z_score), self.test_freedom))
        np.fill_diagonal(p_values, 1.0)
        return np.clip(p_values, 0.0, 1.0)

    def with_jackknife(self, spread: Array, freedom: int) -> CorrelationErrors:
        """The same correlations with errors from the folds instead of an assumed law of the rows.

        `spread`: jackknife standard error of arctanh(h r), sampling and noise together; NaN where a
        correlation is not estimable. Shape (p, p). `freedom`: its degrees of freedom.

        Standard errors are at least those of the noise, whose law is known. For tests, the squared
        ratios to the standard errors of the assumed law are moderated: see
        `moderated`.
        """
        estimable = self.estimable & np.isfinite(spread)
        r = np.clip(self.estimate * self.attenuation, -_MAX_CORRELATION, _MAX_CORRELATION)
        a, b, c = self.noise_coefficients
        by_noise = np.maximum(a + b * r + c * r**2, 0.0) / (1 - r**2) ** 2
        squared = np.where(estimable, spread, 0.0) ** 2
        pairs = np.triu(estimable & (squared > 0), 1)
        assumed = self.sampling_factor + by_noise
        ratio, moderate_freedom = moderated(squared[pairs] / assumed[pairs], freedom)
        z_score = self.z_score.copy()
        z_score[pairs] /= np.sqrt(ratio)
        z_score = np.triu(z_score, 1) + np.triu(z_score, 1).T
        return replace(
            self,
            sampling_factor=np.where(estimable, np.maximum(squared - by_noise, 0.0), 1.0),
            estimable=estimable,
            z_score=z_score,
            freedom=freedom,
            test_freedom=moderate_freedom,
        )

    def with_heavy_tails(self, factors: Array) -> CorrelationErrors:
        """The same correlations with sampling variances of rows with heavy tails; shape (p, p)."""
        a, sampling = self.noise_coefficients[0], factors * self.sampling_factor
        before, after = self.sampling_factor + a, sampling + a
        ratio = np.divide(before, after, out=np.ones_like(after), where=after > 0)
        return replace(
            self,
            sampling_factor=sampling,
            z_score=self.z_score * np.sqrt(ratio),
            noise_share=noise_share(sampling, a),
        )

    def with_clipping(
        self, shift: Array, deviation: Array, most: float = math.inf
    ) -> CorrelationErrors:
        """The same correlations moved by what clipping took away.

        `deviation`: standard deviation of what is not known of it; not estimable where it exceeds
        `most`. Both have the shape (p, p).
        """
        shift, deviation = ((each + each.T) / 2 for each in (shift, deviation))  # to the last digit
        moved, known = self.estimable, self.estimable & (deviation <= most)
        error = np.sqrt(self.sampling_factor + self.noise_coefficients[0])
        error = np.where(error > 0, error, np.inf)
        score = self.z_score + shift * self.attenuation / error
        score = score / np.sqrt(1 + (deviation * self.attenuation / error) ** 2)
        return replace(
            self,
            observed=np.where(moved, self.observed + shift, self.observed),
            clipping=np.where(moved, deviation, 0.0),
            estimable=known,
            z_score=np.where(moved, np.where(known, score, 0.0), self.z_score),
        )

    def embedded(self, columns: NDArray[np.intp], p: int) -> CorrelationErrors:
        """The same errors among p columns, of which the others are not estimable."""
        known = np.ix_(columns, columns)

        def among_all(values: Array, fill: float = 0.0) -> Array:
            full = np.full((p, p), fill)
            full[known] = values
            return full

        estimable = np.zeros((p, p), dtype=bool)
        estimable[known] = self.estimable

        a, b, c = (among_all(coefficient) for coefficient in self.noise_coefficients)
        return CorrelationErrors(
            among_all(self.observed),
            among_all(self.sampling_factor),
            (a, b, c),
            among_all(self.shape, np.inf),
            estimable,
            among_all(self.z_score),
            among_all(self.noise_share),
            bias=among_all(np.broadcast_to(self.bias, self.observed.shape)),
        )

    def negated(self) -> CorrelationErrors:
        """The same errors for -r."""
        a, b, c = self.noise_coefficients
        return replace(
            self, observed=-self.observed, noise_coefficients=(a, -b, c), z_score=-self.z_score
        )


def correlations_with_errors(
    matrix: Array,
    denoised: Array,
    sampling: EntryCovariance,
    noise: EntryCovariance,
    shape: Array,
    clear: NDArray[np.bool_],
    inflation: float = 1.0,
    attenuation: Array | float = 1.0,
) -> CorrelationErrors:
    """Correlations of a matrix whose entries have known errors.

    `matrix`: noisy, symmetric, shape (p, p); its diagonal is positive where `clear`. `denoised`: a
    positive semidefinite estimate of it, at which sampling errors are computed. `sampling`,
    `noise`: covariance of the entries of `denoised` and of `matrix`. `shape`: Gamma shape of the
    noise, shape (p, p). `clear`: columns whose diagonal entry exceeds the noise, shape (p,).
    `inflation`: factor of the sampling variances, for the degrees of freedom that partial
    correlations lose.
    """
    p = len(matrix)
    power = np.maximum(np.diag(denoised), 0.0)
    inverse_root = 1 / np.sqrt(np.where(power > 0, power, 1.0))
    r = np.clip(
        denoised * np.outer(inverse_root, inverse_root), -_MAX_CORRELATION, _MAX_CORRELATION
    )
    sa, sb, sc = variance_coefficients(sampling.scaled(inverse_root), p)
    factor = inflation * np.maximum(sa + sb * r + sc * r**2, 0.0) / (1 - r**2) ** 2

    scale = 1 / np.sqrt(np.where(clear, np.diag(matrix), np.where(power > 0, power, 1.0)))
    scales = np.outer(scale, scale)
    pairs = np.outer(clear, clear) & ~np.eye(p, dtype=bool)
    a, b, c = variance_coefficients(noise.scaled(scale), p)
    deviation = np.sqrt(factor + a)
    z_score = np.divide(matrix * scales, deviation, out=np.zeros((p, p)), where=deviation > 0)
    return CorrelationErrors(
        matrix * scales / attenuation,
        factor,
        (a, b, c),
        shape,
        pairs,
        z_score,
        noise_share(factor, a),
        attenuation,
    )


def not_estimable(q: int) -> CorrelationErrors:
    """The errors of q columns of which nothing can be estimated."""
    zero, never = np.zeros((q, q)), np.zeros((q, q), dtype=bool)
    shape = np.full((q, q), np.inf)
    return CorrelationErrors(zero, zero, (zero, zero, zero), shape, never, zero, zero)


def variance_coefficients(errors: EntryCovariance, p: int) -> tuple[Array, Array, Array]:
    """Coefficients of the variance of a correlation, as a polynomial of the correlation.

    `errors`: covariance of the entries of a matrix with unit diagonal.
    """
    variance = errors.variance(p)
    with_own, between = errors.covariance_with_diagonal(p)
    diagonal = np.diag(variance)
    c = (np.add.outer(diagonal, diagonal) + 2 * between) / 4
    return variance, -(with_own + with_own.T), c


def moderated(ratios: Array, freedom: int) -> tuple[Array, float]:
    """Moderated ratios of variances, and their degrees of freedom.

    `ratios`: estimated over assumed variances, positive; shape (k,). `freedom`: degrees of freedom
    of each. Returns the ratios themselves and `freedom`,
    if there are fewer than ten.
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
