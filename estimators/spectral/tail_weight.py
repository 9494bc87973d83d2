"""How much more sampling errors vary than those of Gaussian rows, from the published row lengths.

For Gaussian rows, |x - m|^2 has the variance 2 tr C^2. Rows with heavy tails have more, and their
second moments have larger sampling errors: here by the same factor for every direction.
"""

from __future__ import annotations

import numpy as np

from gramercy.estimators.moments import schur_complement
from gramercy.estimators.own_units import weight_lost
from gramercy.schemas.evidence import Evidence


def tail_weight(evidence: Evidence) -> float:
    """Variance of the rows' squared lengths over that of Gaussian rows; at least 1.

    1 if the lengths are not published, or if folds show the sampling errors themselves.

    Notes
    -----
    Lengths are those of rows about the centres, clipped at the radius, with the intercept. Squared
    lengths within a bin are taken to be the product of its edges. Means away from the centres
    increase the variance, so that the factor is too large rather than too small.
    """
    lengths, radius = evidence.lengths, evidence.radius
    if lengths is None or radius is None or weight_lost(evidence.repaired, evidence.deviations):
        return 1.0
    upper = np.where(np.isfinite(lengths.upper), lengths.upper, radius)
    squared = np.minimum(lengths.lower * np.maximum(upper, lengths.lower), radius**2)
    rows = float(lengths.count.sum())
    covariance = radius**2 * schur_complement(evidence.repaired)
    gaussian = 2 * float((covariance**2).sum())
    if not (rows > 0 and gaussian > 0):
        return 1.0
    share = lengths.count / rows  # negative counts are kept: their noise has mean zero
    variance = float(share @ squared**2) - float(share @ squared) ** 2
    return max(variance / gaussian, 1.0)
