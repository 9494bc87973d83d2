"""How much more the squared lengths of rows vary than those of Gaussian rows.

Rows with heavy tails have larger sampling errors than Gaussian rows of the same second moment. One
factor stands for all directions: the variance of the rows' squared lengths, from their published
histogram, over that of Gaussian rows. Where long rows are long in all columns together, it is
larger than the factor of any moment; where only some columns have heavy tails, it is an average.
"""

from __future__ import annotations

import numpy as np

from gramercy.estimators.uncertainty.moment_errors import has_intercept
from gramercy.schemas.evidence import Evidence

_CLEAR = 3.0  # standard deviations of the noise that the count of an occupied bin exceeds


def tail_factor(evidence: Evidence) -> float:
    """Factor of the sampling variance for rows with heavy tails; at least 1.

    Returns
    -------
    float
        1 if the lengths are not published, or if noise hides them.

    Notes
    -----
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
