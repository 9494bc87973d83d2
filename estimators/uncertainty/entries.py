"""Estimates, standard errors and intervals for every entry of a symmetric matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.uncertainty.entry_errors import (
    CorrelationKind,
    MomentErrors,
    correlation_errors,
    moment_errors,
    raw_moment_errors,
)
from gramercy.estimators.uncertainty.tails import critical_value, gamma_shape
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw

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
    """

    estimate: Array
    sampling_error: Array
    noise_error: Array
    estimable: NDArray[np.bool_]
    interval: Callable[[float], Bounds]

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
    return _moment_entries(raw_moment_errors(evidence), evidence.law)


def covariance(evidence: Evidence) -> Entries:
    """Second moments about the means, if the first column is the intercept; q = p - 1.

    Otherwise they are about zero, as in `second_moment`.
    """
    return _moment_entries(moment_errors(evidence), evidence.law)


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
    estimate = np.where(diagonal, 1.0, errors.estimate)
    return Entries(estimate, sampling_error, noise_error, errors.estimable | diagonal, interval)


def _moment_entries(errors: MomentErrors, law: NoiseLaw) -> Entries:
    by_sampling, by_noise = errors.variances()
    variance, estimable = by_sampling + by_noise, np.full(by_noise.shape, not errors.weight_lost)
    share = np.divide(by_noise, variance, out=np.zeros_like(by_noise), where=variance > 0)
    shape = gamma_shape(law, errors.linear)

    def interval(level: float) -> Bounds:
        reach = critical_value(1 - level, share, shape) * np.sqrt(variance)
        lower, upper = (np.where(estimable, errors.matrix + s * reach, s) for s in (-1.0, 1.0))
        # No row is longer than 1, and no variance is negative.
        diagonal = estimable & np.eye(len(estimable), dtype=bool)
        return np.where(diagonal, np.maximum(lower, 0.0), lower), np.where(
            diagonal, np.maximum(upper, 0.0), upper
        )

    return Entries(errors.matrix, np.sqrt(by_sampling), np.sqrt(by_noise), estimable, interval)
