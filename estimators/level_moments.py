"""What the shares of levels say of the moments of their indicators.

Shares are known from several counts, and determine variances, and the correlations of the levels of
one column: no row has two of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.released_table import ReleasedTable
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import LevelsFacts

Array = NDArray[np.float64]

_LEAST_SHARE = 1e-6


@dataclass(frozen=True)
class LevelMoments:
    """What the fitted shares of levels say of indicators; p columns, zero for numeric ones."""

    of_level: NDArray[np.bool_]  # shape (p,)
    share: Array
    noise: Array  # standard deviations of the errors of `share`
    bias: Array  # half widths of intervals of 95 %
    # pairs of levels of one column, of which no row has both; shape (p, p)
    exclusive: NDArray[np.bool_]
    correlation: Array
    correlation_noise: Array
    correlation_bias: Array

    @classmethod
    def of(cls, evidence: Evidence) -> LevelMoments:
        """The shares of all columns of levels; see `estimators.released_table`."""
        table, columns = ReleasedTable(evidence), evidence.columns[1:]
        p = len(columns)
        share, noise, bias = np.zeros((3, p))
        exclusive = np.zeros((p, p), dtype=bool)
        correlation, correlation_noise, correlation_bias = np.zeros((3, p, p))
        for facts in dict.fromkeys(columns):
            if not isinstance(facts, LevelsFacts):
                continue
            at = np.array([k for k, column in enumerate(columns) if column == facts])
            pairs, fitted = np.ix_(at, at), table.levels(facts)
            value = np.clip(fitted.value[:-1], _LEAST_SHARE, 1 - _LEAST_SHARE)
            covariance = (fitted.covariance + fitted.covariance.T)[:-1, :-1] / 2
            share[at], bias[at] = fitted.value[:-1], fitted.bias[:-1]
            noise[at] = fitted.noise_error[:-1]
            exclusive[pairs] = ~np.eye(len(at), dtype=bool)
            odds = np.sqrt(value / (1 - value))
            of_pairs = -np.outer(odds, odds)
            # Relative changes of the correlation by changes of the two shares.
            slope = 1 / (2 * value * (1 - value))
            errors = np.outer(slope, slope) * covariance
            variance = np.add.outer(np.diag(errors), np.diag(errors)) + 2 * errors
            correlation[pairs] = np.clip(of_pairs, -1.0, 1.0)
            correlation_noise[pairs] = np.abs(of_pairs) * np.sqrt(np.maximum(variance, 0.0))
            correlation_bias[pairs] = np.abs(of_pairs) * np.add.outer(
                slope * bias[at], slope * bias[at]
            )
        return cls(
            np.array([isinstance(column, LevelsFacts) for column in columns]),
            share,
            noise,
            bias,
            exclusive,
            correlation,
            correlation_noise,
            correlation_bias,
        )

    @property
    def variance(self) -> Array:
        """Of the indicators."""
        return self.share * (1 - self.share)

    @property
    def slope(self) -> Array:
        """Change of a variance by that of its share."""
        return np.abs(1 - 2 * self.share)
