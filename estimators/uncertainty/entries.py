"""Estimates, standard errors and intervals for every entry of a symmetric matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.clipped_moments import Z95
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.correlation_errors import (
    CorrelationErrors,
    correlations_with_errors,
    not_estimable,
)
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
from gramercy.estimators.uncertainty.pair_variance import pair_factors
from gramercy.estimators.uncertainty.partial_bias import with_clipping
from gramercy.estimators.uncertainty.partial_correlations import (
    inverse_correlations,
    inverse_errors,
    levels_of,
    nodewise_lasso,
)
from gramercy.estimators.uncertainty.table_entries import clipped_correlation
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
    errors, loadings = inverse_errors(evidence, moments)
    if not errors.estimable.any():
        lost = not moments.clear_columns().all()
        return not_estimable(len(moments.matrix)) if lost else edge_errors(evidence, of)

    def statistic(matrix: Array) -> Array:
        return inverse_correlations(completed_moments(evidence, matrix), moments.noise)

    return with_clipping(_with_folds(errors, evidence, statistic), loadings, evidence)


def edge_errors(
    evidence: Evidence, of: CorrelationKind, among: NDArray[np.bool_] | None = None
) -> CorrelationErrors:
    """As `correlation_errors`, but partial correlations are always nodewise.

    Each is known or not on its own, given the columns whose variances are known. The first of the
    known levels of a column is the reference of the others, and has no partial correlations.
    `among`: the columns that partial correlations may use, shape (q,); None for all.
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
        among,
    )
    if lasso is None:
        return not_estimable(len(moments.matrix))

    def statistic(matrix: Array) -> Array:
        return lasso.partial_correlations(completed_moments(evidence, matrix))

    return with_clipping(_with_folds(lasso.errors, evidence, statistic), lasso.loadings, evidence)


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
    errors = _with_folds(
        errors, evidence, lambda matrix: correlations(completed_moments(evidence, matrix))
    )
    clipped = clipped_moments(evidence)
    if clipped is None:
        return errors
    deviation = np.hypot(clipped.correlation_bias, clipped.correlation_missing) / Z95
    return errors.with_clipping(clipped.correlation - errors.estimate, deviation)


def _with_folds(
    errors: CorrelationErrors, evidence: Evidence, statistic: Statistic
) -> CorrelationErrors:
    """Errors by the jackknife of arctanh(h r), or by published lengths without enough folds."""

    def transformed(matrix: Array) -> Array:
        shrunk = np.clip(
            statistic(matrix) * errors.attenuation, -_MAX_CORRELATION, _MAX_CORRELATION
        )
        return np.arctanh(shrunk)

    folds = jackknife(evidence, transformed)
    if folds is None:
        return errors.with_heavy_tails(pair_factors(evidence))
    return errors.with_jackknife(folds.standard_error, folds.freedom)


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
    clipped, units = clipped_moments(evidence), table_units(evidence)
    if of == "correlation" and clipped is not None and units is not None:
        return clipped_correlation(evidence, units, clipped)
    errors = correlation_errors(evidence, of)
    diagonal = np.eye(len(errors.estimable), dtype=bool)

    of_table = replace(errors, sampling_factor=np.zeros_like(errors.sampling_factor))

    def bounds(level: float, target: Target) -> Bounds:
        lower, upper = (errors if target == "population" else of_table).interval(level)
        return np.where(diagonal, 1.0, lower), np.where(diagonal, 1.0, upper)

    sampling_error, noise_error = (
        np.sqrt(np.where(diagonal, 0.0, variance)) for variance in errors.variance(errors.estimate)
    )
    return Entries(
        np.where(diagonal, 1.0, errors.estimate),
        sampling_error,
        noise_error,
        errors.estimable | diagonal,
        bounds,
        describe_sampling(evidence),
        _bias_of(errors),
        lambda: errors.tail,
    )


def _bias_of(errors: CorrelationErrors) -> Bias:
    deviation = np.broadcast_to(errors.clipping, errors.observed.shape)
    none = np.zeros_like(deviation)
    return Bias((none, none), (deviation, deviation))


def _moment_entries(errors: MomentErrors, evidence: Evidence, statistic: Statistic) -> Entries:
    by_sampling, by_noise = errors.variances()
    known = np.full(by_noise.shape, not errors.weight_lost)
    folds = None if errors.weight_lost else jackknife(evidence, statistic)
    if folds is not None:
        known &= np.isfinite(folds.standard_error)
        both = np.where(known, folds.standard_error, 0.0) ** 2
        by_sampling = np.maximum(both - by_noise, 0.0)
    shape = gamma_shape(evidence.law, errors.linear)

    def bounds(level: float, target: Target) -> Bounds:
        sampled = by_sampling * (target == "population")
        if folds is None:
            z = critical_value(1 - level, noise_share(sampled, by_noise), shape)
            below = above = z * np.sqrt(sampled + by_noise)
        else:
            squares = squared_reaches(level, folds.freedom, sampled, by_noise, shape)
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
        bounds,
        describe_sampling(evidence),
    )
