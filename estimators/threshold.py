"""Sparse covariance matrix: entries that noise alone could explain are set to zero.

Wang and Xu (2019), Algorithms 1 and 2; Li and Wang (2023), Algorithms 1 and 2; soft thresholding:
Rothman, Levina and Zhu (2009).

The papers give four thresholds. With p columns, n rows, and sd the standard deviation of the noise
in an off-diagonal entry of the matrix, all four are

tau = constant sqrt(log p / n) + 4 sd sqrt(log p)

- Wang and Xu 1: gamma sqrt(log p / n) + 4 b sqrt(log p), with b = sd.
- Wang and Xu 2, local: every row has noise with standard deviation c = sqrt(2 ln(1.25/delta)) /
  epsilon, and the term is 4 c sqrt(log p) / sqrt(n). The average over rows has sd = c / sqrt(n), so
  this is the same.
- Li and Wang 1: theta sqrt(log p / n) + 4 sigma_1 sqrt(log p), with sigma_1 = sd.
- Li and Wang 2, local: 4 sigma_2 sqrt(log p), with sigma_2 the standard deviation for one row. This
  is a misprint, since that threshold would not decrease with n as their rate does: the noise of the
  average is sigma_2 / sqrt(n) = sd, and 4 sd sqrt(log p) is meant.

The law in `Evidence` is that of the released average, so nothing is divided by sqrt(n) here. A
local name gives the same formula as its central one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from gramercy.estimators.about_means import DependenceEstimator, Source
from gramercy.estimators.estimator import Estimate
from gramercy.estimators.noise.denoise import with_spectrum
from gramercy.estimators.solvers.block import soft_threshold
from gramercy.estimators.tuning.cross_validation import check_folds, training_evidence
from gramercy.estimators.tuning.penalty_rule import grid_around
from gramercy.estimators.uncertainty.pair_variance import gaussian_variance, pair_variance
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.model import Positive

Array = NDArray[np.float64]

_CONSTANTS = 30  # that cross-validation compares
_ROUNDING = float(np.finfo(np.float64).eps)

Name = Literal["auto", "adaptive", "wx", "wx-local", "lw", "lw-local"]


class ThresholdedCovariance(DependenceEstimator):
    """``thresholded``: a sparse covariance matrix; its zeros are a graph's missing edges.

    The result has two matrices. ``thresholded`` has exact zeros and may be indefinite.
    ``covariance``, the main one, is its projection onto the positive semidefinite matrices, as in
    the papers; if the first is indefinite, the projection has small numbers instead of zeros. The
    edges are the entries of the first, divided by the square roots of the denoised diagonal and
    clipped to [-1, 1]; a column with a denoised variance of zero does not have edges.

    It works on the raw matrix, whose noise has a known law. With an intercept it thresholds moments
    about the means; both matrices are then second moments about the public centres, to which the
    products of the means are added, and only the edges have the zeros.

    Parameters
    ----------
    rule
        ``hard``: entries above the threshold are unchanged; ``soft``: they are moved towards zero
        by the threshold.
    threshold
        A positive number; ``auto``: for each entry from its noise and sampling error, with Gaussian
        rows; ``adaptive``: the same with the sampling error that folds or published lengths show;
        or the name of a published threshold, by Wang and Xu or Li and Wang, central or local.
    constant
        The factor of the error or, of the published thresholds, gamma or theta in the units of the
        matrix. A positive number; ``auto``: see `auto_level` and `paper_constant`;
        ``cross-validation``: the one with the smallest Frobenius loss on folds. It has no effect if
        the threshold is a number.
    keep_diagonal
        Whether the diagonal is left unchanged. The papers threshold all entries.
    """

    conditional = False
    name: Literal["thresholded"] = "thresholded"
    rule: Literal["hard", "soft"] = "hard"
    threshold: Name | Positive = "auto"
    constant: Literal["auto", "cross-validation"] | Positive = "auto"
    keep_diagonal: Annotated[bool, Field(strict=True)] = True

    def check(self, spec: ReleaseSpec) -> None:
        if self.constant == "cross-validation" and isinstance(self.threshold, str):
            check_folds(spec.folds, "constant")

    @property
    def source(self) -> Source:
        return "raw"

    def fit_columns(self, evidence: Evidence) -> Estimate:
        threshold: Array | float
        tables = {}
        if isinstance(self.threshold, float):
            threshold = self.threshold
            tuning = {"threshold": threshold}
        else:
            law = _LAWS[self.threshold](evidence, self.threshold)
            if self.constant == "cross-validation":
                constant, tables["tuning"] = self._best_on_folds(evidence, law)
            else:
                constant = law.usual if self.constant == "auto" else self.constant
            threshold = law.at(evidence, constant)
            tuning = {"level": constant}
            if isinstance(threshold, float):
                tuning = {"threshold": threshold, "constant": constant}
        sparse = threshold_entries(
            evidence.raw, threshold, self.rule, keep_diagonal=self.keep_diagonal
        )
        matrices = {"covariance": psd_projection(sparse), "thresholded": sparse}
        edges = _correlations(sparse, np.diagonal(evidence.repaired))
        return Estimate("covariance", matrices, tuning, tables, edges)

    def _best_on_folds(self, evidence: Evidence, law: ThresholdLaw) -> tuple[float, pd.DataFrame]:
        """The constant with the smallest squared Frobenius loss on held-out folds, and all losses.

        The held-out fold has its own rows and its own noise, so its mean is the true matrix, and
        its variance adds the same number to the expected loss of every constant.
        """
        check_folds(len(evidence.folds), "constant")
        grid, losses = law.grid, np.zeros(len(law.grid))
        for out, fold in enumerate(evidence.folds):
            others = training_evidence(evidence, out)
            for k, constant in enumerate(grid):
                at = law.at(others, constant)
                sparse = threshold_entries(
                    others.raw, at, self.rule, keep_diagonal=self.keep_diagonal
                )
                losses[k] += fold.rows * float(((sparse - fold.moment) ** 2).sum())
        losses /= sum(fold.rows for fold in evidence.folds)
        tied = np.flatnonzero(losses == losses.min())  # they leave the same entries
        best = tied[len(tied) // 2]
        return float(grid[best]), pd.DataFrame({"constant": grid, "loss": losses})


class ThresholdLaw(NamedTuple):
    """A threshold up to one constant."""

    usual: float  # the constant that `auto` stands for
    grid: Array  # constants that cross-validation compares; ascending
    at: Callable[[Evidence, float], Array | float]  # for all rows, or for the other folds


def _of_entries(evidence: Evidence, name: Name) -> ThresholdLaw:
    """A multiple of each entry's standard error (Cai and Liu 2011, with known noise)."""
    usual = auto_level(len(evidence.raw))
    of_rows = gaussian_variance(evidence) if name == "auto" else pair_variance(evidence)

    def at(evidence: Evidence, constant: float) -> Array:
        return constant * np.sqrt(evidence.deviations**2 + of_rows / max(evidence.rows, 1.0))

    return ThresholdLaw(usual, np.linspace(0.0, 2 * usual, _CONSTANTS), at)


