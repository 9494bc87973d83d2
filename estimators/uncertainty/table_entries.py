"""Means, standard deviations and covariances in the columns' own units, with their errors.

With five folds or more, standard errors are those of the jackknife, for rows of any law.
Otherwise noise errors follow the law of the noise (see `table_units.TableUnits.noise`), and
sampling errors are those of Gaussian rows, of whose cells a share o_i is present, independently
of everything:

n Var(m_i) = C_ii / o_i,   n Var(C_ii) = 2 C_ii^2 / o_i,
n Var(C_ij) = (C_ii C_jj + 2 C_ij^2) / (o_i o_j) - C_ij^2 (1 / o_i + 1 / o_j - 1).

Where a release publishes what clipping took away, estimates and errors contain it: see
`estimators.lost_moments`. Otherwise, neither contains what clipping does to the rows. None contains
the noise in the published shares o_i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.clipped_moments import Z95, ClippedMoments
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.released_table import ReleasedTable, Shares
from gramercy.estimators.table_units import TableMoments, TableUnits, weight_lost
from gramercy.estimators.uncertainty.entry_estimates import (
    Bias,
    Bounds,
    Entries,
    Target,
    reach_of_matrix,
)
from gramercy.estimators.uncertainty.jackknife import (
    Statistic,
    describe_sampling,
    jackknife,
    reach_tail,
    squared_reaches,
    student_quantile,
)
from gramercy.estimators.uncertainty.tails import critical_value, gamma_shape, noise_share
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import LevelsFacts

Array = NDArray[np.float64]

_MOST_NOISE = 0.3  # largest standard deviation of the noise in a correlation that is known
_FAR = 3.29  # standard deviations: an error of one in a thousand


def table_means(evidence: Evidence, units: TableUnits) -> Entries:
    """Means of the q columns without the intercept, in their units; arrays of shape (q,).

    Those of levels are their shares: see `estimators.released_table`.
    """
    return _with_shares(evidence, _numeric_means(evidence, units))


def _numeric_means(evidence: Evidence, units: TableUnits) -> Entries:
    clipped = clipped_moments(evidence)
    if clipped is not None:
        return _clipped_means(evidence, units, clipped)
    variances = np.diag(units.moments(evidence.repaired).covariance)
    sampling = np.sqrt(np.maximum(variances, 0.0) / units.present / max(evidence.rows, 1.0))
    shape = gamma_shape(evidence.law, _linear(evidence, units))[0, 1:]
    return _entries(evidence, units, lambda moments: moments.mean, sampling, shape)


def _with_shares(evidence: Evidence, entries: Entries) -> Entries:
    """The means with the shares of levels in place of those of their indicators."""
    known, columns = ReleasedTable(evidence), evidence.columns[1:]
    found = {
        facts: known.levels(facts)
        for facts in dict.fromkeys(columns)
        if isinstance(facts, LevelsFacts)
    }
    places = [(np.array([c == facts for c in columns]), found[facts]) for facts in found]

    def replaced(values: Array, part: Callable[[Shares], Array]) -> Array:
        values = values.copy()
        for at, shares in places:
            values[at] = part(shares)[:-1]
        return values

    def bounds(level: float, target: Target) -> Bounds:
        lower, upper = entries.bounds(level, target)
        return (
            replaced(
                lower, lambda each: np.nan_to_num(each.interval(level, target)[0], nan=-np.inf)
            ),
            replaced(
                upper, lambda each: np.nan_to_num(each.interval(level, target)[1], nan=np.inf)
            ),
        )

    def of_bias(shares: Shares) -> Array:
        return shares.bias / Z95

    def none(shares: Shares) -> Array:
        return np.zeros_like(shares.value)

    (below, above), (less, more) = entries.bias.shift, entries.bias.deviation
    estimable = entries.estimable.copy()
    for at, shares in places:
        estimable[at] = np.isfinite(shares.value[:-1])
    return replace(
        entries,
        estimate=replaced(entries.estimate, lambda shares: shares.value),
        sampling_error=replaced(entries.sampling_error, lambda shares: shares.sampling_error),
        noise_error=replaced(entries.noise_error, lambda shares: shares.noise_error),
        estimable=estimable,
        bounds=bounds,
        unknown_bias=Bias(
            (replaced(below, none), replaced(above, none)),
            (replaced(less, of_bias), replaced(more, of_bias)),
        ),
    )


def table_covariance(evidence: Evidence, units: TableUnits) -> Entries:
    """Covariances about the means in the columns' units; arrays of shape (q, q)."""
    clipped = clipped_moments(evidence)
    if clipped is not None:
        return _clipped_covariance(evidence, units, clipped)
    c, o = units.moments(evidence.repaired).covariance, units.present
    variances = np.maximum(np.diag(c), 0.0)
    pairs = (np.outer(variances, variances) + 2 * c**2) / np.outer(o, o)
    pairs -= c**2 * (np.add.outer(1 / o, 1 / o) - 1)
    np.fill_diagonal(pairs, 2 * variances**2 / o)
    sampling = np.sqrt(np.maximum(pairs, 0.0) / max(evidence.rows, 1.0))
    shape = gamma_shape(evidence.law, _linear(evidence, units))[1:, 1:]
    return _entries(evidence, units, lambda moments: moments.covariance, sampling, shape)


