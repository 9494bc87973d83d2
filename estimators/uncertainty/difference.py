"""Whether two releases of one data set differ by more than their noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from gramercy.estimators.uncertainty.entry_errors import noise_of
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.manifest import ReleaseManifest

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """The difference of two released matrices; both have noise of their own.

    Parameters
    ----------
    difference
        The later one less the earlier one, without the noise's means; shape (p, p).
    sd
        Standard deviation of what both noises make of it; shape (p, p).
    gaussian
        Whether the noise of both is Gaussian with independent entries, and both were divided by
        public numbers, so that its squares add up to a chi-squared variable.

    Notes
    -----
    The two tables are what is compared, not the populations behind them: as most of their rows may
    be the same, sampling errors of the two are not independent, and are left out.
    """

    difference: Array
    sd: Array
    gaussian: bool

    @property
    def deviations(self) -> Array:
        """The difference in standard deviations of its noise; 0 where there is none."""
        known = self.sd > 0
        return np.divide(self.difference, self.sd, out=np.zeros_like(self.sd), where=known)

    @property
    def p_value(self) -> float | None:
        """Of so large a sum of squares if nothing changed; None where its law is not known."""
        if not self.gaussian:
            return None
        squares = self.deviations[np.triu_indices(len(self.sd))] ** 2
        return float(chi2.sf(squares.sum(), squares.size))


_INDEPENDENT = {"gaussian-isotropic", "gaussian-iid"}


def comparable(one: ReleaseManifest, other: ReleaseManifest) -> bool:
    """Whether two releases speak of the same matrix: columns, constants, normalisation, penalty."""
    same = ("kind", "columns", "intercept", "normalisation", "unit")
    penalties = {each.mechanism.get("penalty") for each in (one, other)}
    return (
        one.dataset.id == other.dataset.id
        and all(getattr(one, key) == getattr(other, key) for key in same)
        and (one.kind != "precision" or len(penalties) == 1)
    )


def change(later: Evidence, earlier: Evidence) -> Change:
    """The difference of two comparable releases; see `comparable`."""
    both, p = (later, earlier), len(later.raw)
    variances = [np.maximum(noise_of(each).variance(p), 0.0) for each in both]
    independent = all(each.law.family in _INDEPENDENT and each.divisor == "public" for each in both)
    return Change(later.raw - earlier.raw, np.sqrt(sum(variances)), independent)