def _of_papers(evidence: Evidence, name: Name) -> ThresholdLaw:
    """One threshold for all entries: see the module."""
    usual, log = paper_constant(evidence, name), math.log(len(evidence.raw))

    def at(evidence: Evidence, constant: float) -> float:
        sampling = constant * math.sqrt(log / max(evidence.rows, 1.0))
        return sampling + 4 * evidence.typical_noise * math.sqrt(log)

    grid = np.append(0.0, grid_around(usual or 1.0, _CONSTANTS, 30.0)[::-1])
    return ThresholdLaw(usual, grid, at)


_LAWS: dict[Name, Callable[[Evidence, Name], ThresholdLaw]] = {
    **dict.fromkeys(("auto", "adaptive"), _of_entries),
    **dict.fromkeys(("wx", "wx-local", "lw", "lw-local"), _of_papers),
}


def threshold_entries(
    matrix: Array,
    threshold: Array | float,
    rule: Literal["hard", "soft"],
    *,
    keep_diagonal: bool = True,
) -> Array:
    """Set entries to zero that do not exceed a threshold.

    `matrix`: symmetric, shape (p, p). `threshold`: a number for all entries, or an array with one
    for each entry, shape (p, p). `rule`: ``hard``: other entries are unchanged. ``soft``: they move
    towards zero by the threshold. `keep_diagonal`: whether the diagonal is left unchanged. Returns
    shape (p, p): symmetric; may be indefinite.
    """
    hard = np.where(np.abs(matrix) > threshold, matrix, 0.0)
    sparse: Array = (hard if rule == "hard" else soft_threshold(matrix, threshold)) + 0.0
    if keep_diagonal:
        np.fill_diagonal(sparse, np.diagonal(matrix))
    return sparse


