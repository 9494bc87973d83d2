"""Seeded releases of samples of a population, with folds and without, and their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.intervals.populations import Population
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.entries import (
    CorrelationKind,
    correlation,
    table_covariance,
    table_means,
)
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]
LEVEL = 0.95
FOLDS = (1, 10, 20)  # 1: no folds
PARTS = 20  # of the rows: a multiple of all numbers of folds


@dataclass(frozen=True)
class Estimated:
    """The entries of one quantity in one release; every array has shape (k,).

    Parameters
    ----------
    estimate, lower, upper
        Estimates, and their intervals.
    known
        Whether the interval is bounded, and for correlations shorter than [-1, 1].
    """

    estimate: Array
    lower: Array
    upper: Array
    known: NDArray[np.bool_]


def release(
    population: Population, sums: Array, n: int, folds: int, rng: np.random.Generator
) -> Evidence:
    """A release of n rows, whose sums of outer products are given in parts; `folds` may be one.

    Every fold has the noise that a release without folds has on the sum of all rows.
    """
    q, size = population.p + 1, n / folds
    law = NoiseLaw(
        family="gaussian-isotropic",
        sd_diagonal=math.sqrt(2) * population.noise,
        sd_off_diagonal=population.noise,
    )
    half = rng.normal(size=(folds, q, q)) * (population.noise / math.sqrt(2))
    moments = sums.reshape(folds, -1, q, q).sum(axis=1) + half + half.transpose(0, 2, 1)
    moments /= size
    raw, whole = moments.mean(axis=0), law.summed(folds).divided_by(n)
    return Evidence(
        raw,
        denoise(raw, whole, rows=float(n), unit=False),
        whole,
        float(n),
        columns=(None, *(_column(str(j)) for j in range(population.p))),
        unit=False,
        folds=tuple(Fold(moment, size) for moment in moments) if folds > 1 else (),
        radius=population.radius,
    )


def _column(name: str) -> ColumnFacts:
    """A column whose own units are the scaled ones: coverage is the same in all units."""
    return ColumnFacts(name=name, lower=-1.0, upper=1.0, centre=0.0, scale=1.0)


def intervals(evidence: Evidence) -> dict[str, Estimated]:
    """The intervals of all quantities."""
    units = table_units(evidence)
    assert units is not None  # rows are clipped, with an intercept
    means, covariance = table_means(evidence, units), table_covariance(evidence, units)
    lower, upper = (np.diag(bound) for bound in covariance.interval(LEVEL))
    variances = np.diag(covariance.estimate), lower, upper, np.diag(covariance.estimable)
    return {
        "mean": Estimated(means.estimate, *means.interval(LEVEL), means.estimable),
        "variance": Estimated(*variances),
        "correlation": _pairs(evidence, "correlation"),
        "partial-correlation": _pairs(evidence, "partial-correlation"),
    }


def _pairs(evidence: Evidence, of: CorrelationKind) -> Estimated:
    entries = correlation(evidence, of)
    pairs = np.triu_indices(len(entries.estimate), 1)
    lower, upper = (bound[pairs] for bound in entries.interval(LEVEL))
    known = entries.estimable[pairs] & ((lower > -1) | (upper < 1))
    return Estimated(entries.estimate[pairs], lower, upper, known)
