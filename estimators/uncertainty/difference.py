"""A test whether two releases of one data set differ by more than their noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from gramercy.estimators.uncertainty.moment_errors import release_noise
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.manifest import ReleaseManifest

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """The difference of two released matrices with independent noise.

    Parameters
    ----------
    difference
        The later matrix minus the earlier one, without the means of the noise; shape (p, p).
    sd
        Standard deviation of the noise in each difference; shape (p, p).
    gaussian
        Whether both releases have Gaussian noise with independent entries, and divisors that are
        public or known to a tenth: then the test has a chi-squared law.
    shared
        Errors of noisy divisors, each of which has all entries at once: their standard deviations;
        shape (k, p, p). They are part of `sd`.

    Notes
    -----
    This compares the two tables, not the populations behind them. Most of their rows may be the
    same, so their sampling errors are not independent, and are left out.
    """

    difference: Array
    sd: Array
    gaussian: bool
    shared: Array

    @property
    def deviations(self) -> Array:
        """The difference in standard deviations of its noise; 0 where the noise is zero."""
        noisy = self.sd > 0
        return np.divide(self.difference, self.sd, out=np.zeros_like(self.sd), where=noisy)

    @property
    def p_value(self) -> float | None:
        """P-value of x' C^-1 x if the table is unchanged; None if its law is unknown.

        Here x has the m differences with noise, and C = D + U U' is their covariance, with D that
        of independent errors and U the `shared` ones.
        """
        if not self.gaussian:
            return None
        i, j = np.triu_indices(len(self.sd))
        own = self.sd[i, j] ** 2 - (self.shared[:, i, j] ** 2).sum(axis=0)
        noisy = own > 0
        root = np.sqrt(own[noisy])
        x, u = self.difference[i, j][noisy] / root, self.shared[:, i, j][:, noisy] / root
        along = u @ x
        square = x @ x - along @ np.linalg.solve(np.eye(len(u)) + u @ u.T, along)
        return float(scipy.stats.chi2.sf(square, x.size))


_INDEPENDENT = {"gaussian-isotropic", "gaussian-iid"}
_LEAST_ROWS = 10.0  # standard deviations of a noisy number of rows, for errors of first order


def comparable(first: ReleaseManifest, second: ReleaseManifest) -> bool:
    """Whether two releases estimate one matrix: columns, groups, normalisation, penalty."""
    keys = ("kind", "columns", "intercept", "normalisation", "privacy_unit", "by")
    penalties = {manifest.mechanism.get("penalty") for manifest in (first, second)}
    return (
        first.dataset.id == second.dataset.id
        and first.publication.has_matrix
        and all(getattr(first, key) == getattr(second, key) for key in keys)
        and len(penalties) == 1
    )


def change(later: Evidence, earlier: Evidence) -> Change:
    """The difference of two comparable releases; see `comparable`."""
    pair, p = (later, earlier), len(later.raw)
    noises = [release_noise(each) for each in pair]
    variances = [np.maximum(noise.variance(p), 0.0) for noise in noises]
    of_divisors = [term for noise in noises for term in noise.rank_one]
    shared = np.array([np.sqrt(max(c, 0.0)) * matrix for c, matrix in of_divisors])
    return Change(
        later.raw - earlier.raw,
        np.sqrt(sum(variances)),
        all(_is_gaussian(each) for each in pair),
        shared.reshape(-1, p, p),
    )


def _is_gaussian(evidence: Evidence) -> bool:
    known = evidence.divisor == "public" or (
        evidence.divisor == "noisy" and evidence.rows > _LEAST_ROWS * evidence.rows_sd
    )
    return known and evidence.law.family in _INDEPENDENT
