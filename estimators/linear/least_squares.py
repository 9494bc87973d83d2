"""Coefficients of a linear regression in the columns' own units, with their errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.clipped_moments import LostMoments
from gramercy.estimators.linear.clipping import Clipping
from gramercy.estimators.linear.design import Design, Recoding
from gramercy.estimators.linear.filtered_fit import (
    FilteredFit,
    Moments,
    filtered_fit,
    regularisation,
)
from gramercy.estimators.linear.noise_metric import NoiseMetric
from gramercy.estimators.missing_cells import Presence, presence
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.solvers.columnwise import columnwise
from gramercy.estimators.uncertainty.entry_covariance import noise_of_scores
from gramercy.estimators.uncertainty.jackknife import jackknife
from gramercy.estimators.uncertainty.moment_errors import release_noise, tail_factor
from gramercy.estimators.uncertainty.tails import gamma_shape
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.noise import NoiseLaw

# Moments about the means for a regression.
#
# With r the radius at which rows were clipped, T = r^2 S estimates E[w z z^T], where w is the
# weight of a row. (Without a radius all rows have one weight, and T = S / S_00.) For weight s and
# means m,
#
# C = T - s m m^T.
#
# Where a share o_j of the cells of column j is present, C belongs to the columns o_j z_j: its
# off-diagonal entries need no correction, and C_jj = o_j T_jj - s m_j^2. So the noise keeps its
# metric, which corrected moments of the columns z_j would not.
#
# The weight and the means are noisy too. s is moved towards 1, the weight of rows that were not
# clipped, and m towards the public centres, by the positive-part rule of James and Stein (1961).
# Without this, the noise in large means of a noisy release dominates that of C.

Array = NDArray[np.float64]

_SURE = 5.0  # standard deviations of the noise: below, the weight of the rows is at least a half


@dataclass(frozen=True)
class Centring:
    """How moments about the means follow from a second moment: a smooth function of it."""

    columns: list[int]  # indices of the outcome and the regressors in the matrix, shape (1 + k,)
    factor: float  # T / S
    # share o_j of the cells that are present, shape (1 + k,); 1 for a column without any cell,
    # which has zeros in T
    present: Array
    noise: NoiseMetric  # of T, and nearly that of C
    deviations: Array  # standard deviations of the noise in T, shape (1 + k, 1 + k)
    # bounds on s: at least one half where noise may hide the weight; at most 1, except that the
    # number of rows of a person is only known from the matrix
    least_weight: float
    most_weight: float
    # shares that are kept of 1 - s, and of the means; shape (1 + k,)
    weight_share: float
    mean_share: Array
    together: Presence | None  # which cells are missing together, if it is published

    @classmethod
    def of(cls, evidence: Evidence, design: Design) -> Centring | None:
        """The rule for a release; None if the noise hides the weight of all rows."""
        raw, deviations, columns = evidence.raw, evidence.deviations, design.columns
        if evidence.radius is not None:
            factor = evidence.radius**2 / evidence.rows_each
        elif raw[0, 0] > _SURE * deviations[0, 0]:
            factor = 1 / float(raw[0, 0])
        else:
            return None
        used = deviations[np.ix_([0, *columns], [0, *columns])] * factor
        least_weight = min(0.5, _SURE * float(used[0, 0]))
        most_weight = 1.0 if evidence.rows_each == 1 else math.inf
        weight = min(most_weight, max(least_weight, float(factor * raw[0, 0])))
        weight_share = 1.0 if weight > 1 else _kept(np.array([1 - weight]), used[:1, 0])
        mean = factor * raw[0, columns] / (1 - weight_share * (1 - weight))
        of_means = used[0, 1:]
        mean_share = np.full(1 + len(design.regressors), _kept(mean[1:], of_means[1:]))
        mean_share[0] = _kept(mean[:1], of_means[:1])
        of_columns = math.sqrt(factor) * np.eye(len(raw))[columns]
        noise = release_noise(evidence).transformed(of_columns)
        shares = np.array(evidence.present or [1.0] * len(raw))[columns]
        present = np.where(shares > 0, shares, 1.0)
        together = presence(evidence, np.array(evidence.present[1:]))
        return cls(
            columns,
            factor,
            present,
            NoiseMetric.of(noise, len(columns)),
            used[1:, 1:],
            least_weight,
            most_weight,
            weight_share,
            mean_share,
            together,
        )

    def moments(self, matrix: Array) -> Moments:
        """Moments from a second moment like ``evidence.raw``, shape (p, p)."""
        if self.together is not None:
            matrix = self.together.as_independent(matrix)
        scaled = self.factor * matrix
        weight = min(self.most_weight, max(self.least_weight, float(scaled[0, 0])))
        weight = 1 - self.weight_share * (1 - weight)
        if not weight > 0:
            weight = float("nan")
        mean = scaled[0, self.columns] / weight
        covariance = scaled[np.ix_(self.columns, self.columns)]
        covariance[np.diag_indices_from(covariance)] *= self.present
        covariance -= weight * np.outer(self.mean_share * mean, self.mean_share * mean)
        return Moments(weight, mean, covariance)

    def with_lost(self, moments: Moments, lost: LostMoments) -> Moments:
        """The moments of the rows with what clipping took away."""
        weight = moments.weight + lost.weight
        mean = (moments.weight * moments.mean + lost.first) / weight
        second = lost.second.copy()
        second[np.diag_indices_from(second)] *= self.present
        before, after = self.mean_share * moments.mean, self.mean_share * mean
        second += moments.weight * np.outer(before, before) - weight * np.outer(after, after)
        return Moments(weight, mean, moments.covariance + second)


def _kept(vector: Array, deviations: Array) -> float:
    """The positive-part share of a vector with noise of these deviations."""
    square = float(vector @ vector)
    return max(0.0, 1 - float(deviations @ deviations) / square) if square > 0 else 1.0


# If the residuals of the population do not depend on the regressors, intervals cover the
# coefficients of the population. With folds they need no such assumption: the variance is that of
# the jackknife, whose regularisation is that of all rows, and at least that of the noise.
#
# If rows were clipped, these are the coefficients of weighted least squares in the population,
# which may differ from those of the table: see `docs/analyses/regression.md`.
#
# An interval is
#
# b2_j -+ (quantile sqrt(Var b2_j) + bias_j),   bias_j = nu_j max(|b|, |b2|),
#
# where nu_j is the norm of row j of (I - M C_xx) B^-T, and |b| that of B^T b (see
# `linear.filtered_fit`).
# Where a release publishes what clipping took away, the bias and the noise of `linear.clipping` are
# added. Where nu_j exceeds 0.3 times the norm of row j of B^-T, noise hides how the coefficient
# differs from others, and it is unknown.
#
# *Errors* by noise and by sampling, as covariances of the scores.
# Let e = (-a, 1, -b) be the coefficients of the residual y - a - b x, in the order of intercept,
# outcome and regressors. The error E of the moments moves the scores of the normal equations by
# u = E e, so to first order the coefficients move by M (u_x - m_x u_0).
#
# *Noise.* The covariance of u follows exactly from that of the noise. For isotropic Gaussian noise
# of deviation t off the diagonal it is t^2 (|e|^2 I + e e^T).
#
# *Sampling.* If the residuals are independent of the regressors, u_x - m_x u_0 has the covariance
# res C_xx / n, where res is the variance of the residuals. The form for missing cells is below. For
# rows with heavy tails there is a factor: `uncertainty.moment_errors.tail_factor`.
#
# *Missing cells*, at random and independently of each other.
# A cell is present with probability o_j, and counts as 1 / o_j of itself; v_j = 1 / o_j - 1 is the
# variance of this factor. For Gaussian columns z = m + x with covariance C and second moments
# M_j = C_jj + m_j^2, residuals e^T z of variance res that are independent of the regressors, and
# a_j = v_j e_j^2, the scores s_i = u_i - m_i u_0 of a row have the covariances
#
# Var s_i = res (C_ii + v_i M_i) + m_i^2 a_i M_i
#           + sum over j != i of a_j (C_ii M_j + 2 C_ij^2 + v_i Z_ij),
# Cov(s_i, s_k) = C_ik (res - 2 a_i m_i^2 - 2 a_k m_k^2) + v_i v_k e_i e_k Z_ik
#           + sum over j != i, k of a_j (C_ik M_j + 2 C_ij C_kj),
# Cov(s_i, u_0) = 2 sum over j != i of a_j m_j C_ij - a_i m_i M_i,
# Var u_0 = res + sum of a_j M_j,
#
# where Z_ij = E[z_i^2 z_j^2] = M_i M_j + 2 C_ij^2 + 4 m_i m_j C_ij. They keep this form for the
# columns o_j z_j, if C, m and e are theirs.
#
# *Selection* of regressors by a lasso, from noisy moments.
# With unit columns, P the denoised moments of the k regressors and c their noisy moments with the
# outcome,
#
# minimise over b  b^T P b / 2 - c^T b + sum penalty_i |b_i|,
# penalty_i^2 = 2 log(1 + k) (tails r / n + t_i^2 |e|^2),
#
# where r is the variance of the residuals, e = (1, -b) in the units of the moments, |e| its length
# in the metric of the noise, and t_i |e| the standard deviation of the noise in c_i - (P b)_i. So
# the penalty is a little above what sampling
# and noise together do to the largest of k scores: coefficients that these could have made are
# zero. As r and e depend on b, there are two rounds. The selected coefficients are not those of the
# lasso, which are too small, but those of `filtered_fit` without the other regressors (Meinshausen
# 2007, "Relaxed lasso").
#
# Tibshirani (1996), "Regression shrinkage and selection via the lasso".

_MOST_LEAKAGE = 0.3  # largest nu of a coefficient that is known
_CLEAR = 2.0  # standard deviations of the noise that a variance must exceed to be known
_ROUNDS = 2  # lasso problems; the second knows r and e of the first
_RIDGE = 1e-4  # on unit diagonals, so that the lasso converges for duplicate columns
_LEAST_RESIDUAL = 1e-3  # share of the outcome's variance, of which noise may leave less, or none


@dataclass(frozen=True)
class Regression:
    """The intercept, first, and k coefficients, or linear combinations of them; q = 1 + k of them.

    They are in the columns' own units.
    """

    fitted: Array  # coefficients of the fit, for prediction; shape (q,)
    coefficients: Array  # coefficients with less bias, for inference; shape (q,)
    # covariances by the noise of both matrices and by sampling; with folds, what the jackknife
    # finds beyond the noise, which may be indefinite; shape (q, q)
    by_noise: Array
    by_sampling: Array
    # What bounds the bias by directions that noise hides: the rows of (I - M C_xx) B^-T, and those
    # of B^-T, shape (q, k); the least norms of the latter, shape (q,); and the size of B^T b
    leakage: Array
    whole: Array
    least: Array
    size: float
    shift: Array  # what clipping moves them by, as far as it is published; shape (q,)
    errors: Array  # L, the last row that of the residual: errors by noise are in L E L^T
    law: NoiseLaw
    # standard deviation of a regressor over that of the outcome; NaN within the noise and for the
    # intercept; shape (q,)
    standardised: Array
    # which coefficients are in the fit: all of them, or those that the lasso selects, and the
    # intercept. Those for inference, and their errors, do not depend on it. Shape (q,)
    selected: NDArray[np.bool_]
    # share of the outcome's variance that the fit explains; NaN if that variance is lost
    r_squared: float
    residual_sd: float  # standard deviation of the residuals, in the units of the outcome
    delta: float  # the regularisation, in squared scaled units
    noise: float  # standard deviation of the noise in a moment, in scaled units
    tails: float  # factor of the sampling variance for rows with heavy tails
    freedom: float  # number of rows minus that of coefficients; with folds, that of the jackknife
    by_folds: bool  # whether sampling errors are those of the jackknife
    # coefficients that are unknown because clipping hides their columns; shape (q,)
    clipped: NDArray[np.bool_]

    @property
    def noise_error(self) -> Array:
        """Standard errors by the noise, shape (q,)."""
        errors: Array = np.sqrt(np.maximum(np.diag(self.by_noise), 0.0))
        return errors

    @property
    def sampling_error(self) -> Array:
        """Standard errors by sampling, shape (q,)."""
        errors: Array = np.sqrt(np.maximum(np.diag(self.by_sampling), 0.0))
        return errors

    @property
    def bias(self) -> Array:
        """Bounds on the bias by directions that noise hides, and by clipping; shape (q,)."""
        bounds: Array = np.linalg.norm(self.leakage, axis=1) * self.size + np.abs(self.shift)
        return bounds

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which coefficients noise and clipping do not hide, shape (q,)."""
        scale = np.maximum(np.linalg.norm(self.whole, axis=1), self.least)
        visible = np.linalg.norm(self.leakage, axis=1) <= _MOST_LEAKAGE * scale
        return np.asarray(visible & ~self.clipped)

    @property
    def shape(self) -> Array:
        """Gamma shape of the noise in each coefficient, shape (q,); see `uncertainty.tails`."""
        return gamma_shape(self.law, self.errors)[:-1, -1]

    def transformed(self, linear: Array) -> Regression:
        """Linear combinations L b of the coefficients, with their errors; L has shape (r, q)."""
        last = np.zeros((1, len(self.errors) - 1))
        whole = np.block([[linear, np.zeros((len(linear), 1))], [last, np.ones((1, 1))]])
        return replace(
            self,
            fitted=linear @ self.fitted,
            coefficients=linear @ self.coefficients,
            by_noise=linear @ self.by_noise @ linear.T,
            by_sampling=linear @ self.by_sampling @ linear.T,
            leakage=linear @ self.leakage,
            whole=linear @ self.whole,
            least=np.abs(linear) @ self.least,
            shift=linear @ self.shift,
            errors=whole @ self.errors,
            standardised=np.full(len(linear), np.nan),
            selected=(linear != 0) @ self.selected,
            clipped=(linear != 0) @ self.clipped,
        )

    def recoded(self, evidence: Evidence, recoding: Recoding) -> Regression:
        """The same regression with other reference levels."""
        design, found = recoding.design, self.transformed(recoding.linear)
        centring = Centring.of(evidence, design)
        if centring is None:
            return found
        moments, clipping = centring.moments(evidence.raw), Clipping.of(evidence, design)
        units = Units.of(evidence, design, moments, centring.present)
        return replace(found, standardised=units.standardised(moments, centring, clipping))

    def among(self, used: NDArray[np.bool_]) -> Regression:
        """The regression with regressors that it does not use; their coefficients are unknown."""
        places = np.append(True, used)
        everything = self.transformed(np.eye(1 + len(used))[:, places])
        standardised = np.full(1 + len(used), np.nan)
        standardised[places] = self.standardised
        return replace(everything, standardised=standardised, clipped=everything.clipped | ~places)