def table_deviations(evidence: Evidence, units: TableUnits) -> Entries:
    """Standard deviations in the columns' units: roots of variances; arrays of shape (q,).

    Not estimable where the variance is within the noise.
    """
    clipped = clipped_moments(evidence)
    if clipped is not None:
        return _clipped_deviations(evidence, units, clipped)
    variances = table_covariance(evidence, units)
    known = ~np.diag(units.unknown(evidence.raw, evidence.deviations, evidence.terms))
    known &= np.diag(variances.estimable)
    deviation = np.sqrt(np.where(known, np.diag(variances.estimate), 1.0))

    def bounds(level: float, target: Target) -> Bounds:
        lower, upper = (
            np.sqrt(np.maximum(np.diag(bound), 0.0)) for bound in variances.interval(level, target)
        )
        return lower, upper

    return replace(
        variances,
        estimate=deviation,
        sampling_error=np.diag(variances.sampling_error) / (2 * deviation),
        noise_error=np.diag(variances.noise_error) / (2 * deviation),
        estimable=known,
        bounds=bounds,
    )


def _entries(
    evidence: Evidence,
    units: TableUnits,
    part: Callable[[TableMoments], Array],
    sampling_error: Array,
    shape: Array,
) -> Entries:
    """The part of the moments with its errors, by the jackknife where there are enough folds."""
    raw, deviations = evidence.raw, evidence.deviations
    estimate = part(units.moments(raw))
    noise_error = part(units.noise(raw, deviations, evidence.terms))
    folds = jackknife(evidence, lambda matrix: part(units.moments(matrix)))
    if folds is not None:
        both = np.maximum(folds.standard_error, noise_error)
        sampling_error = np.sqrt(both**2 - noise_error**2)
    estimable = np.isfinite(estimate) & np.isfinite(noise_error) & np.isfinite(sampling_error)
    estimable &= not weight_lost(raw, deviations)

    def bounds(level: float, target: Target) -> Bounds:
        diagonal = np.eye(len(estimate), dtype=bool) if estimate.ndim == 2 else None
        by_sampling, by_noise = sampling_error**2 * (target == "population"), noise_error**2
        if folds is None:
            z = critical_value(1 - level, noise_share(by_sampling, by_noise), shape)
            below = above = z * np.sqrt(by_sampling + by_noise)
        else:
            squares = squared_reaches(level, folds.freedom, by_sampling, by_noise, shape)
            below = above = np.sqrt(sum(squares))
            if diagonal is not None:
                below, above = reach_of_matrix(estimate, *squares)
        lower = np.where(estimable, estimate - below, -np.inf)
        if diagonal is not None:
            lower = np.where(diagonal, np.maximum(lower, 0.0), lower)  # no variance is negative
        return lower, np.where(estimable, estimate + above, np.inf)

    law = describe_sampling(evidence)
    return Entries(estimate, sampling_error, noise_error, estimable, bounds, law)


def _linear(evidence: Evidence, units: TableUnits) -> Array:
    """L of the first-order errors L E L^T, apart from the weight S_00; the intercept first."""
    moments = units.moments(evidence.raw)
    linear = np.diag(np.append(1.0, 1 / units.present))
    linear[1:, 0] = -(moments.mean - units.centre) / units.scale
    return linear


# With the lost matrix.


