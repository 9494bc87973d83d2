"""The largest eigenvalue that noise alone produces, by simulation from the law of the noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.noise.draws import (
    Stream,
    draw,
    draw_row_noise,
    equivalent_rows,
    stream,
)
from gramercy.schemas.evidence import Evidence, NoiseTerm

Array = NDArray[np.float64]

_MOST, _FEWEST, _ENOUGH, _LARGE = 400, 30, 200, 8  # numbers of draws
_SMALL, _SIMULATED = 40, 300  # numbers of columns
_NORMAL_95 = 1.645


def noise_edge(evidence: Evidence, linear: Array) -> float:
    """The 95 % quantile of the largest eigenvalue of L E L^T, for the noise E of a release.

    Parameters
    ----------
    evidence
        A release, for the law of its noise.
    linear
        L, shape (q, p).

    Notes
    -----
    Draws have a public seed. From fewer than 200 draws, it is the mean plus 1.645 standard
    deviations. Eigenvalues of the matrix without noise are not negative, so of a direction in which
    the rows do not vary, noise produces more than this in 5 % of releases at most.
    """
    if not evidence.law.has_noise or not len(linear):
        return 0.0
    source = stream()
    largest = np.array(
        [np.linalg.eigvalsh(linear @ each @ linear.T)[-1] for each in _noise(evidence, source)]
    )
    if len(largest) >= _ENOUGH:
        return float(np.quantile(largest, 0.95))
    return float(largest.mean() + _NORMAL_95 * largest.std(ddof=1))


def _noise(evidence: Evidence, source: Stream) -> Iterator[Array]:
    """Draws of the noise of a release, or of a pool of releases."""
    law, p = evidence.law, len(evidence.raw)
    if law.cell_variance is not None:
        rows = max(1, round(evidence.rows))
        like = equivalent_rows(evidence.repaired, rows)
        for _ in range(_draws(p)):
            yield draw_row_noise(source, like, law.cell_variance, rows)
        return
    terms = evidence.terms or (NoiseTerm(law, np.eye(p)),)
    for _ in range(_draws(p)):
        noise = np.zeros((p, p))
        for term in terms:
            noise += term.linear @ draw(source, term.linear.shape[1], term.law) @ term.linear.T
        yield noise


def _draws(p: int) -> int:
    """Number of matrices to draw in about a second."""
    if p > _SIMULATED:
        return _LARGE
    return min(_MOST, max(_FEWEST, int(_MOST * (_SMALL / p) ** 1.5)))