def regression(  # noqa: PLR0915  one derivation
    evidence: Evidence, design: Design, *, sparse: bool = False
) -> Regression | None:
    """The regression of a release.

    `evidence`: with an intercept; rows were not divided by their own length. `sparse`: whether the
    fit has only those regressors that a lasso selects. None if noise or clipping hide the weight of
    all rows, or the variance of the outcome.
    """
    clipping = Clipping.of(evidence, design)
    if clipping is not None and (clipping.signs[0] or clipping.hidden[0]):
        return None
    if clipping is not None and clipping.hidden.any():
        used = ~clipping.hidden[1:]
        regressors = tuple(np.array(design.regressors)[used].tolist())
        fewer = regression(evidence, replace(design, regressors=regressors), sparse=sparse)
        return None if fewer is None else fewer.among(used)
    centring = Centring.of(evidence, design)
    if centring is None:
        return None
    moments, k = centring.moments(evidence.raw), len(design.regressors)
    variance_noise = evidence.deviations[design.outcome, design.outcome] * centring.factor
    if not moments.covariance[0, 0] > 2 * variance_noise:
        return None
    noise = centring.noise  # in its own metric
    delta = regularisation(noise.size, k)
    fit = filtered_fit(moments, noise, delta)
    units = Units.of(evidence, design, moments, centring.present)
    # Scores of the intercept and the regressors to errors of (intercept, coefficients).
    response = units.response(fit.inverse @ np.column_stack([-moments.mean[1:], np.eye(k)]))

    residual = np.append(1.0, -fit.coefficients)
    spread = moments.covariance[0, 0] - 2 * fit.coefficients @ moments.covariance[1:, 0]
    spread += fit.coefficients @ fit.positive @ fit.coefficients
    spread = max(float(spread), 2 * noise.size * noise.length(residual) ** 2)
    rows, tails = max(evidence.rows, 1.0), tail_factor(evidence)
    if (centring.present < 1).any():
        centred = incomplete_scores(moments, fit.positive, residual, spread, centring.present)
    else:
        # Sampling covariance of sqrt(n) times (u_0, u_x - m_x u_0); shape (1 + k, 1 + k).
        centred = np.zeros_like(moments.covariance)
        centred[0, 0] = spread * moments.weight
        centred[1:, 1:] = spread * fit.positive
    freedom = max(rows - 1 - k, 1.0)
    about_means = units.response(np.column_stack([np.zeros(k), fit.inverse]))
    sampling = about_means @ centred @ about_means.T * (tails / freedom)

    full = np.zeros(len(evidence.raw))  # the residual in all columns of the release
    full[0], full[centring.columns] = -float(residual @ moments.mean), residual
    order = [0, *design.regressors]
    of_scores = noise_of_scores(release_noise(evidence), full)[np.ix_(order, order)]
    if centring.together is not None:
        more = centring.together.more_noise(evidence.raw, evidence.deviations)
        of_scores += (np.diag(more @ full**2) + more * np.outer(full, full))[np.ix_(order, order)]
    by_noise = response @ of_scores @ response.T * centring.factor**2

    def statistic(matrix: Array) -> Array:
        moments = centring.moments(matrix)
        if not np.isfinite(moments.covariance).all():
            return np.full(len(moments.mean), np.nan)
        return units.coefficients(filtered_fit(moments, noise, delta).coefficients, moments)

    folds = jackknife(evidence, statistic)
    if folds is not None:
        freedom = folds.freedom
        beyond = folds.covariance - by_noise
        sampling = beyond if np.isfinite(beyond).all() else sampling
    # The errors by noise are entries of L E L^T, where the last row of L is the residual.
    linear = np.zeros((len(response) + 1, len(full)))
    linear[:-1, order], linear[-1] = response, full

    least = np.zeros(1 + k)
    least[0] = units.outcome_scale / math.sqrt(noise.shape[0, 0])
    shift, signs = np.zeros(1 + k), np.zeros(1 + k, dtype=bool)
    if clipping is not None:
        whole_moments = centring.with_lost(moments, clipping.lost)
        whole = filtered_fit(whole_moments, noise, delta)
        of_rows = units.coefficients(fit.coefficients, moments)
        shift = units.coefficients(whole.coefficients, whole_moments) - of_rows
        by_noise += units.of_slopes @ clipping.errors(whole, spread) @ units.of_slopes.T
        signs[1:] = clipping.signs[1:]
    selected, prediction = np.ones(k, dtype=bool), fit
    if sparse:
        denoised = centring.moments(evidence.repaired)
        selected = lasso_selection(moments, denoised, noise, rows, tails)
        smaller = regularisation(noise.size, int(selected.sum()))
        prediction = filtered_fit(
            moments.of(selected), noise.among(np.append(True, selected)), smaller
        )
    # Selecting follows the noise more than the number of regressors tells, and explains no more
    # than all of them.
    r_squared = min(
        _r_squared(moments, fit, noise),
        _r_squared(moments.of(selected), prediction, noise.among(np.append(True, selected))),
    )
    fitted = np.zeros(k)
    fitted[selected] = prediction.fitted
    return Regression(
        units.coefficients(fitted, moments),
        units.coefficients(fit.coefficients, moments),
        by_noise,
        sampling,
        units.of_slopes @ fit.leakage,
        units.of_slopes @ fit.metric.back.T,
        least,
        max(fit.metric.length(b) for b in (fit.fitted, fit.coefficients)),
        shift,
        linear,
        evidence.law,
        units.standardised(moments, centring, clipping),
        np.append(True, selected),
        r_squared,
        units.outcome_scale * float(np.sqrt(spread / moments.weight)),
        delta,
        noise.size,
        tails,
        freedom,
        folds is not None,
        signs,
    )