def _clipped_means(evidence: Evidence, units: TableUnits, clipped: ClippedMoments) -> Entries:
    """See `table_means`: unknown for columns of which only the sign is published."""
    errors = _Errors.of(
        evidence,
        lambda matrix: units.moments(matrix).mean / units.scale,
        clipped.mean_noise,
        clipped.mean_sampling,
    )
    bias = (clipped.mean_bias, clipped.mean_bias)
    made = errors.entries(clipped.mean, bias, (0.0, 0.0), ~_is_sign(evidence, units))
    return _rescaled(made, units.scale, units.centre)


def _clipped_deviations(evidence: Evidence, units: TableUnits, clipped: ClippedMoments) -> Entries:
    """See `table_deviations`."""
    errors = _Errors.of(
        evidence,
        lambda matrix: np.diag(units.moments(matrix).covariance) / units.scale**2,
        clipped.variance_noise,
        clipped.variance_sampling,
    )
    known = clipped.known & ~_is_sign(evidence, units)
    variances = errors.entries(
        clipped.variance, (clipped.variance_bias,) * 2, clipped.variance_shift, known
    )
    deviation = np.sqrt(np.maximum(clipped.variance, 0.0))

    def root(level: float, target: Target) -> Bounds:
        lower, upper = (
            np.sqrt(np.maximum(each, 0.0)) for each in variances.interval(level, target)
        )
        return lower, upper

    roots = replace(
        variances,
        estimate=deviation,
        sampling_error=variances.sampling_error / (2 * deviation),
        noise_error=variances.noise_error / (2 * deviation),
        bounds=root,
        unknown_bias=_bias_of_roots(variances),
    )
    return _rescaled(roots, units.scale)


def _bias_of_roots(variances: Entries) -> Bias:
    """The bias of standard deviations: with it, far errors are as far as those of the variances."""
    deviation = np.sqrt(np.maximum(variances.estimate, 1e-24))
    error, (below, above) = variances.standard_error, variances.bias.shift

    def beyond(start: Array, direction: float, spread: Array) -> tuple[Array, Array]:
        start = np.maximum(start, 0.0)
        end = np.maximum(start + direction * _FAR * np.hypot(error, spread), 0.0)
        all_errors = np.abs(np.sqrt(end) - np.sqrt(start)) / _FAR
        bias = np.maximum(all_errors**2 - (error / (2 * deviation)) ** 2, 0.0)
        return np.abs(np.sqrt(start) - deviation), np.sqrt(bias)

    spread_below, spread_above = variances.bias.deviation
    lower = beyond(variances.estimate - below, -1.0, spread_below)
    upper = beyond(variances.estimate + above, 1.0, spread_above)
    return Bias((lower[0], upper[0]), (lower[1], upper[1]))


def _clipped_covariance(evidence: Evidence, units: TableUnits, clipped: ClippedMoments) -> Entries:
    """See `table_covariance`: products of correlations and standard deviations."""
    deviations = np.sqrt(np.outer(clipped.variance, clipped.variance))
    covariance, relative = (
        clipped.correlation * deviations,
        clipped.variance_noise / clipped.variance,
    )
    diagonal = np.eye(len(deviations), dtype=bool)
    of_deviations = np.abs(covariance) / 2
    noise = np.hypot(
        clipped.correlation_noise * deviations,
        of_deviations * np.hypot(relative[:, None], relative[None, :]),
    )
    sampling = np.hypot(
        clipped.correlation_sampling * deviations,
        of_deviations * np.hypot(*_pairs(clipped.variance_sampling / clipped.variance)),
    )
    widths = [
        np.hypot(
            clipped.correlation_bias * deviations,
            of_deviations * np.hypot(*_pairs((clipped.variance_bias + shift) / clipped.variance)),
        )
        for shift in clipped.variance_shift
    ]
    bias = [np.where(diagonal, clipped.variance_bias, width) for width in widths]
    shift = tuple(np.where(diagonal, each, 0.0) for each in clipped.variance_shift)
    errors = _Errors.of(
        evidence,
        lambda matrix: units.moments(matrix).covariance / np.outer(units.scale, units.scale),
        np.where(diagonal, clipped.variance_noise, noise),
        np.where(diagonal, clipped.variance_sampling, sampling),
    )
    known = ~np.logical_or.outer(*[_is_sign(evidence, units)] * 2)
    made = errors.entries(covariance, (bias[0], bias[1]), (shift[0], shift[1]), known)
    return _rescaled(made, np.outer(units.scale, units.scale))


