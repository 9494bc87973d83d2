"""What clipping does to a regression, where a release publishes what clipping took away.

The coefficients are those of the clipped rows. With what they lost added to the moments, they move
by D, which bounds the bias of clipping as far as it is published. The lost second moments L have
errors themselves. By the scores L e, with the coefficients e = (1, -b) of the residual, they move
the coefficients by M L e, where M is the inverse of C_xx. So the error of the coefficients by noise
has the covariance M Cov(L e) M besides that of the released matrix.

A column of which clipping hides the spread, or of which only the sign is published, has no
coefficient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.clipped_moments import Z95, LostMoments
from gramercy.estimators.linear.design import Design
from gramercy.estimators.linear.filtered_fit import FilteredFit
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.uncertainty.entry_covariance import noise_of_scores
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_LARGEST_RATIO = 3.0  # of the bounds of a standard deviation, by clipping alone


@dataclass(frozen=True)
class Clipping:
    """What clipping took from the outcome, first, and the k regressors; shape (1 + k,) each."""

    lost: LostMoments
    # half widths of 95 % of the lost second moments by rows with one cell of a pair
    unlike: Array
    signs: NDArray[np.bool_]  # columns of which only the sign is published
    hidden: NDArray[np.bool_]  # columns of which clipping hides the spread
    variance: Array  # in scaled units, with what clipping took away; NaN within the noise

    @classmethod
    def of(cls, evidence: Evidence, design: Design) -> Clipping | None:
        """Of the columns of a regression; None if the release does not publish what was lost."""
        moments = clipped_moments(evidence)
        if moments is None:
            return None
        columns = [index - 1 for index in design.columns]  # without the intercept
        (below, above), bias = moments.variance_shift, moments.variance_bias
        low, high = moments.variance - below - bias, moments.variance + above + bias
        known = moments.known[columns]
        # Rows with one cell of a pair may be unlike those with both.
        present = np.array(evidence.present[1:] or [1.0] * len(moments.mean))
        deviations = np.sqrt(moments.variance) * present * math.sqrt(evidence.rows_each)
        unlike = moments.correlation_missing * np.outer(deviations, deviations)
        return cls(
            moments.lost.of(columns).times(1 / evidence.rows_each),
            unlike[np.ix_(columns, columns)] / evidence.rows_each,
            np.array([evidence.names[index] in evidence.signs for index in design.columns]),
            known & (low * _LARGEST_RATIO**2 < high)[columns],
            np.where(known, moments.variance[columns], np.nan),
        )

    def errors(self, fit: FilteredFit, spread: float) -> Array:
        """Covariance of the coefficients by the errors of the lost moments, in scaled units.

        `fit`: to the moments with the lost ones. `spread`: variance of the residuals. Returns shape
        (k, k).
        """
        residual = np.append(1.0, -fit.coefficients)
        moment = np.zeros((len(residual), len(residual)))
        moment[1:, 1:] = fit.positive
        moment[0, 1:] = moment[1:, 0] = fit.positive @ fit.coefficients
        moment[0, 0] = spread + fit.coefficients @ moment[1:, 0]
        scores = noise_of_scores(self.lost.all_errors(moment), residual)
        scores += np.diag((self.unlike / Z95) ** 2 @ residual**2)
        covariance: Array = fit.inverse @ scores[1:, 1:] @ fit.inverse
        return covariance
