"""Moments of a release in scaled units, and the noise in its correlations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.accuracy.row_simulation import as_correlation
from gramercy.estimators.moments import schur_complement
from gramercy.estimators.own_units import own_units
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]

_KNOWN = 2.0  # standard deviations of the noise that a variance must exceed
_MOST_NOISE = 0.3  # largest noise of a correlation that is not lost
_LEAST_WEIGHT = 5.0  # standard deviations of the noise that the intercept's entry must exceed
_ASSUMED_MISSING = 0.05  # share of missing cells where it is unknown


@dataclass(frozen=True)
class ScaledMoments:
    """Moments of a release in scaled units, without the intercept; q columns.

    Parameters
    ----------
    mean
        Weighted means; zero without an intercept. Shape (q,).
    released, noise
        Covariance of the matrix as released, or its second moment without an intercept, with the
        standard deviation of its noise. Shape (q, q).
    denoised
        The same of the denoised matrix.
    facts
        The columns; empty if unknown.
    present
        Share of rows with a value, shape (q,).
    intercept
        Whether moments are about the means.
    """

    mean: Array
    released: Array
    noise: Array
    denoised: Array
    facts: tuple[ColumnFacts | LevelsFacts | None, ...]
    present: Array
    intercept: bool

    @classmethod
    def of(cls, evidence: Evidence) -> ScaledMoments | None:
        raw, repaired, sd = evidence.raw, evidence.repaired, evidence.deviations
        has_intercept = bool(evidence.columns) and evidence.columns[0] is None
        first = int(has_intercept)
        facts, q = evidence.columns[first:], len(raw) - first
        present = np.array(evidence.present[first:] or [1.0] * q)
        if not has_intercept:
            return cls(np.zeros(q), raw, sd, repaired, facts, present, intercept=False)
        if min(raw[0, 0], repaired[0, 0]) <= _LEAST_WEIGHT * sd[0, 0]:
            return None
        own = own_units(evidence)
        if own is None:
            released, denoised = (schur_complement(each) / each[0, 0] for each in (raw, repaired))
            mean = repaired[0, 1:] / repaired[0, 0]
        else:
            scales = np.outer(own.scale, own.scale)
            released, denoised = (
                np.nan_to_num(own.moments(each).covariance / scales) for each in (raw, repaired)
            )
            mean = np.nan_to_num((own.moments(repaired).mean - own.centre) / own.scale)
        noise = _noise_about_means(sd / raw[0, 0], mean, np.maximum(present, 1e-6))
        return cls(mean, released, noise, denoised, facts, present, intercept=True)

    @property
    def variance(self) -> Array:
        """Variances, denoised where that leaves something; shape (q,)."""
        denoised = np.diag(self.denoised)
        variance: Array = np.where(denoised > 0, denoised, np.diag(self.released))
        return variance

    def correlation_noise(self) -> Array:
        """Noise in every correlation; infinite where it is lost, zero on the diagonal."""
        variance, sd = np.diag(self.released), np.diag(self.noise)
        known = variance > _KNOWN * sd
        deviation = np.sqrt(np.where(known, variance, 1.0))
        relative = np.where(known, sd / deviation**2, 0.0) ** 2 / 4
        squares = (self.noise / np.outer(deviation, deviation)) ** 2
        squares += as_correlation(self.denoised) ** 2 * np.add.outer(relative, relative)
        noise: Array = np.sqrt(squares)
        noise[(noise > _MOST_NOISE) | ~np.logical_and.outer(known, known)] = np.inf
        np.fill_diagonal(noise, np.where(known, 0.0, np.inf))
        return noise

    def missing_unknown(self) -> Array:
        """Change of the correlations if a few cells of every numeric column are missing."""
        levels = [isinstance(each, LevelsFacts) for each in self.facts] or [False] * len(self.mean)
        root = np.sqrt(np.where(levels, 1.0, 1 - _ASSUMED_MISSING))
        change: Array = as_correlation(self.denoised) * (np.outer(root, root) - 1)
        np.fill_diagonal(change, 0.0)
        return change

    def jointly_missing(self) -> Array:
        """Change of the correlations if cells are missing in the same rows, not independently."""
        deviation = np.sqrt(np.maximum(self.variance, 1e-300))
        product = (self.denoised + np.outer(self.mean, self.mean)) / np.outer(deviation, deviation)
        never = 1 - np.maximum.outer(self.present, self.present)
        change: Array = np.clip(never * product, -2.0, 2.0)
        np.fill_diagonal(change, 0.0)
        return change


def _noise_about_means(sd: Array, mean: Array, present: Array) -> Array:
    """Standard deviation of the noise in S_ij - S_0i S_0j / S_00, to first order.

    E_ij - m_j E_0i - m_i E_0j + m_i m_j E_00, where missing cells divide S_ij by o_i o_j, S_ii by
    o_i and m_i by o_i. The error of S_00 as a divisor of all is left out: correlations do not have
    it.
    """
    divisors = np.outer(present, present)
    np.fill_diagonal(divisors, present)
    squares = sd**2
    linear = np.outer(squares[0, 1:] / present**2, mean**2)
    linear += linear.T
    np.fill_diagonal(linear, 2 * np.diag(linear))  # there both terms are the same error
    variance = squares[1:, 1:] / divisors**2 + linear + np.outer(mean, mean) ** 2 * squares[0, 0]
    noise: Array = np.sqrt(variance)
    return noise
