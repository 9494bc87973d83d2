"""Estimates, standard errors and intervals for every entry of a symmetric matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.uncertainty.entry_errors import CorrelationKind, correlation_errors
from gramercy.estimators.uncertainty.jackknife import (
    Statistic,
    describe_sampling,
    jackknife,
    squared_reaches,
)
from gramercy.estimators.uncertainty.moment_errors import (
    MomentErrors,
    about_means,
    moment_errors,
    raw_moment_errors,
)
from gramercy.estimators.uncertainty.tails import critical_value, gamma_shape, noise_share
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]
Bounds = tuple[Array, Array]


@dataclass(frozen=True)
class Entries:
    """Estimates and errors of all entries; every array has shape (q, q).

    Parameters
    ----------
    estimate
        The entries.
    sampling_error, noise_error
        Standard deviations of their errors, by sampling and by the noise of the release.
    estimable
        Whether the entry can be estimated at all.
    interval
        Lower and upper bounds, as a function of the confidence level.
    law
        What the sampling errors assume about the rows: ``Gaussian rows``, or a jackknife.
    """

    estimate: Array
    sampling_error: Array
    noise_error: Array
    estimable: NDArray[np.bool_]
    interval: Callable[[float], Bounds]
    law: str = "Gaussian rows"

    @property
    def standard_error(self) -> Array:
        """Standard deviation of both errors together."""
        combined: Array = np.hypot(self.sampling_error, self.noise_error)
        return combined


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
    """Distances from entries to their bounds: skewed on the diagonal, which has the variances."""
    symmetric = np.sqrt(by_sampling + by_noise)
    diagonal = np.eye(len(matrix), dtype=bool)
    below, above = skewed_reach(matrix, by_sampling, by_noise)
    return np.where(diagonal, below, symmetric), np.where(diagonal, above, symmetric)


def skewed_reach(variances: Array, by_sampling: Array, by_noise: Array) -> Bounds:
    """Distances from variances to their bounds, from squared distances by sampling and by noise.

    Sampling errors of variances are skewed to the right, and those of their logarithms are not;
    noise is symmetric. Both distances are combined as in Zou and Donner (2008), "Construction of
    confidence limits about effect measures".
    """
    size = np.maximum(variances, np.sqrt(by_sampling + by_noise) / 2)
    positive = np.where(size > 0, size, 1.0)
    relative = np.sqrt(by_sampling) / positive
    return (
        np.hypot(positive * -np.expm1(-relative), np.sqrt(by_noise)),
        np.hypot(positive * np.expm1(relative), np.sqrt(by_noise)),
    )
