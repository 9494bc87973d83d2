"""Errors of the second moments of a release, by noise and by sampling.

The noise law is known exactly; the law of the rows is assumed (see `uncertainty.entry_covariance`).
The estimand is the population second moment of the normalised rows. If the first column is the
intercept, moments are about the means that it gives, to first order in their errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.estimators.missing_cells import presence
from gramercy.estimators.uncertainty.entry_covariance import (
    EntryCovariance,
    noise_covariance,
    sampling_covariance,
)
from gramercy.schemas.evidence import Evidence

# Means, class sizes and class means from a second moment with an intercept.
#
# With a row (1, x, levels) before normalisation and w the factor that normalises it, the released
# matrix has the entries E[w^2], E[w^2 x] and, for every level, E[w^2; level] and E[w^2 x; level].
# So means are quotients of entries. Rows within the radius of ``clip`` all have the same w, so
# these are the plain means; ``unit`` weights a row by one over its squared length.
#
# The noise of ``noisy-rows`` depends on the rows, and nothing is returned for it.

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CentredMoment:
    """Second moments about the means, of all columns but the intercept; shape (p - 1, p - 1)."""

    matrix: Array  # in the units of the released matrix
    sd: Array  # standard deviation of the noise in each entry, to first order


def schur_complement(matrix: Array) -> Array:
    """The Schur complement S_ij - S_0i S_0j / S_00 of the first column; shape (p - 1, p - 1)."""
    complement: Array = matrix[1:, 1:] - np.outer(matrix[0, 1:], matrix[0, 1:]) / matrix[0, 0]
    return complement


def centred_moment(evidence: Evidence) -> CentredMoment | None:
    """Second moments about the means, from a matrix whose first column is the intercept.

    `evidence`: of p > 1 columns. None if the weight of all rows is lost in the noise, and for noisy
    rows.

    With m_i = S_0i / S_00 the first-order noise of `schur_complement` is
    E_ij - m_j E_0i - m_i E_0j + m_i m_j E_00.
    """
    overall = means(evidence, 0)
    if overall is None:
        return None
    identity = np.eye(len(evidence.raw))
    linear = identity[1:] - np.outer(overall.value[1:], identity[0])
    noise = additive_noise(evidence).transformed(linear).variance(len(linear))
    return CentredMoment(schur_complement(evidence.raw), np.sqrt(noise))


@dataclass(frozen=True)
class Means:
    """Weighted means of every column, given that one indicator column is 1."""

    value: Array  # in scaled units, shape (p,); for the column of a level, its share
    sd: Array  # standard deviation of the noise in each mean, to first order; shape (p,)


def means(evidence: Evidence, indicator: int) -> Means | None:
    """Means over the rows where an indicator column is 1 (for the intercept, over all rows).

    `indicator`: index of the intercept, or of a level's column. None if the weight of these rows is
    lost in the noise (within three standard deviations of zero), and for noisy rows.
    """
    raw = evidence.raw
    weight, sd_weight = (float(x[indicator, indicator]) for x in (raw, evidence.deviations))
    if evidence.law.family == "noisy-rows" or weight <= 3 * sd_weight:
        return None
    value = raw[indicator] / weight
    # To first order the error of a mean m_k is (E_kw - m_k E_ww) / S_ww, for the indicator w.
    linear = np.eye(len(raw))
    linear[:, indicator] -= value
    linear[indicator] = np.eye(len(raw))[indicator]
    noise = additive_noise(evidence).transformed(linear).variance(len(raw))
    sd = np.sqrt(noise[indicator]) / weight
    value[indicator], sd[indicator] = 1.0, 0.0
    return Means(value, sd)


MIN_POWER = 2.0  # standard deviations of the noise that a column's diagonal entry must exceed
_ROUNDING = 1e-9  # a denoised variance below this share of the noisy one is zero
_MIN_WEIGHT = 5.0  # and that the intercept's diagonal entry must exceed


@dataclass(frozen=True)
class MomentErrors:
    """A noisy second moment and its errors, about the means where these are known."""

    # the noisy matrix and its positive semidefinite estimate; shape (q, q), where q = p, or p - 1
    # about means
    matrix: Array
    denoised: Array
    # covariance of the entries of `denoised` by sampling, and of `matrix` by noise
    sampling: EntryCovariance
    noise: EntryCovariance
    linear: Array  # L of the first-order error L E L^T, shape (q, p)
    offset: int  # number of columns of the release that are left out: 1 about means, else 0
    # whether the intercept's diagonal entry is lost in the noise, so that nothing is estimable
    weight_lost: bool

    def variances(self) -> tuple[Array, Array]:
        """Variances of every entry by sampling and by noise; shape (q, q) each."""
        q = len(self.matrix)
        by_sampling, by_noise = self.sampling.variance(q), self.noise.variance(q)
        return np.maximum(by_sampling, 0.0), np.maximum(by_noise, 0.0)

    def clear_columns(self) -> NDArray[np.bool_]:
        """The columns whose variance exceeds the noise, shape (q,)."""
        noise_sd = np.sqrt(np.maximum(np.diag(self.noise.variance(len(self.matrix))), 0.0))
        noisy, denoised = np.diag(self.matrix), np.diag(self.denoised)
        clear: NDArray[np.bool_] = noisy > MIN_POWER * noise_sd
        return clear & (denoised > _ROUNDING * noisy)

    def mapped(self, linear: Array) -> MomentErrors:
        """The errors of L S L^T, for L of shape (k, q)."""
        return replace(
            self,
            matrix=congruence(linear, self.matrix),
            denoised=congruence(linear, self.denoised),
            sampling=self.sampling.transformed(linear),
            noise=self.noise.transformed(linear),
            linear=linear @ self.linear,
        )


def has_intercept(evidence: Evidence) -> bool:
    """Whether the first column is the intercept."""
    return bool(evidence.columns) and evidence.columns[0] is None


def raw_moment_errors(evidence: Evidence) -> MomentErrors:
    """Errors of the second moments of all columns about zero."""
    raw, denoised, rows = evidence.raw, evidence.repaired, max(evidence.rows, 1.0)
    intercept = has_intercept(evidence)
    sampling = sampling_covariance(denoised, rows, unit=evidence.unit, intercept=intercept)
    noise = release_noise(evidence)
    return MomentErrors(raw, denoised, sampling, noise, np.eye(len(raw)), 0, weight_lost=False)


def release_noise(evidence: Evidence) -> EntryCovariance:
    """Covariance of the released entries: the noise law, and the errors of a noisy divisor.

    If the sum was divided by a noisy number of rows with relative deviation d, S has the additional
    error -S d. If it was divided by its own noisy trace, E becomes E - S tr E; where entries of E
    are uncorrelated, with variance t on the diagonal, its covariance gains
    t ((S - I) (S - I) - S S - I I) + p t S S.
    """
    law, denoised, rows = evidence.law, evidence.repaired, max(evidence.rows, 1.0)
    noise = additive_noise(evidence)
    if evidence.divisor == "noisy":
        relative_variance = (evidence.rows_sd / rows) ** 2
        return replace(noise, rank_one=(*noise.rank_one, (relative_variance, denoised)))
    if evidence.divisor == "itself" and law.cell_variance is None:
        identity, trace = np.eye(len(denoised)), float(np.trace(denoised)) or 1.0
        t, unit_trace = law.sd_diagonal**2, denoised / trace
        of_trace = (
            (t, unit_trace - identity),
            ((len(denoised) - 1) * t, unit_trace),
            (-t, identity),
        )
        return replace(noise, rank_one=(*noise.rank_one, *of_trace))
    return noise


def additive_noise(evidence: Evidence) -> EntryCovariance:
    """Covariance of the noise in the released entries, without the errors of a noisy divisor."""
    denoised, rows = evidence.repaired, max(evidence.rows, 1.0)
    if not evidence.terms:
        return noise_covariance(evidence.law, denoised, rows)
    noises = [
        noise_covariance(term.law, denoised, rows).transformed(term.linear)
        for term in evidence.terms
    ]
    return EntryCovariance(
        tuple(each for noise in noises for each in noise.products),
        quartic=tuple(each for noise in noises for each in noise.quartic),
    )


def moment_errors(evidence: Evidence) -> MomentErrors:
    """Errors of second moments about the means if there is an intercept, else about zero."""
    about_zero = raw_moment_errors(evidence)
    if not has_intercept(evidence):
        return about_zero
    raw, denoised = about_zero.matrix, about_zero.denoised
    identity = np.eye(len(raw))
    if min(raw[0, 0], denoised[0, 0]) <= _MIN_WEIGHT * evidence.deviations[0, 0]:
        none = EntryCovariance()
        return MomentErrors(
            raw[1:, 1:], denoised[1:, 1:], none, none, identity[1:], 1, weight_lost=True
        )
    linear, of_denoised = (
        identity[1:] - np.outer(m[1:, 0], identity[0]) / m[0, 0] for m in (raw, denoised)
    )
    return MomentErrors(
        schur_complement(raw),
        schur_complement(denoised),
        about_zero.sampling.transformed(of_denoised),
        about_zero.noise.transformed(linear),
        linear,
        1,
        weight_lost=False,
    )


def about_means(evidence: Evidence, matrix: Array) -> Array:
    """Moments about the means of a second moment, if there is an intercept; shape (q, q).

    NaN if the weight of all rows is not positive.
    """
    if not has_intercept(evidence):
        return matrix
    if not matrix[0, 0] > 0:
        return np.full((len(matrix) - 1, len(matrix) - 1), np.nan)
    return schur_complement(matrix)


def completed_moments(evidence: Evidence, matrix: Array) -> Array:
    """Moments about the means if there is an intercept, corrected for missing cells.

    `matrix`: a second moment like ``evidence.raw``: of all rows, denoised, or of some of the folds.
    Returns shape (q, q): in the units of `matrix`. Zero for a column without any cell; NaN if the
    weight of all rows is not positive.

    As in `estimators.table_units`: if cells are missing independently, and a share o_j of those of
    column j is present, moments are divided by o_i o_j off the diagonal and by o_i on it. If it is
    published which cells are missing together, the matrix is first made as if they were not.
    """
    measured = presence(evidence, np.array(evidence.present[1:]))
    if measured is not None:
        matrix = measured.as_independent(matrix)
    centred = about_means(evidence, matrix)
    if not incomplete(evidence):
        return centred
    squared_means = np.zeros(len(centred))
    if has_intercept(evidence) and matrix[0, 0] > 0:
        squared_means = matrix[0, 1:] ** 2 / matrix[0, 0]
    inverse = inverse_shares(evidence)
    completed: Array = centred * np.outer(inverse, inverse)
    diagonal = np.diag(centred) * inverse - squared_means * inverse * np.maximum(inverse - 1, 0.0)
    np.fill_diagonal(completed, diagonal)
    return completed


def correlations(matrix: Array) -> Array:
    """A matrix scaled to a unit diagonal; NaN for variances that are not positive."""
    variance = np.diag(matrix)
    root = np.sqrt(np.where(variance > 0, variance, np.nan))
    scaled: Array = matrix / np.outer(root, root)
    np.fill_diagonal(scaled, np.where(variance > 0, 1.0, np.nan))
    return scaled


def incomplete(evidence: Evidence) -> bool:
    """Whether cells are known to be missing."""
    return any(share < 1 for share in evidence.present)


def inverse_shares(evidence: Evidence) -> Array:
    """1 / o_j of every column but the intercept, 0 for a column without any cell; shape (q,)."""
    offset = int(has_intercept(evidence))
    shares = np.array(evidence.present[offset:] or [1.0] * (len(evidence.raw) - offset))
    inverse: Array = np.divide(1.0, shares, out=np.zeros_like(shares), where=shares > 0)
    return inverse


# How much more the squared lengths of rows vary than those of Gaussian rows.
#
# Rows with heavy tails have larger sampling errors than Gaussian rows of the same second moment.
# One factor stands for all directions: the variance of the rows' squared lengths, from their
# published histogram, over that of Gaussian rows. Where long rows are long in all columns together,
# it is larger than the factor of any moment; where only some columns have heavy tails, it is an
# average.

_CLEAR = 3.0  # standard deviations of the noise that the count of an occupied bin exceeds


def tail_factor(evidence: Evidence) -> float:
    """Factor of the sampling variance for rows with heavy tails; at least 1.

    1 if the lengths are not published, or if noise hides them.

    For Gaussian rows with second moment T and mean m about the centres, the variance of the squared
    length is 2 (tr T^2 - |m|^4). Without an intercept, m is unknown and taken to be zero, which
    makes the factor smaller.

    Counts within the noise are left out. Otherwise noise alone, in bins of long rows that do not
    occur, would double the factor of Gaussian rows. With heavy tails, this makes the factor 5 to
    30 % smaller. Rows beyond the radius have its length.
    """
    lengths, radius = evidence.lengths, evidence.radius
    if lengths is None or radius is None:
        return 1.0
    counts = np.where(lengths.count > _CLEAR * lengths.sd, lengths.count, 0)
    rows = float(counts.sum())
    second = radius**2 * evidence.repaired
    gaussian = float((second**2).sum())
    if has_intercept(evidence) and second[0, 0] > 0:
        gaussian -= float(second[0] @ second[0] / second[0, 0]) ** 2
    if not (rows > 0 and gaussian > 0):
        return 1.0
    lower = np.nan_to_num(lengths.lower)
    upper = np.where(np.isfinite(lengths.upper), lengths.upper, lower)
    squares = np.minimum((lower + upper) / 2, radius) ** 2
    shares = counts / rows
    variance = float(shares @ squares**2) - float(shares @ squares) ** 2
    return max(1.0, variance / (2 * gaussian))
