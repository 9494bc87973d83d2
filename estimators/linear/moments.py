"""Moments about the means for a regression, such that all noise has one size.

With r the radius at which rows were clipped, T = r^2 S estimates E[w z z^T], where w is the weight
of a row. (Without a radius all rows have one weight, and T = S / S_00.) For weight s and means m,

C = T - s m m^T.

Where a share o_j of the cells of column j is present, C belongs to the columns o_j z_j: its
off-diagonal entries need no correction, and C_jj = o_j T_jj - s m_j^2. So the noise off the
diagonal keeps one standard deviation, which corrected moments of the columns z_j would not have.

The weight and the means are noisy too. s is moved towards 1, the weight of rows that were not
clipped, and m towards the public centres, by the positive-part rule of James and Stein (1961).
Without this, the noise in large means of a noisy release dominates that of C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.linear.design import Design
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_SURE = 5.0  # standard deviations of the noise: below, the weight of the rows is at least a half


class Moments(NamedTuple):
    """Moments of the outcome, first, and of the k regressors.

    Parameters
    ----------
    weight
        Mean weight s of the rows; NaN if it is not positive.
    mean
        Not moved towards the centres; shape (1 + k,).
    covariance
        C, shape (1 + k, 1 + k); may be indefinite.
    """

    weight: float
    mean: Array
    covariance: Array

    def of(self, regressors: NDArray[np.bool_]) -> Moments:
        """Moments of the outcome and of some of the regressors, shape (k,)."""
        kept = np.append(True, regressors)
        return Moments(self.weight, self.mean[kept], self.covariance[np.ix_(kept, kept)])


@dataclass(frozen=True)
class Centring:
    """How moments about the means follow from a second moment: a smooth function of it.

    Parameters
    ----------
    columns
        Indices of the outcome and the regressors in the matrix, shape (1 + k,).
    factor
        T / S.
    present
        Share o_j of the cells that are present, shape (1 + k,); 1 for a column without any cell,
        which has zeros in T.
    noise
        Largest standard deviation of the noise in an entry of C off the diagonal. It is that of all
        entries, except for the law ``noisy-rows``.
    least_weight
        Lower bound on s: one half where noise may hide the weight.
    weight_share, mean_share
        Shares that are kept of 1 - s, and of the means; shape (1 + k,).
    """

    columns: list[int]
    factor: float
    present: Array
    noise: float
    least_weight: float
    weight_share: float
    mean_share: Array

    @classmethod
    def of(cls, evidence: Evidence, design: Design) -> Centring | None:
        """The rule for a release; None if the noise hides the weight of all rows."""
        raw, deviations, columns = evidence.raw, evidence.deviations, design.columns
        if evidence.radius is not None:
            factor = evidence.radius**2
        elif raw[0, 0] > _SURE * deviations[0, 0]:
            factor = 1 / float(raw[0, 0])
        else:
            return None
        used = deviations[np.ix_([0, *columns], [0, *columns])] * factor
        off_diagonal = ~np.eye(len(used), dtype=bool)
        noise = float(used[off_diagonal].max(initial=0.0))
        least_weight = min(0.5, _SURE * float(used[0, 0]))
        weight = min(1.0, max(least_weight, float(factor * raw[0, 0])))
        weight_share = _kept(1 - weight, float(used[0, 0]), 1)
        mean = factor * raw[0, columns] / (1 - weight_share * (1 - weight))
        k = len(columns) - 1
        mean_share = np.full(1 + k, _kept(float(np.linalg.norm(mean[1:])), noise, k))
        mean_share[0] = _kept(float(mean[0]), noise, 1)
        shares = np.array(evidence.present or [1.0] * len(raw))[columns]
        present = np.where(shares > 0, shares, 1.0)
        return cls(columns, factor, present, noise, least_weight, weight_share, mean_share)

    def moments(self, matrix: Array) -> Moments:
        """Moments from a second moment like ``evidence.raw``, shape (p, p)."""
        scaled = self.factor * matrix
        weight = min(1.0, max(self.least_weight, float(scaled[0, 0])))
        weight = 1 - self.weight_share * (1 - weight)
        if not weight > 0:
            weight = float("nan")
        mean = scaled[0, self.columns] / weight
        covariance = scaled[np.ix_(self.columns, self.columns)]
        covariance[np.diag_indices_from(covariance)] *= self.present
        covariance -= weight * np.outer(self.mean_share * mean, self.mean_share * mean)
        return Moments(weight, mean, covariance)


def _kept(length: float, deviation: float, dimension: int) -> float:
    """The positive-part share of a vector of this length with noise in each coordinate."""
    if length == 0:
        return 1.0
    return max(0.0, 1 - dimension * (deviation / length) ** 2)
