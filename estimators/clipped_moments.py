"""Moments of a table and their errors, with what clipping took away put back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.column_tails import ColumnTails
from gramercy.estimators.level_moments import LevelMoments
from gramercy.estimators.uncertainty.entry_covariance import EntryCovariance

Array = NDArray[np.float64]

Z95 = 1.96
_UNSEEN = 0.25  # standard deviation of what unseen rows add, by its upper bound
_FLOOR = 2.0  # standard deviations of the noise that a variance must exceed


@dataclass(frozen=True)
class LostMoments:
    """What clipping took from first and second moments, in scaled units; p columns."""

    weight: float  # of all rows
    first: Array
    second: Array
    errors: EntryCovariance  # of `second`, by noise
    unseen: Array  # second moments that no matrix has; shape (p,)

    def times(self, factor: float) -> LostMoments:
        """The moments in another unit."""
        return LostMoments(
            factor * self.weight,
            factor * self.first,
            factor * self.second,
            self.errors.scaled(np.full(len(self.first), math.sqrt(factor))),
            factor * self.unseen,
        )

    @property
    def bias(self) -> Array:
        """Half widths of intervals of 95 % of `second`, without rows that are not seen."""
        return Z95 * np.sqrt(np.maximum(self.errors.variance(len(self.first)), 0.0))

    def all_errors(self, moment: Array) -> EntryCovariance:
        """Errors of `second` by noise, and by rows that are not seen, whose shape may be any.

        These are few, and like those with this second moment.
        """
        share = self.unseen / np.maximum(np.diag(moment), 1e-300)
        root = np.sqrt(np.clip(share, 0.0, 1.0) * _UNSEEN)
        unseen = moment * np.outer(root, root)
        return EntryCovariance((*self.errors.products, (unseen, unseen)))

    def of(self, columns: Sequence[int]) -> LostMoments:
        """Of some of the columns."""
        return LostMoments(
            self.weight,
            self.first[columns],
            self.second[np.ix_(columns, columns)],
            self.errors.transformed(np.eye(len(self.first))[columns]),
            self.unseen[columns],
        )


@dataclass(frozen=True)
class ClippedMoments:
    """Moments of a table and their errors by noise and by clipping; p columns, scaled units."""

    mean: Array
    mean_noise: Array
    mean_bias: Array  # half width of an interval of 95 %
    variance: Array
    variance_noise: Array
    # half width of an interval of 95 %; with the distances of its ends from `variance`
    variance_bias: Array
    variance_shift: tuple[Array, Array]
    correlation: Array
    correlation_noise: Array
    correlation_bias: Array  # half width of an interval of 95 %
    correlation_spread: Array  # standard deviation of the bias
    # at most by rows in which only one cell of a pair is missing, and which are unlike the others
    correlation_missing: Array
    # standard deviations by sampling, of rows with the kurtosis of the published histograms
    mean_sampling: Array
    variance_sampling: Array
    correlation_sampling: Array
    lost: LostMoments  # in the units of the released matrix, times the squared radius

    @property
    def known(self) -> NDArray[np.bool_]:
        """The columns whose variance exceeds the noise, shape (p,)."""
        below, _ = self.variance_shift
        clear: NDArray[np.bool_] = self.variance - below > _FLOOR * self.variance_noise
        return clear

    def with_levels(self, levels: LevelMoments) -> ClippedMoments:
        """The moments with the correlations of levels of one column, which shares determine."""
        exclusive, bias = levels.exclusive, levels.correlation_bias
        return replace(
            self,
            correlation=np.where(exclusive, levels.correlation, self.correlation),
            correlation_noise=np.where(exclusive, levels.correlation_noise, self.correlation_noise),
            correlation_bias=np.where(exclusive, bias, self.correlation_bias),
            correlation_spread=np.where(exclusive, bias / Z95, self.correlation_spread),
        )

    def with_tails(self, tails: ColumnTails) -> ClippedMoments:
        """The moments of the cells before they are clamped.

        Where the histograms show more than the matrices could have, both are possible.
        """
        below, above = self.variance_shift
        variance = self.variance + tails.square
        above = above + tails.square_most - tails.square
        unlike = tails.far_least > variance + above + self.variance_bias + Z95 * self.variance_noise
        kept = np.sqrt(self.variance / variance)
        weaker = np.abs(self.correlation) * (1 - np.outer(kept, kept))
        rest = np.sqrt(variance / (variance + np.where(unlike, tails.far_most, 0.0)))
        other = (1 + np.abs(self.correlation)) * (1 - np.outer(rest, rest))
        return replace(
            self,
            mean=self.mean + tails.mean,
            mean_bias=self.mean_bias + tails.mean_most + np.where(unlike, tails.far_mean_most, 0.0),
            variance=variance,
            variance_shift=(
                below + tails.square,
                np.maximum(above, np.where(unlike, tails.far_most, 0.0)),
            ),
            correlation_bias=np.hypot(np.hypot(self.correlation_bias, weaker), other),
        )
