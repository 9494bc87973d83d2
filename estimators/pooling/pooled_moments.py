"""Moments of a pool whose releases publish what clipping took away.

Each release has moments of its own, with what it lost put back, and they are averaged by the
weights of the pool. Noise is independent, and so are the sampling errors of different rows; the
sampling error of the same rows is one and the same. What is not known of the bias of clipping may
be alike in all releases, so its bounds are averaged and do not shrink with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.pooling.common_units import (
    CommonUnits,
    MatrixMap,
    matrix_map,
    scales_and_shifts,
    shares_present,
)
from gramercy.schemas.evidence import Evidence

if TYPE_CHECKING:
    from gramercy.estimators.lost_moments import ClippedMoments, LostMoments

Array = NDArray[np.float64]


def pooled_moments(
    pool: Evidence, moments_of: Callable[[Evidence], ClippedMoments | None]
) -> ClippedMoments | None:
    """The average of the moments of all releases; None if one does not publish what it lost."""
    units = CommonUnits(pool.names, pool.columns, shares_present(pool), pool.radius or 1.0)
    weights: list[float] = []
    own: list[ClippedMoments] = []
    for each in pool.pooled:
        moments = moments_of(each.evidence)
        if moments is None:
            return None
        weights.append(each.weight)
        own.append(_in_units(moments, each.evidence, units))
    return _average(own, weights, pool)


def _average(
    own: Sequence[ClippedMoments], weights: Sequence[float], pool: Evidence
) -> ClippedMoments:
    def mean(part: Callable[[ClippedMoments], Array]) -> Array:
        return _sum([w * part(each) for w, each in zip(weights, own, strict=True)])

    def independent(part: Callable[[ClippedMoments], Array]) -> Array:
        return np.sqrt(_sum([(w * part(each)) ** 2 for w, each in zip(weights, own, strict=True)]))

    sampled = mean if pool.same_rows else independent
    means = mean(lambda each: each.mean)

    def covariance(each: ClippedMoments) -> Array:
        deviation, apart = np.sqrt(each.variance), each.mean - means
        between = np.zeros_like(each.correlation) if pool.same_rows else np.outer(apart, apart)
        return each.correlation * np.outer(deviation, deviation) + between

    together = mean(covariance)
    variance = np.diag(together)
    correlation = np.clip(together / np.sqrt(np.outer(variance, variance)), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    unlike = _of_other_meaning(pool)
    return replace(
        own[0],
        mean=means,
        mean_noise=independent(lambda each: each.mean_noise),
        mean_bias=mean(lambda each: each.mean_bias),
        variance=variance,
        variance_noise=independent(lambda each: each.variance_noise),
        variance_bias=mean(lambda each: each.variance_bias),
        variance_shift=(
            mean(lambda each: each.variance_shift[0]),
            mean(lambda each: each.variance_shift[1]),
        ),
        correlation=correlation,
        correlation_noise=np.where(
            np.logical_or.outer(unlike, unlike),
            np.inf,
            independent(lambda each: each.correlation_noise),
        ),
        correlation_bias=mean(lambda each: each.correlation_bias),
        correlation_spread=mean(lambda each: each.correlation_spread),
        correlation_missing=mean(lambda each: each.correlation_missing),
        mean_sampling=sampled(lambda each: each.mean_sampling),
        variance_sampling=sampled(lambda each: each.variance_sampling),
        correlation_sampling=sampled(lambda each: each.correlation_sampling),
        lost=replace(
            own[0].lost,
            weight=float(mean(lambda each: np.array(each.lost.weight))),
            first=mean(lambda each: each.lost.first),
            second=mean(lambda each: each.lost.second),
            bias=mean(lambda each: each.lost.bias),
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
    at = np.ix_(to.order[1:] - 1, to.order[1:] - 1)
    bias = square * np.outer(factor, factor) * lost.bias[at]
    return replace(
        lost, weight=float(mapped[0, 0]), first=mapped[0, 1:], second=mapped[1:, 1:], bias=bias
    )


def _sum(parts: Sequence[Array]) -> Array:
    total: Array = np.sum(parts, axis=0)
    return total