def clipped_correlation(evidence: Evidence, units: TableUnits, clipped: ClippedMoments) -> Entries:
    """Correlations about the means; arrays of shape (q, q).

    Known where the noise and the variances allow it. Of a column of which only the sign is
    published, they are the correlations of whether a cell differs from the usual value.
    """
    errors = _Errors.of(
        evidence,
        lambda matrix: units.moments(matrix).correlation,
        clipped.correlation_noise,
        clipped.correlation_sampling,
    )
    known = ~np.logical_or.outer(~clipped.known, ~clipped.known)
    known &= clipped.correlation_noise <= _MOST_NOISE
    diagonal = np.eye(len(known), dtype=bool)
    unlike = clipped.correlation_missing  # rows with one of both cells
    bias = np.where(diagonal, 0.0, np.hypot(clipped.correlation_bias, unlike))
    made = errors.entries(clipped.correlation, (bias, bias), (0.0, 0.0), known | diagonal)

    def within(level: float, target: Target) -> Bounds:
        lower, upper = (np.clip(each, -1.0, 1.0) for each in made.interval(level, target))
        return np.where(diagonal, 1.0, lower), np.where(diagonal, 1.0, upper)

    @cache
    def tail() -> Array:
        beyond_sampling = np.hypot(errors.noise, bias / Z95)
        error = np.hypot(errors.sampling, beyond_sampling)
        share = noise_share(errors.sampling**2, beyond_sampling**2)
        distance = np.abs(clipped.correlation) / np.where(error > 0, error, 1.0)
        return np.where(made.estimable, reach_tail(distance, errors.freedom, share), 1.0)

    return replace(
        made,
        sampling_error=np.where(diagonal, 0.0, made.sampling_error),
        noise_error=np.where(diagonal, 0.0, made.noise_error),
        bounds=within,
        tail=tail,
    )


@dataclass(frozen=True)
class _Errors:
    """Standard errors by noise and by sampling, in scaled units."""

    noise: Array
    sampling: Array
    freedom: float  # of Student's t distribution of the sampling errors
    law: str

    @classmethod
    def of(cls, evidence: Evidence, statistic: Statistic, noise: Array, sampling: Array) -> _Errors:
        """With enough folds, sampling errors are those of the jackknife."""
        folds = jackknife(evidence, statistic)
        if folds is None:
            return cls(noise, sampling, np.inf, "published histograms")
        both = np.where(np.isfinite(folds.standard_error), folds.standard_error, np.inf)
        squares = np.maximum(both**2 - noise**2, 0.0)
        return cls(noise, np.sqrt(squares), folds.freedom, describe_sampling(evidence))

    def entries(
        self,
        estimate: Array,
        bias: Bounds,
        shift: tuple[Array | float, Array | float],
        known: NDArray[np.bool_],
    ) -> Entries:
        """Entries whose bounds are farther from the estimate by `shift` and by `bias`."""

        def bounds(level: float, target: Target) -> Bounds:
            z = student_quantile(level, np.inf)
            own = z * self.noise
            if target == "population":
                own = np.hypot(own, student_quantile(level, self.freedom) * self.sampling)
            below, above = (
                moved + np.hypot(width * (z / Z95), own)
                for moved, width in zip(shift, bias, strict=True)
            )
            return (
                np.where(known, estimate - below, -np.inf),
                np.where(known, estimate + above, np.inf),
            )

        estimable = known & np.isfinite(self.sampling)
        distances = [np.broadcast_to(each, estimate.shape) for each in shift]
        unknown = Bias((distances[0], distances[1]), (bias[0] / Z95, bias[1] / Z95))
        return Entries(estimate, self.sampling, self.noise, estimable, bounds, self.law, unknown)


def _pairs(values: Array) -> tuple[Array, Array]:
    return np.broadcast_arrays(values[:, None], values[None, :])  # type: ignore[return-value]


def _is_sign(evidence: Evidence, units: TableUnits) -> NDArray[np.bool_]:
    """The columns of which only is known which cells differ from the usual value."""
    return np.array([name in evidence.signs for name in units.names])


def _rescaled(entries: Entries, scale: Array, centre: Array | float = 0.0) -> Entries:
    """Entries in the columns' units."""

    def bounds(level: float, target: Target) -> Bounds:
        lower, upper = entries.interval(level, target)
        return centre + scale * lower, centre + scale * upper

    return replace(
        entries,
        estimate=centre + scale * entries.estimate,
        sampling_error=scale * entries.sampling_error,
        noise_error=scale * entries.noise_error,
        bounds=bounds,
        unknown_bias=entries.bias.of(lambda each: scale * each),
    )
