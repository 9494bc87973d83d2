"""From the units of the moments of a regression to the columns' own units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.linear.design import Design
from gramercy.estimators.linear.moments import Moments
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts

Array = NDArray[np.float64]

_CLEAR = 2.0  # standard deviations of the noise that a variance must exceed to be known


@dataclass(frozen=True)
class Units:
    """Linear maps of coefficients and of their errors.

    Moments are those of the columns o_j z_j, where z = (x - centre) / scale. A unit of o_j z_j is
    scale / o_j units of the table.

    Parameters
    ----------
    centre, unit
        Of the outcome, first, and the k regressors; shape (1 + k,).
    means
        In the table's units, shape (1 + k,).
    weight
        Mean weight of the rows.
    """

    centre: Array
    unit: Array
    means: Array
    weight: float

    @classmethod
    def of(cls, evidence: Evidence, design: Design, moments: Moments, present: Array) -> Units:
        """The units of a release."""
        facts = [evidence.columns[i] for i in design.columns]
        numeric = [each if isinstance(each, ColumnFacts) else None for each in facts]
        centre = np.array([0.0 if each is None else each.centre for each in numeric])
        scale = np.array([1.0 if each is None else each.scale for each in numeric])
        unit = scale / present
        return cls(centre, unit, centre + unit * moments.mean, moments.weight)

    @property
    def outcome_scale(self) -> float:
        """Units of the table in a unit of the outcome's moments."""
        return float(self.unit[0])

    @property
    def slopes(self) -> Array:
        """Factors of the k coefficients."""
        factors: Array = self.unit[0] / self.unit[1:]
        return factors

    def coefficients(self, coefficients: Array, moments: Moments) -> Array:
        """The intercept and the coefficients in own units, shape (1 + k,)."""
        means = self.centre + self.unit * moments.mean
        slopes = self.slopes * coefficients
        return np.append(means[0] - slopes @ means[1:], slopes)

    def response(self, of_scores: Array) -> Array:
        """Errors of (intercept, coefficients) from those of the scores u; shape (1 + k, 1 + k).

        Parameters
        ----------
        of_scores
            Errors of the coefficients from those of u, shape (k, 1 + k).
        """
        slopes = self.slopes[:, None] * of_scores
        intercept = -self.means[1:] @ slopes
        intercept[0] += self.unit[0] / self.weight
        return np.vstack([intercept, slopes])

    def response_about_means(self, inverse: Array) -> Array:
        """The same from the errors of (u_0, u_x - m_x u_0), for M of shape (k, k)."""
        return self.response(np.column_stack([np.zeros(len(inverse)), inverse]))

    def leakage(self, leakage: Array) -> tuple[Array, Array]:
        """Norms of the rows of I - M C_xx, and those with which they are compared.

        Parameters
        ----------
        leakage
            Shape (k, k).

        Returns
        -------
        tuple of ndarray, shape (1 + k,) each
            For the intercept: of the combination of rows on which its error depends, and of its
            coefficients. Each is in the table's units per unit of the coefficients.
        """
        of_intercept = self.means[1:] * self.slopes
        norms = np.append(
            np.linalg.norm(of_intercept @ leakage),
            self.slopes * np.linalg.norm(leakage, axis=1),
        )
        scale = np.append(max(float(np.linalg.norm(of_intercept)), self.outcome_scale), self.slopes)
        return norms, scale

    def standardised(self, covariance: Array, noise: float) -> Array:
        """Standard deviations of the regressors over that of the outcome; NaN where unknown."""
        variances = np.diag(covariance)
        clear = variances > _CLEAR * np.sqrt(2) * noise
        deviations = self.unit * np.sqrt(np.where(clear, variances, np.nan))
        return np.append(np.nan, deviations[1:] / deviations[0])
