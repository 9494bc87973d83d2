"""Estimates, standard errors and intervals for every entry of a symmetric matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.denoise import project
from gramercy.estimators.table_units import TableMoments, TableUnits, weight_lost
from gramercy.estimators.uncertainty.correlation_errors import (
    CorrelationErrors,
    correlations_with_errors,
    not_estimable,
)
from gramercy.estimators.uncertainty.jackknife import (
    Statistic,
    describe_sampling,
    jackknife,
    squared_reaches,
)
from gramercy.estimators.uncertainty.moment_errors import (
    MomentErrors,
    about_means,
    completed_moments,
    correlations,
    incomplete,
    inverse_shares,
    moment_errors,
    raw_moment_errors,
)
from gramercy.estimators.uncertainty.partial_correlations import (
    inverse_correlations,
    inverse_errors,
    levels_of,
    nodewise_lasso,
)
from gramercy.estimators.uncertainty.tails import critical_value, gamma_shape, noise_share
from gramercy.schemas.evidence import Evidence

# Correlations and partial correlations of a release, with their noise and sampling errors.
#
# The noise law is known exactly. With enough folds, the sum of both errors is that of the
# jackknife; otherwise the law of the rows is assumed (see `uncertainty.entry_covariance`). Missing
# cells, of which a release with private constants publishes the shares, are corrected as in
# `estimators.table_units`.

Array = NDArray[np.float64]
CorrelationKind = Literal["correlation", "partial-correlation"]

_MAX_CORRELATION = 0.999  # of arctanh


def correlation_errors(evidence: Evidence, of: CorrelationKind) -> CorrelationErrors:
    """Correlations or partial correlations; shape (q, q), where q = p, or p - 1 about means.

    Partial correlations are those of the inverse. Where noise hides its smallest eigenvalues, they
    are nodewise (see `uncertainty.partial_correlations`), if the variances of all columns are
    known.
    """
    moments = moment_errors(evidence)
    if moments.weight_lost:
        return not_estimable(len(moments.matrix))
    if of == "correlation":
        return _correlation_errors(evidence, moments)
    moments = _completed(evidence, moments)
    errors = inverse_errors(evidence, moments)
    if not errors.estimable.any():
        lost = not moments.clear_columns().all()
        return not_estimable(len(moments.matrix)) if lost else edge_errors(evidence, of)

    def statistic(matrix: Array) -> Array:
        return inverse_correlations(completed_moments(evidence, matrix), moments.noise)

    return _with_folds(errors, evidence, statistic)


def edge_errors(evidence: Evidence, of: CorrelationKind) -> CorrelationErrors:
    """As `correlation_errors`, but partial correlations are always nodewise.

    Each is known or not on its own, given the columns whose variances are known. The first of the
    known levels of a column is the reference of the others, and has no partial correlations.
    """
    if of == "correlation":
        return correlation_errors(evidence, of)
    moments = moment_errors(evidence)
    if moments.weight_lost:
        return not_estimable(len(moments.matrix))
    lasso = nodewise_lasso(
        _completed(evidence, moments),
        evidence.law,
        max(evidence.rows, 1.0),
        levels_of(evidence.columns[moments.offset :]),
    )
    if lasso is None:
        return not_estimable(len(moments.matrix))

    def statistic(matrix: Array) -> Array:
        return lasso.partial_correlations(completed_moments(evidence, matrix))

    return _with_folds(lasso.errors, evidence, statistic)


def _correlation_errors(evidence: Evidence, moments: MomentErrors) -> CorrelationErrors:
    clear, attenuation = moments.clear_columns(), np.ones_like(moments.matrix)
    if incomplete(evidence):
        completed = np.diag(completed_moments(evidence, evidence.raw))
        inverse = inverse_shares(evidence)
        clear &= (completed > 0) & (inverse > 0)
        shrunk = np.where(clear, np.diag(moments.matrix) * inverse**2, 1.0)
        root = np.sqrt(np.where(clear, completed, 1.0) / shrunk)
        attenuation = np.outer(root, root)
    errors = correlations_with_errors(
        moments.matrix,
        moments.denoised,
        moments.sampling,
        moments.noise,
        gamma_shape(evidence.law, moments.linear),
        clear,
        attenuation=attenuation,
    )
    return _with_folds(
        errors, evidence, lambda matrix: correlations(completed_moments(evidence, matrix))
    )


def _with_folds(
    errors: CorrelationErrors, evidence: Evidence, statistic: Statistic
) -> CorrelationErrors:
    """Errors by the jackknife of arctanh(h r), if there are enough folds."""

    def transformed(matrix: Array) -> Array:
        shrunk = np.clip(
            statistic(matrix) * errors.attenuation, -_MAX_CORRELATION, _MAX_CORRELATION
        )
        return np.arctanh(shrunk)

    folds = jackknife(evidence, transformed)
    return errors if folds is None else errors.with_jackknife(folds.standard_error, folds.freedom)


def _completed(evidence: Evidence, moments: MomentErrors) -> MomentErrors:
    """Moments corrected for missing cells, for an inverse or a regression.

    The errors on the diagonal are overstated by at most the square of 1 / o.
    """
    if not incomplete(evidence):
        return moments
    return replace(
        moments.mapped(np.diag(inverse_shares(evidence))),
        matrix=completed_moments(evidence, evidence.raw),
        denoised=project(completed_moments(evidence, evidence.repaired), np.inf),
    )


Bounds = tuple[Array, Array]


@dataclass(frozen=True)
class Entries:
    """Estimates and errors of all entries; every array has shape (q, q)."""

    estimate: Array  # the entries
    # standard deviations of their errors, by sampling and by the noise of the release
    sampling_error: Array
    noise_error: Array
    estimable: NDArray[np.bool_]  # whether the entry can be estimated at all
    # lower and upper bounds, as a function of the confidence level
    interval: Callable[[float], Bounds]
    # what the sampling errors assume about the rows: ``Gaussian rows``, or a jackknife
    law: str = "Gaussian rows"

    @property
    def standard_error(self) -> Array:
        """Standard deviation of both errors together."""
        return np.hypot(self.sampling_error, self.noise_error)


EntryKind = Literal["second moment", "covariance", "correlation", "partial-correlation"]


def entries(evidence: Evidence, of: EntryKind) -> Entries:
    """Entries and errors of the matrix that `of` names."""
    if of == "second moment":
        return second_moment(evidence)
    return covariance(evidence) if of == "covariance" else correlation(evidence, of)


def second_moment(evidence: Evidence) -> Entries:
    """Entries of the second moment about zero; q = p."""
    return _moment_entries(raw_moment_errors(evidence), evidence, lambda matrix: matrix)


def covariance(evidence: Evidence) -> Entries:
    """Second moments about the means, if the first column is the intercept; q = p - 1.

    Otherwise they are about zero, as in `second_moment`.
    """
    return _moment_entries(
        moment_errors(evidence), evidence, lambda matrix: about_means(evidence, matrix)
    )


def correlation(evidence: Evidence, of: CorrelationKind = "correlation") -> Entries:
    """Correlations or partial correlations, about the means as in `covariance`.

    The diagonal is 1, without error.
    """
    errors = correlation_errors(evidence, of)
    diagonal = np.eye(len(errors.estimable), dtype=bool)

    def interval(level: float) -> Bounds:
        lower, upper = errors.interval(level)
        return np.where(diagonal, 1.0, lower), np.where(diagonal, 1.0, upper)

    sampling_error, noise_error = (
        np.sqrt(np.where(diagonal, 0.0, variance)) for variance in errors.variance(errors.estimate)
    )
    return Entries(
        np.where(diagonal, 1.0, errors.estimate),
        sampling_error,
        noise_error,
        errors.estimable | diagonal,
        interval,
        describe_sampling(evidence),
    )


def _moment_entries(errors: MomentErrors, evidence: Evidence, statistic: Statistic) -> Entries:
    by_sampling, by_noise = errors.variances()
    known = np.full(by_noise.shape, not errors.weight_lost)
    folds = None if errors.weight_lost else jackknife(evidence, statistic)
    if folds is not None:
        known &= np.isfinite(folds.standard_error)
        both = np.where(known, folds.standard_error, 0.0) ** 2
        by_sampling = np.maximum(both - by_noise, 0.0)
    shape = gamma_shape(evidence.law, errors.linear)

    def interval(level: float) -> Bounds:
        if folds is None:
            z = critical_value(1 - level, noise_share(by_sampling, by_noise), shape)
            below = above = z * np.sqrt(by_sampling + by_noise)
        else:
            squares = squared_reaches(level, folds.freedom, by_sampling, by_noise, shape)
            below, above = reach_of_matrix(errors.matrix, *squares)
        lower = np.where(known, errors.matrix - below, -1.0)
        upper = np.where(known, errors.matrix + above, 1.0)
        # No row is longer than 1, and no variance is negative.
        diagonal = known & np.eye(len(known), dtype=bool)
        return np.where(diagonal, np.maximum(lower, 0.0), lower), np.where(
            diagonal, np.maximum(upper, 0.0), upper
        )

    return Entries(
        errors.matrix,
        np.sqrt(by_sampling),
        np.sqrt(by_noise),
        known,
        interval,
        describe_sampling(evidence),
    )


def reach_of_matrix(matrix: Array, by_sampling: Array, by_noise: Array) -> Bounds:
    """Distances from entries to their bounds, from squared distances by sampling and by noise.

    They are skewed on the diagonal: sampling errors of variances are skewed to the right, and those
    of their logarithms are not; noise is symmetric. Both distances are combined as in Zou and
    Donner (2008), "Construction of confidence limits about effect measures".
    """
    symmetric = np.sqrt(by_sampling + by_noise)
    size = np.maximum(matrix, symmetric / 2)
    positive = np.where(size > 0, size, 1.0)
    relative = np.sqrt(by_sampling) / positive
    below = np.hypot(positive * -np.expm1(-relative), np.sqrt(by_noise))
    above = np.hypot(positive * np.expm1(relative), np.sqrt(by_noise))
    diagonal = np.eye(len(matrix), dtype=bool)
    return np.where(diagonal, below, symmetric), np.where(diagonal, above, symmetric)


# Means, standard deviations and covariances in the columns' own units, with their errors.
#
# With five folds or more, standard errors are those of the jackknife, for rows of any law.
# Otherwise noise errors follow the law of the noise (see `table_units.TableUnits.noise`), and
# sampling errors are those of Gaussian rows, of whose cells a share o_i is present, independently
# of everything:
#
# n Var(m_i) = C_ii / o_i,   n Var(C_ii) = 2 C_ii^2 / o_i,
# n Var(C_ij) = (C_ii C_jj + 2 C_ij^2) / (o_i o_j) - C_ij^2 (1 / o_i + 1 / o_j - 1).
#
# Neither contains what clipping does to the rows, nor the noise in the published shares o_i.


def table_means(evidence: Evidence, units: TableUnits) -> Entries:
    """Means of the q columns without the intercept, in their units; arrays of shape (q,)."""
    variances = np.diag(units.moments(evidence.repaired).covariance)
    sampling = np.sqrt(np.maximum(variances, 0.0) / units.present / max(evidence.rows, 1.0))
    shape = gamma_shape(evidence.law, _linear(evidence, units))[0, 1:]
    return _entries(evidence, units, lambda moments: moments.mean, sampling, shape)


def table_covariance(evidence: Evidence, units: TableUnits) -> Entries:
    """Covariances about the means in the columns' units; arrays of shape (q, q)."""
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
    variances = table_covariance(evidence, units)
    known = ~np.diag(units.unknown(evidence.raw, evidence.deviations, evidence.terms))
    known &= np.diag(variances.estimable)
    deviation = np.sqrt(np.where(known, np.diag(variances.estimate), 1.0))

    def interval(level: float) -> Bounds:
        lower, upper = (np.sqrt(np.diag(bound)) for bound in variances.interval(level))
        return lower, upper

    return replace(
        variances,
        estimate=deviation,
        sampling_error=np.diag(variances.sampling_error) / (2 * deviation),
        noise_error=np.diag(variances.noise_error) / (2 * deviation),
        estimable=known,
        interval=interval,
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

    def interval(level: float) -> Bounds:
        diagonal = np.eye(len(estimate), dtype=bool) if estimate.ndim == 2 else None
        by_sampling, by_noise = sampling_error**2, noise_error**2
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
    return Entries(estimate, sampling_error, noise_error, estimable, interval, law)


def _linear(evidence: Evidence, units: TableUnits) -> Array:
    """L of the first-order errors L E L^T, apart from the weight S_00; the intercept first."""
    moments = units.moments(evidence.raw)
    linear = np.diag(np.append(1.0, 1 / units.present))
    linear[1:, 0] = -(moments.mean - units.centre) / units.scale
    return linear
