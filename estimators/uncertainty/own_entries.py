"""Means, standard deviations and covariances in the columns' own units, with their errors.

With five folds or more, standard errors are those of the jackknife, for rows of any law. Otherwise
noise errors follow the law of the noise (see `own_units.OwnUnits.noise`), and sampling errors
are those of Gaussian rows, of whose cells a share o_i is present, independently of everything:

n Var(m_i) = C_ii / o_i,   n Var(C_ii) = 2 C_ii^2 / o_i,
n Var(C_ij) = (C_ii C_jj + 2 C_ij^2) / (o_i o_j) - C_ij^2 (1 / o_i + 1 / o_j - 1).

Neither contains what clipping does to the rows, nor the noise in the published shares o_i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.own_units import OwnMoments, OwnUnits, weight_lost
from gramercy.estimators.uncertainty.entries import Bounds, Entries, reach_of_matrix
from gramercy.estimators.uncertainty.jackknife import (
    describe_sampling,
    jackknife,
    squared_reaches,
)
from gramercy.estimators.uncertainty.tails import critical_value, gamma_shape, noise_share
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]


def own_means(evidence: Evidence, units: OwnUnits) -> Entries:
    """Means of the q columns without the intercept, in their units; arrays of shape (q,)."""
    variances = np.diag(units.moments(evidence.repaired).covariance)
    sampling = np.sqrt(np.maximum(variances, 0.0) / units.present / max(evidence.rows, 1.0))
    shape = gamma_shape(evidence.law, _linear(evidence, units))[0, 1:]
    return _entries(evidence, units, lambda moments: moments.mean, sampling, shape)


def own_covariance(evidence: Evidence, units: OwnUnits) -> Entries:
    """Covariances about the means in the columns' units; arrays of shape (q, q)."""
    c, o = units.moments(evidence.repaired).covariance, units.present
    variances = np.maximum(np.diag(c), 0.0)
    pairs = (np.outer(variances, variances) + 2 * c**2) / np.outer(o, o)
    pairs -= c**2 * (np.add.outer(1 / o, 1 / o) - 1)
    np.fill_diagonal(pairs, 2 * variances**2 / o)
    sampling = np.sqrt(np.maximum(pairs, 0.0) / max(evidence.rows, 1.0))
    shape = gamma_shape(evidence.law, _linear(evidence, units))[1:, 1:]
    return _entries(evidence, units, lambda moments: moments.covariance, sampling, shape)


def own_deviations(evidence: Evidence, units: OwnUnits) -> Entries:
    """Standard deviations in the columns' units: roots of variances; arrays of shape (q,).

    Not estimable where the variance is within the noise.
    """
    variances = own_covariance(evidence, units)
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
    units: OwnUnits,
    part: Callable[[OwnMoments], Array],
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


def _linear(evidence: Evidence, units: OwnUnits) -> Array:
    """L of the first-order errors L E L^T, apart from the weight S_00; the intercept first."""
    moments = units.moments(evidence.raw)
    linear = np.diag(np.append(1.0, 1 / units.present))
    linear[1:, 0] = -(moments.mean - units.centre) / units.scale
    return linear
