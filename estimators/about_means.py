"""Estimates of the dependences between columns, about the means that an intercept gives.

With the second moment S of rows (1, x), s = S_00 and m = S_0. / s, the columns have the moments
C = S_xx - s m m^T about their means. An estimator of dependences sees C only, so that the intercept
is never penalised and has no edges. Its result is then extended by the intercept, exactly: S has
the inverse

[[1 / s + m^T T m, -m^T T], [-T m, T]],  T = C^-1.

Moments are corrected for missing cells whose shares are known, as in `estimators.table_units`.

The levels of a column add up to one: given all others, each is known, and an estimate conditional
on all of them has edges without a meaning. So estimates that are conditional leave out the first
level of each column, its reference, as a regression does; and columns whose variance is lost in the
noise. These have no edges.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.estimators.estimator import Estimate, Estimator
from gramercy.estimators.input_matrix import with_diagonal_floor
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.pooling.common_units import noise_terms
from gramercy.estimators.table_units import weight_lost
from gramercy.estimators.uncertainty.moment_errors import (
    completed_moments,
    has_intercept,
    incomplete,
    inverse_shares,
    moment_errors,
)
from gramercy.estimators.uncertainty.partial_correlations import leave_out_references, levels_of
from gramercy.schemas import wordings
from gramercy.schemas.evidence import Evidence, Fold, noise_sum

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Source = Literal["denoised", "raw"]

_PRECISIONS = frozenset({"precision", "coefficients"})
_SECOND_MOMENTS = frozenset({"covariance", "thresholded"})


class DependenceEstimator(Estimator):
    """An estimator of dependences between columns, about the means if there is an intercept."""

    conditional: ClassVar[bool] = True  # whether an edge is given all other columns
    redrawn: ClassVar[bool] = True

    @property
    def source(self) -> Source:
        """The matrix that is estimated from."""
        return "denoised"

    def fit(self, evidence: Evidence) -> Estimate:
        if not has_intercept(evidence) or len(evidence.raw) == 1:
            return self.fit_columns(evidence)
        centred = about_means(evidence, self.source)
        if not self.conditional:
            return centred.with_intercept(self.fit_columns(centred.evidence))
        used = conditional_columns(evidence)
        estimate = self.fit_columns(of_columns(centred.evidence, used))
        return centred.with_intercept(_completed(estimate, centred.evidence, used))

    @abstractmethod
    def fit_columns(self, evidence: Evidence) -> Estimate:
        """Estimate from evidence without an intercept."""


@dataclass(frozen=True)
class CentredEvidence:
    """Evidence of the moments about the means, and what extends a result by the intercept."""

    evidence: Evidence  # of the q columns without the intercept
    mean: Array  # in scaled units, shape (q,)
    weight: float  # the intercept's entry s; positive

    def with_intercept(self, estimate: Estimate) -> Estimate:
        """The estimate of all q + 1 columns; edges and frequencies of the intercept are zero."""
        return replace(
            estimate,
            matrices={name: self._extended(name, M) for name, M in estimate.matrices.items()},
            edges=None if estimate.edges is None else np.pad(estimate.edges, ((1, 0), (1, 0))),
        )

    def _extended(self, name: str, matrix: Array) -> Array:
        extended: Array = np.pad(matrix, ((1, 0), (1, 0)))
        m = self.mean
        if name in _PRECISIONS:
            extended[0, 1:] = extended[1:, 0] = -matrix @ m
            extended[0, 0] = 1 / self.weight + m @ matrix @ m
        elif name in _SECOND_MOMENTS:
            extended += self.weight * np.outer(np.append(1.0, m), np.append(1.0, m))
        return extended


def about_means(evidence: Evidence, source: Source = "denoised") -> CentredEvidence:
    """Moments about the means, corrected for missing cells, as evidence of their own.

    `evidence`: with an intercept, p > 1. `source`: the matrix that gives the means and the weight
    of the intercept. Raises RequestError if the release has no noise, and the intercept's entry is
    not positive.

    With E the noise, that of C is L E L^T to first order, with L = (-m, I): it is a term. The law
    of noisy rows is that of the release.

    Folds are taken about the means of all rows, so their weighted average is `raw` again.

    If noise hides the weight of the intercept, it hides the means too, and moments remain about the
    public centres.
    """
    raw, repaired, inverse = evidence.raw, evidence.repaired, inverse_shares(evidence)
    columns = replace(
        evidence,
        raw=raw[1:, 1:],
        repaired=repaired[1:, 1:],
        names=evidence.names[1:],
        columns=evidence.columns[1:],
        present=evidence.present[1:],
        missing=None,
    )
    matrix = raw if source == "raw" else repaired
    if any(weight_lost(each, evidence.deviations) for each in (raw, repaired)):
        weight = max(float(matrix[0, 0]), evidence.law.sd_diagonal)
        if not weight > 0:
            raise wordings.matrix_is_zero()
        means = of_folds = np.zeros(len(inverse))
        centred, denoised = (completed_moments(columns, each[1:, 1:]) for each in (raw, repaired))
    else:
        weight = float(matrix[0, 0])
        means, of_folds = matrix[0, 1:] / weight, raw[0, 1:] / raw[0, 0]
        centred, denoised = (completed_moments(evidence, each) for each in (raw, repaired))
    law, terms = evidence.law, evidence.terms
    if law.cell_variance is None:
        linear = np.column_stack([-means, np.eye(len(means))]) * inverse[:, None]
        law, terms = noise_sum(noise_terms(evidence, linear), len(means))
    shares = np.outer(inverse, inverse)
    np.fill_diagonal(shares, inverse)
    about = np.column_stack([-of_folds, np.eye(len(of_folds))])
    folds = tuple(
        Fold(centred + shares * congruence(about, fold.moment - raw), fold.rows)
        for fold in evidence.folds
    )
    reduced = replace(
        columns,
        raw=centred,
        repaired=project(denoised, np.inf) if incomplete(evidence) else denoised,
        law=law,
        folds=folds,
        unit=False,  # the trace about the means is not public
        trace=evidence.trace * max(1.0, float(inverse.max())),
        present=(),
        terms=terms,
        lost=None,
    )
    return CentredEvidence(reduced, means * inverse, weight)


def of_columns(evidence: Evidence, used: Indices) -> Evidence:
    """Evidence of some of the columns, given about the means."""
    square = np.ix_(used, used)
    return replace(
        evidence,
        raw=evidence.raw[square],
        repaired=evidence.repaired[square],
        names=tuple(evidence.names[k] for k in used if evidence.names),
        columns=tuple(evidence.columns[k] for k in used if evidence.columns),
        terms=tuple(replace(term, linear=term.linear[used]) for term in evidence.terms),
        folds=tuple(replace(fold, moment=fold.moment[square]) for fold in evidence.folds),
    )


def conditional_columns(evidence: Evidence) -> Indices:
    """Indices, without the intercept, of the columns of a conditional estimate.

    All of them if fewer than two are left.
    """
    moments = moment_errors(evidence)
    used = moments.clear_columns()
    if moments.weight_lost or np.count_nonzero(used) < 2:
        used[:] = True
    leave_out_references(used, levels_of(evidence.columns[moments.offset :]))
    return np.flatnonzero(used if np.count_nonzero(used) > 1 else np.ones_like(used))


def _completed(estimate: Estimate, evidence: Evidence, used: Indices) -> Estimate:
    """An estimate of some of the columns, completed by the others, which are independent."""
    q, square = len(evidence.raw), np.ix_(used, used)
    others = np.setdiff1d(np.arange(q), used)
    variance = np.diag(with_diagonal_floor(evidence))[others]

    def complete(name: str, matrix: Array) -> Array:
        full = np.zeros((q, q))
        full[square] = matrix
        if name in _PRECISIONS:
            full[others, others] = 1 / variance
        return full

    return replace(
        estimate,
        matrices={name: complete(name, each) for name, each in estimate.matrices.items()},
        edges=None if estimate.edges is None else complete("edges", estimate.edges),
    )