def psd_projection(matrix: Array) -> Array:
    """The nearest positive semidefinite matrix, shape (p, p).

    A matrix without negative eigenvalues, up to rounding, is returned unchanged, with its zeros.
    """
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= -_ROUNDING * len(matrix) * values[-1]:
        return matrix
    return with_spectrum(vectors, np.maximum(values, 0.0))


def paper_constant(evidence: Evidence, name: Name) -> float:
    """The constant of the published thresholds, which the papers leave open, from public facts.

    Wang and Xu require gamma to be large enough. Here it is twice the average of the denoised
    diagonal, so that gamma sqrt(log p / n) is 2 sqrt(log p) standard deviations of the sampling
    error of uncorrelated columns of average variance: the size of the largest of p^2 / 2 such
    errors. Li and Wang require theta = (4 sqrt 2 / 3) eta K^(2/(4+e)) M with eta at least 2, M a
    bound on the diagonal, and K one on the (4+e)-th moments: here eta is 2, K is 1, and M is the
    largest denoised diagonal entry.
    """
    power = np.maximum(np.diagonal(evidence.repaired), 0.0)
    if name in {"wx", "wx-local"}:
        return 2 * float(power.mean())
    return 8 * math.sqrt(2) / 3 * float(power.max())


def auto_level(p: int) -> float:
    """Threshold in standard deviations of an entry: sqrt(2 log p).

    Chosen by simulation among fixed levels from 0.5 to 4, Bonferroni at 5 % and 50 %, 2 sqrt(log
    p), and Benjamini-Hochberg at 5 % and 20 % (AR, banded, hub and random covariances; 10, 30, 100
    columns, of equal and unequal variance; 500 to 50,000 rows; noise on an entry from 0.001 to 0.5
    of the average diagonal; 288 releases).

    On 288 other releases of the same kinds, the mean F1 of the support (without AR, which has no
    zeros) is 0.63, against 0.71 for the best level of each (which requires the truth); 0.56 for
    Bonferroni at 5 %, and 0.61 at 50 %. With the hard rule the Frobenius error of the projected
    matrix is 1.14 times that of the best level (geometric mean; Bonferroni 1.12 and 1.08). With the
    soft rule it is 1.30 times (1.58 and 1.44); a level of 1.5 gives 1.12 times, but an F1 of 0.42.
    The error of the denoised matrix is 1.18 times that of the hard rule with Bonferroni at 5 %
    (median).

    ``adaptive`` has the same level: docs/estimators.md compares it with Cai and Liu's 2 sqrt(log p)
    on 90 releases, in which neither is better with and without folds.
    """
    return math.sqrt(2 * math.log(max(p, 2)))


def _correlations(sparse: Array, power: Array) -> Array:
    """Correlations, clipped to [-1, 1]; zero where a variance is not positive."""
    with np.errstate(divide="ignore"):
        inverse = np.where(power > 0, 1 / np.sqrt(np.maximum(power, 0.0)), 0.0)
    correlations: Array = np.clip(sparse * np.outer(inverse, inverse), -1.0, 1.0) + 0.0
    np.fill_diagonal(correlations, 0.0)
    return correlations
