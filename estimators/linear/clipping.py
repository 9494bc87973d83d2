"""What clipping does to a regression, where a release publishes what clipping took away.

The coefficients are those of the clipped rows. With what they lost added to the moments, they move
by D, which bounds the bias of clipping as far as it is published. The lost second moments L have
errors themselves, with half widths H of 95 %. By the scores L e, with the coefficients e = (1, -b)
of the residual, they move the coefficients by M L e, where M is the inverse of C_xx. So the error
of coefficient j by noise has the variance

sum over x of M_jx^2 sum over i of (H_xi / 1.96)^2 e_i^2

besides that of the released matrix.

A column of which clipping hides the spread, or of which only the sign is published, has no
coefficient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.clipped_moments import Z95, LostMoments
from gramercy.estimators.linear.design import Design
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_LARGEST_RATIO = 3.0  # of the bounds of a standard deviation, by clipping alone


@dataclass(frozen=True)
class Clipping:
    """What clipping took from the outcome, first, and the k regressors; shape (1 + k,) each."""

    lost: LostMoments
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
        lost = moments.lost
        # Rows with one cell of a pair may be unlike those with both.
        present = np.array(evidence.present[1:] or [1.0] * len(moments.mean))
        deviations = np.sqrt(moments.variance) * present * math.sqrt(evidence.rows_each)
        unlike = moments.correlation_missing * np.outer(deviations, deviations)
        lost = replace(lost, bias=np.hypot(lost.bias, unlike))
        return cls(
            lost.of(columns).times(1 / evidence.rows_each),
            np.array([evidence.names[index] in evidence.signs for index in design.columns]),
            known & (low * _LARGEST_RATIO**2 < high)[columns],
            np.where(known, moments.variance[columns], np.nan),
        )

    def errors(self, inverse: Array, coefficients: Array) -> Array:
        """Standard errors of the coefficients by those of the lost moments, in scaled units.

        `inverse`, `coefficients`: of the fit to the moments with the lost ones. Returns shape (k,).
        """
        residual = np.append(1.0, -coefficients)
        scores = ((self.lost.bias / Z95) ** 2 @ residual**2)[1:]
        errors: Array = np.sqrt(inverse**2 @ scores)
        return errors