def _r_squared(moments: Moments, fit: FilteredFit, noise: NoiseMetric) -> float:
    """1 - Var(y - b x) / Var(y), corrected for how closely b follows the noise.

    With the errors d of C_xy - C_xx b, b has the error V f V^T d to first order, so the variance of
    the residuals is too small by 2 E[d^T V f V^T d]. With e = (1, -b), d has the covariance
    t^2 (e^T P e P_xx + (P e)_x (P e)_x^T).
    """
    explained = float(fit.coefficients @ moments.covariance[1:, 0])
    residual = np.append(1.0, -fit.fitted)
    of_scores = (noise.shape @ residual)[1:]
    trace, norm = float(fit.first.sum()), float(fit.first @ (of_scores @ fit.directions) ** 2)
    followed = noise.size**2 * (noise.length(residual) ** 2 * trace + norm)
    return float(np.clip((explained - 2 * followed) / moments.covariance[0, 0], 0.0, 1.0))


@dataclass(frozen=True)
class Units:
    """Linear maps of coefficients and of their errors.

    Moments are those of the columns o_j z_j, where z = (x - centre) / scale. A unit of o_j z_j is
    scale / o_j units of the table.
    """

    # of the outcome, first, and the k regressors; shape (1 + k,)
    centre: Array
    unit: Array
    means: Array  # in the table's units, shape (1 + k,)
    weight: float  # mean weight of the rows

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

    @property
    def of_slopes(self) -> Array:
        """Errors of (intercept, coefficients) from those of the k coefficients of the moments.

        Shape (1 + k, k).
        """
        return np.vstack([-self.means[1:] * self.slopes, np.diag(self.slopes)])

    def response(self, of_scores: Array) -> Array:
        """Errors of (intercept, coefficients) from those of the scores u; shape (1 + k, 1 + k).

        `of_scores`: errors of the coefficients from those of u, shape (k, 1 + k).
        """
        errors = self.of_slopes @ of_scores
        errors[0, 0] += self.unit[0] / self.weight
        return errors

    def standardised(
        self, moments: Moments, centring: Centring, clipping: Clipping | None
    ) -> Array:
        """Standard deviations of the regressors over that of the outcome; NaN where unknown."""
        variances, unknown = np.diag(moments.covariance), np.zeros(len(self.unit), dtype=bool)
        if clipping is not None:
            variances = clipping.variance * centring.present**2
            unknown[1:] = (clipping.signs | clipping.hidden)[1:]
        clear = (variances > _CLEAR * np.diag(centring.deviations)) & ~unknown
        deviations = self.unit * np.sqrt(np.where(clear, variances, np.nan))
        return np.append(np.nan, deviations[1:] / deviations[0])


