"""What is known of every entry of a symmetric matrix: an estimate, its errors, intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.uncertainty.entry_errors import Moments, Of, moments, of_all, related
from gramercy.estimators.uncertainty.tails import critical, shape_of
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
    sampling, noise
        Standard deviations of their errors, by sampling and by the noise of the release.
    known
        Where anything is known.
    interval
        Lower and upper bounds, of which a stated share hold the truth.
    """

    estimate: Array
    sampling: Array
    noise: Array
    known: NDArray[np.bool_]
    interval: Callable[[float], Bounds]

    @property
    def standard_error(self) -> Array:
        """Of both errors together."""
        found: Array = np.hypot(self.sampling, self.noise)
        return found


EntriesOf = Literal["second moment", "covariance", "correlation", "partial-correlation"]


def entries(evidence: Evidence, of: EntriesOf) -> Entries:
    """The one that is named."""
    if of == "second moment":
        return second_moment(evidence)
    return covariance(evidence) if of == "covariance" else correlation(evidence, of)


def second_moment(evidence: Evidence) -> Entries:
    """Of the second moment about zero; q = p."""
    return _of_moments(of_all(evidence), evidence.law)


def covariance(evidence: Evidence) -> Entries:
    """Of second moments about the means, where the first column is that of ones: q = p - 1.

    About zero otherwise, as `second_moment`.
    """
    return _of_moments(moments(evidence), evidence.law)


def correlation(evidence: Evidence, of: Of = "correlation") -> Entries:
    """Of correlations or partial correlations, about the means as `covariance`.

    The diagonal is 1, without error.
    """
    found = related(evidence, of)
    one = np.eye(len(found.known), dtype=bool)

    def interval(level: float) -> Bounds:
        lower, upper = found.interval(level)
        return np.where(one, 1.0, lower), np.where(one, 1.0, upper)

    sampled, noisy = (np.sqrt(np.where(one, 0.0, v)) for v in found.variance(found.estimate))
    estimate = np.where(one, 1.0, found.estimate)
    return Entries(estimate, sampled, noisy, found.known | one, interval)


def _of_moments(found: Moments, law: NoiseLaw) -> Entries:
    sampled, noisy = found.variances()
    variance, known = sampled + noisy, np.full(sampled.shape, not found.lost)
    share = np.divide(noisy, variance, out=np.zeros_like(noisy), where=variance > 0)
    shape = shape_of(law, found.linear)

    def interval(level: float) -> Bounds:
        reach = critical(1 - level, share, shape) * np.sqrt(variance)
        lower, upper = (np.where(known, found.matrix + s * reach, s) for s in (-1.0, 1.0))
        # A row is no longer than 1, and its power is not negative.
        own = known & np.eye(len(known), dtype=bool)
        return np.where(own, np.maximum(lower, 0.0), lower), np.where(
            own, np.maximum(upper, 0.0), upper
        )

    return Entries(found.matrix, np.sqrt(sampled), np.sqrt(noisy), known, interval)
