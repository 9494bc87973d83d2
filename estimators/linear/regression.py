"""Coefficients of a linear regression in the columns' own units, with their errors.

If the residuals of the population do not depend on the regressors, intervals cover the coefficients
of the population. With folds they need no such assumption: the variance is that of the jackknife,
whose regularisation is that of all rows, and at least that of the noise.

If rows were clipped, these are the coefficients of weighted least squares in the population, which
may differ from those of the table: see `docs/analyses/regression.md`.

An interval is

b2_j -+ (quantile sqrt(Var b2_j) + bias_j),   bias_j = nu_j max(|b|, |b2|),

where nu_j is the norm of row j of I - M C_xx (see `filtered_fit`). Where nu_j exceeds 0.3, noise
hides how the coefficient differs from others, and it is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.linear.design import Design
from gramercy.estimators.linear.errors import noise_of_scores, sampling_of_scores
from gramercy.estimators.linear.filtered_fit import FilteredFit, filtered_fit, regularisation
from gramercy.estimators.linear.missing_cells import incomplete_scores
from gramercy.estimators.linear.moments import Centring, Moments
from gramercy.estimators.linear.selection import lasso_selection
from gramercy.estimators.linear.units import Units
from gramercy.estimators.uncertainty.jackknife import jackknife
from gramercy.estimators.uncertainty.moment_errors import release_noise
from gramercy.estimators.uncertainty.tail_factor import tail_factor
from gramercy.estimators.uncertainty.tails import gamma_shape
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_MOST_LEAKAGE = 0.3  # largest nu of a coefficient that is known


@dataclass(frozen=True)
class Regression:
    """The intercept, first, and k coefficients, in the columns' own units; shape (1 + k,) each.

    Parameters
    ----------
    fitted
        Coefficients of the fit, for prediction.
    coefficients
        Coefficients with less bias, for inference.
    noise_error, sampling_error
        Standard errors by noise and by sampling; with folds, what the jackknife finds beyond the
        noise.
    bias
        Bound on the bias by directions that noise hides.
    known
        Which coefficients noise does not hide.
    shape
        Gamma shape of the noise in each coefficient; see `uncertainty.tails`.
    standardised
        Standard deviation of a regressor over that of the outcome; NaN within the noise and for the
        intercept.
    selected
        Which coefficients are in the fit: all of them, or those that the lasso selects, and the
        intercept. Those for inference, and their errors, do not depend on it.
    r_squared
        Share of the outcome's variance that the fit explains; NaN if that variance is lost.
    residual_sd
        Standard deviation of the residuals, in the units of the outcome.
    delta
        The regularisation, in squared scaled units.
    noise
        Standard deviation of the noise in a moment, in scaled units.
    tails
        Factor of the sampling variance for rows with heavy tails.
    freedom
        Number of rows minus that of coefficients; with folds, that of the jackknife.
    by_folds
        Whether sampling errors are those of the jackknife.
    """

    fitted: Array
    coefficients: Array
    noise_error: Array
    sampling_error: Array
    bias: Array
    known: NDArray[np.bool_]
    shape: Array
    standardised: Array
    selected: NDArray[np.bool_]
    r_squared: float
    residual_sd: float
    delta: float
    noise: float
    tails: float
    freedom: float
    by_folds: bool


def regression(evidence: Evidence, design: Design, *, sparse: bool = False) -> Regression | None:
    """The regression of a release.

    Parameters
    ----------
    evidence
        With an intercept; rows were not divided by their own length.
    design
        The columns.
    sparse
        Whether the fit has only those regressors that a lasso selects.

    Returns
    -------
    Regression or None
        None if the noise hides the weight of all rows, or the variance of the outcome.
    """
    centring = Centring.of(evidence, design)
    if centring is None:
        return None
    moments, k = centring.moments(evidence.raw), len(design.regressors)
    variance_noise = evidence.deviations[design.outcome, design.outcome] * centring.factor
    if not moments.covariance[0, 0] > 2 * variance_noise:
        return None
    delta = regularisation(centring.noise, k)
    fit, units = filtered_fit(moments, delta), Units.of(evidence, design, moments, centring.present)
    # Scores of the intercept and the regressors to errors of (intercept, coefficients).
    response = units.response(fit.inverse @ np.column_stack([-moments.mean[1:], np.eye(k)]))

    residual = np.append(1.0, -fit.coefficients)
    spread = moments.covariance[0, 0] - 2 * fit.coefficients @ moments.covariance[1:, 0]
    spread += fit.coefficients @ fit.positive @ fit.coefficients
    spread = max(float(spread), 2 * centring.noise)
    rows, tails = max(evidence.rows, 1.0), tail_factor(evidence)
    if (centring.present < 1).any():
        present = centring.present
        centred = incomplete_scores(moments, fit.positive, residual, spread, present)
    else:
        centred = sampling_of_scores(moments, fit.positive, spread)
    freedom = max(rows - 1 - k, 1.0)
    sampling = _diagonal(units.response_about_means(fit.inverse), centred * (tails / freedom))

    full = np.zeros(len(evidence.raw))  # the residual in all columns of the release
    full[0], full[centring.columns] = -float(residual @ moments.mean), residual
    order = [0, *design.regressors]
    noise = noise_of_scores(release_noise(evidence), full)[np.ix_(order, order)]
    by_noise = _diagonal(response, noise * centring.factor**2)

    folds = jackknife(evidence, lambda matrix: _coefficients(centring, units, delta, matrix))
    if folds is not None:
        freedom = folds.freedom
        beyond = np.maximum(folds.standard_error**2 - by_noise, 0.0)
        sampling = np.where(np.isfinite(beyond), beyond, sampling)
    leakage, scale = units.leakage(fit.leakage)
    size = max(float(np.linalg.norm(b)) for b in (fit.fitted, fit.coefficients))
    selected, prediction = np.ones(k, dtype=bool), fit
    if sparse:
        denoised = centring.moments(evidence.repaired)
        selected = lasso_selection(moments, denoised, centring.noise, rows, tails)
        smaller = regularisation(centring.noise, int(selected.sum()))
        prediction = filtered_fit(moments.of(selected), smaller)
    # Selecting follows the noise more than the number of regressors tells, and explains no more
    # than all of them.
    r_squared = min(
        _r_squared(moments, fit, centring.noise),
        _r_squared(moments.of(selected), prediction, centring.noise),
    )
    fitted = np.zeros(k)
    fitted[selected] = prediction.fitted
    return Regression(
        units.coefficients(fitted, moments),
        units.coefficients(fit.coefficients, moments),
        np.sqrt(by_noise),
        np.sqrt(sampling),
        leakage * size,
        leakage <= _MOST_LEAKAGE * scale,
        _noise_shape(evidence, order, response, full),
        units.standardised(moments.covariance, centring.noise),
        np.append(True, selected),
        r_squared,
        units.outcome_scale * float(np.sqrt(spread / moments.weight)),
        delta,
        centring.noise,
        tails,
        freedom,
        folds is not None,
    )


def _coefficients(centring: Centring, units: Units, delta: float, matrix: Array) -> Array:
    moments = centring.moments(matrix)
    if not np.isfinite(moments.covariance).all():
        return np.full(len(moments.mean), np.nan)
    return units.coefficients(filtered_fit(moments, delta).coefficients, moments)


def _diagonal(response: Array, covariance: Array) -> Array:
    """Variances after a linear map, never negative."""
    variances: Array = np.maximum(((response @ covariance) * response).sum(axis=1), 0.0)
    return variances


def _noise_shape(evidence: Evidence, order: list[int], response: Array, residual: Array) -> Array:
    """The errors are entries of L E L^T, where the last row of L is the residual."""
    linear = np.zeros((len(response) + 1, len(residual)))
    linear[:-1, order] = response
    linear[-1] = residual
    shape: Array = gamma_shape(evidence.law, linear)[:-1, -1]
    return shape


def _r_squared(moments: Moments, fit: FilteredFit, noise: float) -> float:
    """1 - Var(y - b x) / Var(y), corrected for how closely b follows the noise.

    With the errors d of C_xy - C_xx b, b has the error V f V^T d to first order, so the variance of
    the residuals is too small by 2 E[d^T V f V^T d].
    """
    explained = float(fit.coefficients @ moments.covariance[1:, 0])
    followed = noise**2 * ((1 + fit.fitted @ fit.fitted) * fit.filter_trace + fit.filter_norm)
    return float(np.clip((explained - 2 * followed) / moments.covariance[0, 0], 0.0, 1.0))
