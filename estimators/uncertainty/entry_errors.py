"""Correlations and partial correlations of a release, with their noise and sampling errors.

The noise law is known exactly. With enough folds, the sum of both errors is that of the jackknife;
otherwise the law of the rows is assumed (see `uncertainty.row_law`). Missing cells, of which a
release with private constants publishes the shares, are corrected as in `estimators.own_units`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.denoise import project
from gramercy.estimators.uncertainty.correlation_errors import (
    CorrelationErrors,
    correlations_with_errors,
    not_estimable,
)
from gramercy.estimators.uncertainty.inverse_errors import inverse_correlations, inverse_errors
from gramercy.estimators.uncertainty.jackknife import Statistic, jackknife
from gramercy.estimators.uncertainty.moment_errors import (
    MomentErrors,
    completed_moments,
    incomplete,
    inverse_shares,
    moment_errors,
)
from gramercy.estimators.uncertainty.nodewise import levels_of, nodewise_lasso
from gramercy.estimators.uncertainty.tails import gamma_shape
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]
CorrelationKind = Literal["correlation", "partial-correlation"]

_MAX_CORRELATION = 0.999  # of arctanh


def correlation_errors(evidence: Evidence, of: CorrelationKind) -> CorrelationErrors:
    """Correlations or partial correlations; shape (q, q), where q = p, or p - 1 about means.

    Partial correlations are those of the inverse. Where noise hides its smallest eigenvalues, they
    are nodewise (see `uncertainty.nodewise`), if the variances of all columns are known.
    """
    moments = moment_errors(evidence)
    if moments.weight_lost:
        return not_estimable(len(moments.matrix))
    if of == "correlation":
        return _correlation_errors(evidence, moments)
    moments = _completed(evidence, moments)
    errors = inverse_errors(evidence, moments)
    if not errors.estimable.any():
        lost = not moments.clear_columns().all()
        return not_estimable(len(moments.matrix)) if lost else edge_errors(evidence, of)

    def statistic(matrix: Array) -> Array:
        return inverse_correlations(completed_moments(evidence, matrix), moments.noise)

    return _with_folds(errors, evidence, statistic)


def edge_errors(evidence: Evidence, of: CorrelationKind) -> CorrelationErrors:
    """As `correlation_errors`, but partial correlations are always nodewise.

    Each is known or not on its own, given the columns whose variances are known. The first of the
    known levels of a column is the reference of the others, and has no partial correlations.
    """
    if of == "correlation":
        return correlation_errors(evidence, of)
    moments = moment_errors(evidence)
    if moments.weight_lost:
        return not_estimable(len(moments.matrix))
    lasso = nodewise_lasso(
        _completed(evidence, moments),
        evidence.law,
        max(evidence.rows, 1.0),
        levels_of(evidence.columns[moments.offset :]),
    )
    if lasso is None:
        return not_estimable(len(moments.matrix))

    def statistic(matrix: Array) -> Array:
        return lasso.partial_correlations(completed_moments(evidence, matrix))

    return _with_folds(lasso.errors, evidence, statistic)


def _correlation_errors(evidence: Evidence, moments: MomentErrors) -> CorrelationErrors:
    clear, attenuation = moments.clear_columns(), np.ones_like(moments.matrix)
    if incomplete(evidence):
        completed = np.diag(completed_moments(evidence, evidence.raw))
        inverse = inverse_shares(evidence)
        clear &= (completed > 0) & (inverse > 0)
        shrunk = np.where(clear, np.diag(moments.matrix) * inverse**2, 1.0)
        root = np.sqrt(np.where(clear, completed, 1.0) / shrunk)
        attenuation = np.outer(root, root)
    errors = correlations_with_errors(
        moments.matrix,
        moments.denoised,
        moments.sampling,
        moments.noise,
        gamma_shape(evidence.law, moments.linear),
        clear,
        attenuation=attenuation,
    )
    return _with_folds(
        errors, evidence, lambda matrix: _correlations(completed_moments(evidence, matrix))
    )


def _correlations(matrix: Array) -> Array:
    """NaN for columns whose variance is not positive."""
    variance = np.diag(matrix)
    root = np.sqrt(np.where(variance > 0, variance, np.nan))
    correlations: Array = matrix / np.outer(root, root)
    return correlations


def _with_folds(
    errors: CorrelationErrors, evidence: Evidence, statistic: Statistic
) -> CorrelationErrors:
    """Errors by the jackknife of arctanh(h r), if there are enough folds."""

    def transformed(matrix: Array) -> Array:
        shrunk = np.clip(
            statistic(matrix) * errors.attenuation, -_MAX_CORRELATION, _MAX_CORRELATION
        )
        return np.arctanh(shrunk)

    folds = jackknife(evidence, transformed)
    return errors if folds is None else errors.with_jackknife(folds.standard_error, folds.freedom)


def _completed(evidence: Evidence, moments: MomentErrors) -> MomentErrors:
    """Moments corrected for missing cells, for an inverse or a regression.

    The errors on the diagonal are overstated by at most the square of 1 / o.
    """
    if not incomplete(evidence):
        return moments
    return replace(
        moments.mapped(np.diag(inverse_shares(evidence))),
        matrix=completed_moments(evidence, evidence.raw),
        denoised=project(completed_moments(evidence, evidence.repaired), np.inf),
    )
