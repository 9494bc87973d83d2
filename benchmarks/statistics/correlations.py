"""Correlations of a table, and those that a noisy matrix gives."""

from __future__ import annotations

import numpy as np

from benchmarks.arrays import Array
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.table_units import TableUnits
from gramercy.estimators.uncertainty.entries import correlation
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw

_FEW = 20  # pairs of cells; fewer give no correlation to compare with


def pairwise(cells: Array) -> Array:
    """Pearson correlations of the rows in which both cells are present.

    NaN for constant columns, and for pairs of columns that are present in few rows together.
    """
    deviation = np.nanstd(cells, axis=0)
    constant = deviation <= 1e-12 * np.abs(np.nanmean(cells, axis=0))
    standard = (cells - np.nanmean(cells, axis=0)) / np.where(constant, 1.0, deviation)
    there = (~np.isnan(cells)).astype(float)
    filled = np.where(there > 0, standard, 0.0)
    pairs = np.maximum(there.T @ there, 1.0)
    mean = filled.T @ there / pairs  # of column i where column j is present
    covariance = filled.T @ filled / pairs - mean * mean.T
    variance = (filled * filled).T @ there / pairs - mean**2
    with np.errstate(invalid="ignore", divide="ignore"):
        result: Array = covariance / np.sqrt(variance * variance.T)
    lost = np.logical_or.outer(constant, constant) | (pairs < _FEW)
    return np.where(lost, np.nan, result)


def noisy(moment: Array, sd: float, rng: np.random.Generator) -> Array:
    """A second moment with Gaussian noise: `sd` off the diagonal, sqrt(2) `sd` on it."""
    half = rng.normal(size=moment.shape) * (sd / np.sqrt(2))
    result: Array = moment + half + half.T
    return result


def denoised(moment: Array, sd: float) -> Array:
    """The denoised form of a noisy second moment of rows in the unit ball."""
    deviation = float(np.sqrt(2) * sd)
    law = NoiseLaw(family="gaussian-isotropic", sd_diagonal=deviation, sd_off_diagonal=sd)
    return denoise(moment, law)


def about_means(moment: Array, present: Array) -> Array:
    """Correlations about means from a moment with an intercept, as releases give them."""
    p = len(present)
    units = TableUnits(tuple(map(str, range(p))), np.zeros(p), np.ones(p), present)
    return usable(units.moments(moment).correlation)


def published(release: Evidence) -> Array:
    """Correlations about means as a release gives them."""
    entries = correlation(release, "correlation")
    return usable(np.where(entries.estimable, entries.estimate, np.nan))


def about_zero(moment: Array) -> Array:
    """Correlations from a moment without an intercept."""
    deviation = np.sqrt(np.where(np.diag(moment) > 0, np.diag(moment), np.nan))
    return usable(moment / np.outer(deviation, deviation))


def usable(correlations: Array) -> Array:
    """Correlations within [-1, 1]; unknown ones are zero."""
    return np.clip(np.nan_to_num(correlations), -1.0, 1.0)


def error(estimate: Array, truth: Array) -> float:
    """Root mean square error over the pairs of columns whose correlation is defined."""
    difference = (estimate - truth)[np.triu_indices(len(truth), 1)]
    return float(np.sqrt(np.nanmean(difference**2)))
