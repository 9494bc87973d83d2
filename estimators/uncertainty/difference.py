"""A test whether two releases of one data set differ by more than their noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

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
        Whether both releases have Gaussian noise with independent entries and public divisors, so
        that the sum of squares has a chi-squared law.

    Notes
    -----
    This compares the two tables, not the populations behind them. Most of their rows may be the
    same, so their sampling errors are not independent, and are left out.
    """

    difference: Array
    sd: Array
    gaussian: bool

    @property
    def deviations(self) -> Array:
        """The difference in standard deviations of its noise; 0 where the noise is zero."""
        noisy = self.sd > 0
        return np.divide(self.difference, self.sd, out=np.zeros_like(self.sd), where=noisy)

    @property
    def p_value(self) -> float | None:
        """P-value of the sum of squares if the table is unchanged; None if its law is unknown."""
        if not self.gaussian:
            return None
        squares = self.deviations[np.triu_indices(len(self.sd))] ** 2
        return float(chi2.sf(squares.sum(), squares.size))


_INDEPENDENT = {"gaussian-isotropic", "gaussian-iid"}


def comparable(first: ReleaseManifest, second: ReleaseManifest) -> bool:
    """Whether two releases estimate one matrix: columns, groups, normalisation, penalty."""
    keys = ("kind", "columns", "intercept", "normalisation", "privacy_unit", "by")
    penalties = {manifest.mechanism.get("penalty") for manifest in (first, second)}
    return (
        first.dataset.id == second.dataset.id
        and first.kind != "marginals"
        and all(getattr(first, key) == getattr(second, key) for key in keys)
        and (first.kind != "precision" or len(penalties) == 1)
    )


def change(later: Evidence, earlier: Evidence) -> Change:
    """The difference of two comparable releases; see `comparable`."""
    pair, p = (later, earlier), len(later.raw)
    variances = [np.maximum(release_noise(each).variance(p), 0.0) for each in pair]
    gaussian = all(each.law.family in _INDEPENDENT and each.divisor == "public" for each in pair)
    return Change(later.raw - earlier.raw, np.sqrt(sum(variances)), gaussian)
