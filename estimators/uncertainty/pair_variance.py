"""Variance of x_i x_j for every pair of columns, for rows of any law, as far as a release shows it.

A sample covariance has this variance, divided by the number of rows. Under Gaussian rows it is
S_ii S_jj + S_ij^2, S_ij^2 less than E x_i^2 x_j^2. Where rows with heavy tails are far out in
several columns together, it is larger. A release shows by how much in two ways:

- *Folds.* The jackknife has the variance of every entry; its ratios to that of Gaussian rows are
  moderated, since each has few degrees of freedom (see `uncertainty.correlation_errors.moderated`).
- *Lengths and histograms.* With a_i = x_i^2, the published lengths of the rows show
  Var(sum a_i) = sum_i Var(a_i) + sum_(i != j) Cov(a_i, a_j), and the histograms of the columns
  show the first sum by their kurtosis. What the second has beyond that of Gaussian rows,
  2 sum S_ij^2, is shared among all pairs in proportion to S_ii S_jj. It is exact for rows
  multiplied by a common random factor, as of Student's t distribution, and for independent columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.uncertainty.column_kurtosis import GAUSSIAN, column_kurtosis
from gramercy.estimators.uncertainty.correlation_errors import moderated
from gramercy.estimators.uncertainty.jackknife import jackknife
from gramercy.estimators.uncertainty.moment_errors import has_intercept, tail_factor
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]


def gaussian_variance(evidence: Evidence) -> Array:
    """S_ii S_jj + S_ij^2 with S the denoised matrix, shape (p, p)."""
    return _products(evidence) + evidence.repaired**2


def pair_variance(evidence: Evidence) -> Array:
    """Var(x_i x_j) from the folds, else from the published lengths, else of Gaussian rows.

    `evidence`: without an intercept. Returns shape (p, p): symmetric; at least that of Gaussian
    rows unless there are folds.
    """
    gaussian, rows = gaussian_variance(evidence), max(evidence.rows, 1.0)
    by_noise = evidence.deviations**2
    folds = jackknife(evidence, lambda matrix: matrix)
    if folds is None:
        return gaussian + _beyond_gaussian(evidence) * _products(evidence)
    upper = np.triu_indices(len(gaussian))
    assumed = (gaussian / rows + by_noise)[upper]
    used = (folds.standard_error[upper] > 0) & (assumed > 0)
    ratio = np.ones(len(assumed))
    squares = folds.standard_error[upper][used] ** 2
    ratio[used] = moderated(squares / assumed[used], folds.freedom)[0]
    total = np.zeros_like(gaussian)
    total[upper] = ratio * assumed
    total = np.triu(total) + np.triu(total, 1).T
    return rows * np.maximum(total - by_noise, 0.0)


def _products(evidence: Evidence) -> Array:
    power = np.maximum(np.diagonal(evidence.repaired), 0.0)
    return np.outer(power, power)


def _beyond_gaussian(evidence: Evidence) -> float:
    """Mean of Cov(x_i^2, x_j^2) over pairs beyond that of Gaussian rows, over that of S_ii S_jj."""
    if evidence.lengths is None or evidence.radius is None:
        return 0.0
    S = evidence.repaired
    power = np.maximum(np.diagonal(S), 0.0)
    pairs = float(_products(evidence).sum() - power @ power)
    scaled = power * evidence.radius**2
    single = float((column_kurtosis(evidence, scaled) - 1) @ power**2)
    squared = float((S * S).sum())
    together = 2 * squared * tail_factor(evidence) - single
    beyond = together - 2 * (squared - float(power @ power))
    return max(beyond / pairs, 0.0) if pairs > 0 else 0.0


def pair_factors(evidence: Evidence) -> Array:
    """Factor of the sampling variance of (partial) correlations of rows with heavy tails.

    E x_i^2 x_j^2 over S_ii S_jj of two uncorrelated columns, at most: all that the squared lengths
    vary beyond Gaussian rows, sum_(i != j) (f_ij - 1) S_ii S_jj, may be due to pairs of columns,
    most to those of heavy tails. With the kurtosis k, f_ij <= sqrt(k_i k_j) / 3, as of rows
    multiplied by a common random factor. At least 1; 1 if no lengths are published. Shape (q, q),
    with q = p, or p - 1 of a matrix with an intercept.
    """
    offset, tails = int(has_intercept(evidence)), tail_factor(evidence)
    power = np.maximum(np.diagonal(evidence.repaired)[offset:], 0.0)
    factors = np.ones((len(power), len(power)))
    if tails == 1.0 or evidence.radius is None or len(power) < 2:
        return factors
    kurtosis = column_kurtosis(evidence, power * evidence.radius**2)
    heavy = np.maximum(np.sqrt(np.outer(kurtosis, kurtosis)) / GAUSSIAN - 1, 0.0)
    total = 2 * (tails - 1) * float((evidence.repaired[offset:, offset:] ** 2).sum())
    shares = heavy * np.outer(power, power)
    np.fill_diagonal(shares, 0.0)
    if (among := float(shares.sum())) > 0:
        factors += min(total / among, 1.0) * heavy
    np.fill_diagonal(factors, 1.0)
    return factors