def incomplete_scores(
    moments: Moments, positive: Array, residual: Array, variance: float, present: Array
) -> Array:
    """Sampling covariance of sqrt(n) times (u_0, u_x - m_x u_0); shape (1 + k, 1 + k).

    `residual`: coefficients (1, -b) of the residual, shape (1 + k,). `present`: share o_j of the
    cells that are present, positive; shape (1 + k,).
    """
    c = moments.covariance.copy()
    c[1:, 1:] = positive
    c[0, 0] = max(c[0, 0], variance)
    m, v = moments.mean * np.sqrt(moments.weight), 1 / present - 1
    second, a = np.diag(c) + m**2, v * residual**2
    fourth = np.outer(second, second) + 2 * c**2 + 4 * np.outer(m, m) * c

    total, own = float(a @ second), a * second
    products = (c * a) @ c.T - c * np.add.outer(a * np.diag(c), a * np.diag(c))
    scores: Array = c * (variance + total - np.add.outer(own, own)) + 2 * products
    scores -= 2 * c * np.add.outer(a * m**2, a * m**2)
    scores += np.outer(v * residual, v * residual) * fourth

    others = np.outer(np.diag(c), second) + 2 * c**2 + v[:, None] * fourth
    by_others = others @ a - np.diag(others) * a
    variances = variance * (np.diag(c) + v * second) + m**2 * own + by_others
    np.fill_diagonal(scores, variances)

    scores[0, :] = scores[:, 0] = 2 * (c @ (a * m) - np.diag(c) * a * m) - own * m
    scores[0, 0] = moments.weight * (variance + total)
    return scores


