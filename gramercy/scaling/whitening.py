"""The metric in which rows are clipped and noise is spherical, from what was published.

Noise of one size in all directions hides the directions in which a table of correlated columns
varies little. A pilot matrix with a small part of the budget shows the directions; in its metric,
rows have about one length in all of them, and so does the noise of the released matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.denoise import denoise
from gramercy.scaling.clipping_radius import RowLengths, clipping_bias, length_edges, radii
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]

_SLACK = 1.25
MOST_NOISE = 1.1  # of the noise without a metric


@dataclass(frozen=True, eq=False)
class Pilot:
    """A noisy second moment of scaled rows, for the choice of the metric."""

    moment: Array  # in scaled units, of rows clipped at `radius`; shape (q, q)
    noise: float  # standard deviation of its noise off the diagonal
    radius: float
    rows: float  # number of rows or persons

    @cached_property
    def estimate(self) -> Array:
        """The second moment without its noise; positive semidefinite."""
        law = NoiseLaw(
            family="gaussian-isotropic",
            sd_diagonal=math.sqrt(2) * self.noise,
            sd_off_diagonal=self.noise,
        )
        bound = self.radius * self.radius
        return denoise(self.moment, law, bound, self.rows, unit=False)


@dataclass(frozen=True, eq=False)
class Turning:
    """What a pilot matrix shows: the metric, and whether rows are better clipped in it."""

    pilot: Pilot
    lengths: RowLengths  # the published lengths of scaled rows

    @property
    def metric(self) -> Array:
        """The symmetric A for which A z has about the identity as second moment; shape (q, q).

        Directions in which the rows vary less than the noise of the pilot keep its size.
        """
        values, vectors = np.linalg.eigh(self.pilot.estimate)
        floor = self.pilot.noise * math.sqrt(len(values))
        inverse = (vectors / np.sqrt(np.maximum(values, 0.0) + floor)) @ vectors.T
        return np.asarray((inverse + inverse.T) / 2, np.float64)

    def edges(self, metric: Array, longest: float) -> Array:
        """The edges of the bins of row lengths in a metric; see `length_edges`.

        `metric`: A, shape (q, q). `longest`: length of the longest scaled row.
        """
        unit = self._typical(metric)
        farthest = longest * float(np.linalg.norm(metric, 2))
        return unit * length_edges(len(metric), farthest / unit)

    def radius(self, turned: RowLengths, metric: Array, noise: float) -> float | None:
        """Choose the clipping radius in a metric; None if that of scaled rows is better.

        Parameters
        ----------
        turned
            The published lengths of rows in the metric.
        metric
            A, shape (q, q).
        noise
            See `clipping_radius`: of the matrix that is to be released.

        Notes
        -----
        With rho the largest of the ratios of the noise of means, variances and covariances in
        scaled units to that of a release in the metric of scaled rows, whose noise is tau, the
        radius with the least ``b^2 lost + (rho tau)^2`` among those with rho <= 1.1 is taken, if
        this is at most 1.25 times ``b^2 lost + tau^2`` of scaled rows; 1/n, the sampling error, is
        added to both. To what is seen to be lost, that of one standard deviation of a count in the
        first unseen bin is added.
        """
        q, n = len(metric), self.lengths.rows
        per_square = noise / n
        bias = clipping_bias(n / (noise * math.sqrt(max(q - 1, 1))))
        tau = self.pilot.radius**2 * per_square
        plain = bias * bias * self.lengths.most_lost(self.pilot.radius) + tau * tau
        worst = _largest_mean_variance(np.asarray(np.linalg.inv(metric), np.float64))
        best, least = None, math.inf
        for radius in (self._typical(metric) * each for each in radii(q)):
            spread = radius * radius * per_square * math.sqrt(worst)
            loss = bias * bias * turned.most_lost(radius) + spread * spread
            if spread <= MOST_NOISE * tau and loss < least:
                best, least = float(f"{radius:.2e}"), loss
        return best if least + 1 / n <= _SLACK * (plain + 1 / n) else None

    def _typical(self, metric: Array) -> float:
        """Root mean square of a column in a metric, by the pilot."""
        trace = float(np.trace(metric @ self.pilot.estimate @ metric.T))
        return math.sqrt(trace / len(metric))


def _largest_mean_variance(root: Array) -> float:
    """The largest mean variance of covariances, means or variances in the noise G E G^T.

    That of variances is divided by two, as for spherical noise. `root`: G, shape (q, q).
    """
    spherical = root @ root.T
    diagonal = np.diag(spherical)
    variances = spherical * spherical + np.outer(diagonal, diagonal)
    above = variances[1:, 1:][np.triu_indices(len(root) - 1, 1)]
    means = [variances[0, 1:].mean(), np.diag(variances)[1:].mean() / 2]
    return float(max([*means, above.mean()] if above.size else means))
