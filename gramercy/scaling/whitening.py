"""The metric in which rows are clipped and noise is spherical, from what was published.

Noise of one size in all directions hides the directions in which a table of correlated columns
varies little. A pilot matrix with a small part of the budget shows the directions; in its metric,
rows have about one length in all of them, and so does the noise of the released matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.scaling.clipping_radius import RowLengths, clipping_bias, length_edges, radii
from gramercy.schemas.evidence import NoiseTerm, noise_sum
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]

_LEAST, _SLACK, _ROOT = 0.1, 1.1, math.sqrt(2)


@dataclass(frozen=True, eq=False)
class Pilot:
    """A second moment of scaled rows from a noisy one, for the choice of the metric."""

    # without its noise: positive semidefinite, in scaled units, of rows clipped at `radius`; shape
    # (q, q)
    estimate: Array
    noise: float  # standard deviation of the noise off the diagonal
    radius: float
    rows: float  # number of rows or persons


@dataclass(frozen=True, eq=False)
class Turning:
    """What a pilot matrix shows: the metric, and whether rows are better clipped in it."""

    pilot: Pilot
    lengths: RowLengths  # the published lengths of scaled rows

    @property
    def metric(self) -> Array:
        """The symmetric A for which A z has about the identity as second moment; shape (q, q).

        A floor is added to the eigenvalues: the noise of the pilot, or a tenth of the mean square
        of a column. Else rows that differ from the others where these hardly vary would be so long
        that they are lost.
        """
        values, vectors = np.linalg.eigh(self.pilot.estimate)
        floor = max(self.pilot.noise * math.sqrt(len(values)), _LEAST * float(values.mean()))
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
        With rho the ratio of the typical noise off the diagonal to that of a release in the metric
        of scaled rows, which is tau relative to the mean square of a column, the radius with the
        least ``b^2 lost + (rho tau)^2`` among those with rho <= 1 is taken, if this is at most 1.1
        times ``b^2 lost + tau^2`` of scaled rows; 1/n, the sampling error, is added to both.
        """
        q, n, plain_radius = len(metric), self.lengths.rows, self.pilot.radius
        bias = clipping_bias(n / (noise * math.sqrt(max(q - 1, 1))))
        per_square = noise / (n * self.lengths.kept_square(plain_radius, q))
        tau = plain_radius**2 * per_square
        plain = bias * bias * self.lengths.lost_share(plain_radius) + tau * tau
        root = np.asarray(np.linalg.inv(metric), np.float64)
        spherical = NoiseLaw(family="gaussian-isotropic", sd_diagonal=_ROOT, sd_off_diagonal=1.0)
        law, _ = noise_sum([NoiseTerm(spherical, root)], q)
        best, least = None, math.inf
        for radius in (self._typical(metric) * each for each in radii(q)):
            spread = radius * radius * per_square * law.sd_off_diagonal
            loss = bias * bias * turned.lost_share(radius) + spread * spread
            if spread <= tau and loss < least:
                best, least = float(f"{radius:.2e}"), loss
        return best if least + 1 / n <= _SLACK * (plain + 1 / n) else None

    def _typical(self, metric: Array) -> float:
        """Root mean square of a column in a metric, by the pilot."""
        trace = float(np.trace(metric @ self.pilot.estimate @ metric.T))
        return math.sqrt(trace / len(metric))