def lasso_selection(
    noisy: Moments, denoised: Moments, noise: NoiseMetric, rows: float, tails: float
) -> NDArray[np.bool_]:
    """Which of k regressors are selected, shape (k,).

    `noisy`, `denoised`: moments of the matrix as released, and of the denoised one. `noise`:
    that of the moments of the outcome and the regressors. `tails`: factor of the sampling variance
    for rows with heavy tails.
    """
    moment = project(denoised.covariance[1:, 1:], np.inf)
    sizes = np.diag(noise.shape)[1:]
    clear = np.flatnonzero(np.diag(moment) > _CLEAR * np.sqrt(2) * noise.size * sizes)
    selected = np.zeros(len(moment), dtype=bool)
    if clear.size == 0:
        return selected
    outcome = float(np.sqrt(noisy.covariance[0, 0]))
    root = np.sqrt(np.diag(moment)[clear])
    unit = moment[np.ix_(clear, clear)] / np.outer(root, root) + _RIDGE * np.eye(clear.size)
    correlations = noisy.covariance[1:, 0][clear] / (root * outcome)
    lasso = np.zeros(clear.size)
    for _ in range(_ROUNDS):
        explained = float(2 * lasso @ correlations - lasso @ unit @ lasso)
        residual = max(1 - explained, _LEAST_RESIDUAL)
        coefficients = np.zeros(len(moment))
        coefficients[clear] = outcome * lasso / root
        length = noise.length(np.append(1.0, -coefficients))
        of_noise = length**2 * noise.size**2 * sizes[clear] / (root * outcome) ** 2
        variances = tails * residual / rows + of_noise
        penalties = np.sqrt(2 * np.log(1 + clear.size) * variances)
        lasso = columnwise(unit, correlations[:, None], penalties[:, None]).coefficients[:, 0]
    selected[clear] = lasso != 0
    return selected
