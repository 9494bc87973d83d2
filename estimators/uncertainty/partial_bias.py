"""What clipping does to partial correlations, where a release publishes what it took away.

Let R be the correlations and X their inverse, V_ia = X_ia / sqrt(X_ii) and w_ij = X_ij / sqrt(X_ii
X_jj), so that partial correlations are -w_ij. A change D of the correlations, with a zero diagonal,
moves w_ij to first order by

sum over a < b of D_ab f_ab,  f_ab = w_ij (V_ia V_ib + V_ja V_jb) - (V_ia V_jb + V_ib V_ja).

D is what the lost moments add to the correlations of the clipped rows. The noise of these moments,
and rows that no matrix has, are errors of the same kind as the noise of the release. What is not
known by cells that are missing together has standard deviations s_ab, which are taken to be
independent: the variance of w_ij by it is the sum of s_ab^2 f_ab^2. On nine kinds of tables with
20,000 rows at epsilon .5 and 4, 95 % intervals cover .97 of the partial correlations of the
population, and .96 where the matrix is drawn in the metric of a pilot matrix; but .8 to .9 where
one row in a hundred is six times as long and of another law.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.uncertainty.correlation_errors import (
    CorrelationErrors,
    variance_coefficients,
)
from gramercy.estimators.uncertainty.moment_errors import (
    completed_moments,
    correlations,
    inverse_shares,
)
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_MOST_DEVIATION = 0.3  # by clipping, of a partial correlation that is known
_MOST_EXACT = 256  # columns; of more, the variance is bounded from above


def with_clipping(
    errors: CorrelationErrors, loadings: Array, evidence: Evidence
) -> CorrelationErrors:
    """Partial correlations with what clipping did to them.

    Unchanged if the release does not publish what it took away. `loadings`: V_ia / sqrt(C_aa) for
    the moments C about the means, corrected for missing cells; shape (q, q).
    """
    clipped = clipped_moments(evidence)
    if clipped is None or not loadings.any():
        return errors
    kept = completed_moments(evidence, evidence.repaired)
    change = np.nan_to_num(clipped.correlation - np.nan_to_num(correlations(kept)))
    deviation = np.nan_to_num(clipped.correlation_missing / 2)
    unit = np.maximum(inverse_shares(evidence), 1.0) / (evidence.radius or 1.0)
    of_lost = clipped.lost.all_errors(kept / np.outer(unit, unit)).scaled(unit)
    for each in (change, deviation):
        np.fill_diagonal(each, 0.0)
    v = loadings * np.sqrt(np.maximum(np.diag(kept), 0.0))
    w = -errors.estimate
    moved = congruence(v, change)  # symmetric to the last digit
    own = np.diag(moved)
    shift = moved - w * np.add.outer(own, own) / 2
    np.fill_diagonal(shift, 0.0)
    squares = _deviations(v, w, deviation**2) ** 2 + (shift / 2) ** 2
    a, b, c = variance_coefficients(of_lost.transformed(loadings), len(w))
    spread = np.sqrt(squares + np.maximum(a + b * w + c * w**2, 0.0))
    return errors.with_clipping(shift, spread, _MOST_DEVIATION)


def _deviations(v: Array, w: Array, variance: Array) -> Array:
    """Square roots of the sums over a < b of s_ab^2 f_ab^2, with `variance` s^2; shape (q, q)."""
    squares = v**2
    half = squares @ variance
    both = half @ squares.T  # sum of s^2 V_ia^2 V_jb^2
    mixed = (half * v) @ v.T  # sum of s^2 V_ia^2 V_ib V_jb
    crossed = both
    if len(v) <= _MOST_EXACT:
        products = (v * row for row in v)
        crossed = np.array([((each @ variance) * each).sum(axis=1) for each in products])
    own = np.diag(both)
    total = (
        both + crossed + w**2 * (np.add.outer(own, own) / 2 + crossed) - 2 * w * (mixed + mixed.T)
    )
    deviations: Array = np.sqrt(np.maximum((total + total.T) / 2, 0.0))
    return deviations
