"""Moments of a pool whose releases publish what clipping took away.

Each release has moments of its own, with what it lost put back. Every number is their average,
with the weights for which its error is least, so that a release that knows little of it counts
little, and the error is at most that of the best release.
Noise is independent, and so are the sampling errors of different rows; the sampling error of the
same rows is one and the same. What is not known of the bias of clipping may be alike in all
releases: its bounds are averaged, and do not shrink with their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.clipped_moments import Z95, ClippedMoments, LostMoments
from gramercy.estimators.pooling.common_units import (
    CommonUnits,
    MatrixMap,
    matrix_map,
    scales_and_shifts,
    shares_present,
)
from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_LEAST_SQUARE, _LARGEST_SQUARE = 1e-24, 1e24


def pooled_moments(
    pool: Evidence, moments_of: Callable[[Evidence], ClippedMoments | None]
) -> ClippedMoments | None:
    """The average of the moments of all releases; None if one does not publish what it lost."""
    units = CommonUnits(pool.names, pool.columns, shares_present(pool), pool.radius or 1.0)
    own: list[ClippedMoments] = []
    for each in pool.pooled:
        moments = moments_of(each.evidence)
        if moments is None:
            return None
        own.append(_in_units(moments, each.evidence, units))
    return _average(own, pool)


@dataclass(frozen=True)
class _Average:
    """Averages over releases; `weights` and all arrays have the shape (releases, ...)."""

    weights: Array
    same_rows: bool

    @classmethod
    def of(cls, pool: Evidence, noise: Array, bias: Array, sampling: Array) -> _Average:
        """Weights for which all errors together are least, and at most those of any release.

        With b the bounds on the bias as standard deviations, and D the squares of the other errors
        that differ between the releases, they are those for which w' (D + b b') w is least, with
        weights that are not negative.
        """
        bias = bias / Z95
        squares = noise**2 + (0.0 if pool.same_rows else sampling**2)
        squares = np.clip(squares, _LEAST_SQUARE, _LARGEST_SQUARE)
        bias = np.clip(bias, 0.0, math.sqrt(_LARGEST_SQUARE))
        inverse = 1 / squares
        of_bias = (inverse * bias).sum(axis=0) / (1 + (inverse * bias**2).sum(axis=0))
        wanted = np.maximum(inverse * (1 - bias * of_bias), 0.0)
        weights = wanted / wanted.sum(axis=0)
        together = (weights**2 * squares).sum(axis=0) + (weights * bias).sum(axis=0) ** 2
        alone = squares + bias**2
        best = np.arange(len(alone)).reshape(-1, *[1] * (alone.ndim - 1)) == alone.argmin(axis=0)
        return cls(np.where(together <= alone.min(axis=0), weights, best), pool.same_rows)

    def mean(self, values: Array) -> Array:
        """Of estimates, and of what may be alike in all releases."""
        mean: Array = (self.weights * values).sum(axis=0)
        return mean

    def independent(self, errors: Array) -> Array:
        """Of independent errors."""
        error: Array = np.sqrt(((self.weights * errors) ** 2).sum(axis=0))
        return error

    def sampling(self, errors: Array) -> Array:
        """Of errors by sampling."""
        return self.mean(errors) if self.same_rows else self.independent(errors)


def _average(own: Sequence[ClippedMoments], pool: Evidence) -> ClippedMoments:
    def stacked(part: Callable[[ClippedMoments], Array]) -> Array:
        return np.array([part(each) for each in own])

    mean_noise, mean_bias, mean_sampling = (
        stacked(lambda each: each.mean_noise),
        stacked(lambda each: each.mean_bias),
        stacked(lambda each: each.mean_sampling),
    )
    of_mean = _Average.of(pool, mean_noise, mean_bias, mean_sampling)

    below, above = np.moveaxis(stacked(lambda each: np.array(each.variance_shift)), 1, 0)
    variance_noise, variance_bias, variance_sampling = (
        stacked(lambda each: each.variance_noise),
        stacked(lambda each: each.variance_bias),
        stacked(lambda each: each.variance_sampling),
    )
    of_variance = _Average.of(
        pool, variance_noise, variance_bias + np.maximum(below, above), variance_sampling
    )

    noise, bias, sampling = (
        stacked(lambda each: each.correlation_noise),
        stacked(lambda each: each.correlation_bias),
        stacked(lambda each: each.correlation_sampling),
    )
    of_pair = _Average.of(pool, noise, bias, sampling)
    correlation = of_pair.mean(stacked(lambda each: each.correlation))
    np.fill_diagonal(correlation, 1.0)
    unlike = _of_other_meaning(pool)
    hidden = np.logical_or.outer(unlike, unlike)

    # Of the matrix: by the weights of the pool.
    of_matrix = np.array([each.weight for each in pool.pooled])

    def lost(part: Callable[[LostMoments], Array | float]) -> Array:
        average: Array = np.tensordot(of_matrix, [part(each.lost) for each in own], 1)
        return average

    return ClippedMoments(
        mean=of_mean.mean(stacked(lambda each: each.mean)),
        mean_noise=of_mean.independent(mean_noise),
        mean_bias=of_mean.mean(mean_bias),
        variance=of_variance.mean(stacked(lambda each: each.variance)),
        variance_noise=of_variance.independent(variance_noise),
        variance_bias=of_variance.mean(variance_bias),
        variance_shift=(of_variance.mean(below), of_variance.mean(above)),
        correlation=correlation,
        correlation_noise=np.where(hidden, np.inf, of_pair.independent(noise)),
        correlation_bias=of_pair.mean(bias),
        correlation_spread=of_pair.mean(stacked(lambda each: each.correlation_spread)),
        correlation_missing=of_pair.mean(stacked(lambda each: each.correlation_missing)),
        mean_sampling=of_mean.sampling(mean_sampling),
        variance_sampling=of_variance.sampling(variance_sampling),
        correlation_sampling=of_pair.sampling(sampling),
        lost=LostMoments(
            float(lost(lambda each: each.weight)),
            lost(lambda each: each.first),
            lost(lambda each: each.second),
            EntryCovariance(
                tuple(
                    product
                    for weight, each in zip(of_matrix, own, strict=True)
                    for product in each.lost.errors.scaled(
                        np.full(len(each.mean), weight**0.25)
                    ).products
                )
            ),
            lost(lambda each: each.unseen),
        ),
    )


def _of_other_meaning(pool: Evidence) -> NDArray[np.bool_]:
    """Columns of which only some releases publish no more than which cells differ from a value."""
    signs = [set(each.evidence.signs) for each in pool.pooled]
    some, all_of_them = set.union(*signs), set.intersection(*signs)
    return np.array([name in some - all_of_them for name in pool.names[1:]])


def _in_units(moments: ClippedMoments, release: Evidence, units: CommonUnits) -> ClippedMoments:
    """The moments of a release in the units, and the order of columns, of the pool."""
    to = matrix_map(release, units)
    scale, shift = (each[1:] for each in scales_and_shifts(release, units, to.order))
    at = to.order[1:] - 1
    pairs, square = np.ix_(at, at), scale**2
    below, above = moments.variance_shift
    return replace(
        moments,
        mean=scale * moments.mean[at] + shift,
        mean_noise=scale * moments.mean_noise[at],
        mean_bias=scale * moments.mean_bias[at],
        variance=square * moments.variance[at],
        variance_noise=square * moments.variance_noise[at],
        variance_bias=square * moments.variance_bias[at],
        variance_shift=(square * below[at], square * above[at]),
        correlation=moments.correlation[pairs],
        correlation_noise=moments.correlation_noise[pairs],
        correlation_bias=moments.correlation_bias[pairs],
        correlation_spread=moments.correlation_spread[pairs],
        correlation_missing=moments.correlation_missing[pairs],
        mean_sampling=scale * moments.mean_sampling[at],
        variance_sampling=square * moments.variance_sampling[at],
        correlation_sampling=moments.correlation_sampling[pairs],
        lost=_lost(moments.lost, to, (units.radius / (release.radius or 1.0)) ** 2),
    )


def _lost(lost: LostMoments, to: MatrixMap, square: float) -> LostMoments:
    """The same; `square`: of the ratio of the radii, by whose squares the matrices are divided."""
    matrix = np.block(
        [[np.array([[lost.weight]]), lost.first[None]], [lost.first[:, None], lost.second]]
    )
    mapped = square * to(matrix)
    factor = to.linear[np.arange(1, len(matrix)), to.order[1:]]
    errors = lost.errors.transformed(np.eye(len(factor))[to.order[1:] - 1])
    return LostMoments(
        float(mapped[0, 0]),
        mapped[0, 1:],
        mapped[1:, 1:],
        errors.scaled(math.sqrt(square) * factor),
        square * factor**2 * lost.unseen[to.order[1:] - 1],
    )
