"""Correlations of the columns that noise leaves, and simulated errors of all of them together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.estimators.components import ColumnMoments, column_moments, noise_edge
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.noise.draws import draw_noise, stream, symmetric_root, wishart
from gramercy.estimators.uncertainty.correlation_errors import variance_coefficients
from gramercy.estimators.uncertainty.entries import correlation
from gramercy.estimators.uncertainty.jackknife import has_jackknife, student_quantile
from gramercy.estimators.uncertainty.moment_errors import correlations
from gramercy.schemas.evidence import Evidence

# Functions of many correlations, such as loadings, need the joint law of their errors. Its shape is
# that of Gaussian rows and of the noise, to first order. The deviation of each correlation by
# either is that of `entries.correlation`: by the folds, or of rows with the published kurtosis.
# What is not known of clipping may be wrong in the same direction in all pairs, or in each on its
# own, so errors have both.

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_MAX_CORRELATION = 0.99  # of which the relative errors are used
_MANY, _FEW, _SMALL = 200, 60, 30  # draws of matrices with up to 30 columns, and of large ones
_LEAST = 1e-3  # of the eigenvalues of a matrix with a ridge


@dataclass(frozen=True)
class KnownCorrelations:
    """Correlations about the means of the q columns in use, as `entries.correlation` has them."""

    evidence: Evidence
    # indices of the columns in use among those without the intercept, and of those that noise hides
    used: Indices
    lost: Indices
    matrix: Array  # may be indefinite; shape (q, q)
    # standard deviations by sampling, by noise, and of what is not known of clipping; shape (q, q)
    sampling: Array
    noise: Array
    clipping: Array
    moments: ColumnMoments

    @classmethod
    def of(cls, evidence: Evidence, wanted: Sequence[int]) -> KnownCorrelations:
        """The correlations of the wanted columns: indices among those without the intercept."""
        moments = column_moments(evidence, wanted, "correlation")
        entries = correlation(evidence)
        used, lost = moments.used, list(moments.lost)
        while len(used):  # the column of the most pairs that noise hides is left out
            hidden = (~entries.estimable[np.ix_(used, used)]).sum(axis=0)
            if not hidden.any():
                break
            lost.append(used[hidden.argmax()])
            used = np.delete(used, hidden.argmax())
        if len(used) < len(moments.used):
            moments = column_moments(evidence, used.tolist(), "correlation")
        square = np.ix_(used, used)
        return cls(
            evidence,
            used,
            np.array(lost, dtype=np.intp),
            entries.estimate[square],
            entries.sampling_error[square],
            entries.noise_error[square],
            np.maximum(*entries.bias.deviation)[square],
            moments,
        )

    @property
    def ridge(self) -> float:
        """What is added to the diagonal, so that noise leaves the matrix positive definite.

        The largest eigenvalue of the noise alone in 95 % of releases; zero without noise.
        """
        if not len(self.used):
            return 0.0
        least = float(np.linalg.eigvalsh(self.matrix)[0])
        return max(noise_edge(self.evidence, self.moments.linear), _LEAST - least, 0.0)

    def quantile(self, level: float) -> float:
        """The number of standard errors that an interval reaches."""
        folds = self.evidence.folds
        freedom = len(folds) - 1 if has_jackknife(self.evidence) else math.inf
        return student_quantile(level, freedom)

    def errors(self, truth: Array) -> Iterator[tuple[Array, Array]]:
        """Simulated errors of the correlations, and of the logarithms of standard deviations.

        `truth`: the correlation matrix of the rows, shape (q, q). From a public seed: 200 of up to
        30 columns, fewer of more, at least 60; of shapes (q, q) and (q,).
        """
        q, source, moments = len(self.used), stream(), self.moments
        rows = max(round(self.evidence.rows), 2)
        rho = np.clip(truth, -_MAX_CORRELATION, _MAX_CORRELATION)
        np.fill_diagonal(rho, 0.0)
        a, b, c = variance_coefficients(moments.noise, q)
        nominal = np.sqrt(np.maximum(a + b * rho + c * rho**2, 0.0))
        of_noise = np.divide(self.noise, nominal, out=np.zeros((q, q)), where=nominal > 0)
        of_rows = self.sampling * math.sqrt(rows) / (1 - rho**2)
        root = symmetric_root(project(truth, math.inf))
        for _ in range(_draws(q)):
            white = source.standard_normal((rows, q)) if rows < q else None
            drawn = wishart(source, q, rows) if white is None else white.T @ white
            sample = congruence(root, drawn / rows)
            by_sampling = (correlations(sample) - truth) * of_rows
            noise = congruence(
                moments.linear, draw_noise(source, self.evidence, self.evidence.repaired)
            )
            own = np.diag(noise) / 2
            by_noise = (noise - rho * np.add.outer(own, own)) * of_noise
            own_unknown = np.triu(source.standard_normal((q, q)), 1)
            unknown = own_unknown + own_unknown.T + source.standard_normal() * np.sign(rho)
            error = by_sampling + by_noise + unknown * self.clipping
            np.fill_diagonal(error, 0.0)
            yield error, np.log(np.diag(sample)) / 2 + own


def _draws(q: int) -> int:
    return max(_FEW, int(_MANY * min(1.0, (_SMALL / max(q, 1)) ** 1.5)))
