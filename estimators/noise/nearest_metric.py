"""The metric in which the noise of a release, or of a pool, is nearest to spherical noise.

The noise of a release that was drawn in a metric, of a pool of releases in different units, and
about means, is a sum of mapped terms. Shrinking eigenvalues, a floor under them and a ridge suit
noise of one size in all directions, so they are applied in this metric.

With P_k = t_k L_k L_k^T for the terms L_k E L_k^T of deviation t_k, the metric is the P of the
spherical noise with the same E[N P^-1 N] as their sum N:

(q + 1) P = sum_k (P_k tr(P_k P^-1) + P_k P^-1 P_k),

which is P_1 for a single term. It does not depend on the units of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramercy.common.metric import congruence
from gramercy.estimators.noise.denoise import denoise
from gramercy.estimators.noise.draws import symmetric_root
from gramercy.schemas.evidence import NoiseTerm
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]

_STEPS, _TOLERANCE = 30, 1e-9
_LEAST = 1e-9  # of the largest eigenvalue: of a direction without noise


def noise_metric(law: NoiseLaw, terms: Sequence[NoiseTerm], p: int) -> Array:
    """P, symmetric and positive definite, for which the noise is nearest to P^(1/2) E P^(1/2).

    E has the deviation 1 off the diagonal. Shape (p, p). `law`, `terms`: as of `Evidence`.
    """
    if not terms:
        return np.eye(p) * law.sd_off_diagonal
    parts = [_definite(term.law.sd_off_diagonal * term.linear @ term.linear.T) for term in terms]
    metric: Array = np.sum(parts, axis=0) / math.sqrt(len(parts))
    for _ in range(_STEPS if len(parts) > 1 else 0):
        inverse = np.asarray(np.linalg.inv(metric), np.float64)
        same = sum((inverse * part).sum() * part + congruence(part, inverse) for part in parts) / (
            p + 1
        )
        # Newton's step for the root: the equation is P = same(P), which is inverse to P.
        change = (same - metric) / 2
        metric = metric + change
        if np.abs(change).max() <= _TOLERANCE * np.abs(metric).max():
            break
    return metric


def _definite(matrix: Array) -> Array:
    return matrix + _LEAST * float(np.diag(matrix).max()) * np.eye(len(matrix))


def denoise_in_metric(
    matrix: Array,
    law: NoiseLaw,
    terms: Sequence[NoiseTerm],
    trace: float,
    rows: float,
    *,
    unit: bool,
) -> Array:
    """As `denoise`, for noise that is a sum of terms: with the eigenvectors in its metric.

    `law`, `terms`: as of `Evidence`. The public bound on the trace says nothing in another metric.
    """
    if not terms or unit:
        return denoise(matrix, law, trace, rows, unit=unit)
    root = symmetric_root(noise_metric(law, terms, len(matrix)))
    diagonal = math.sqrt(2) if law.rotation_invariant else 1.0
    spherical = law.model_copy(
        update={"sd_diagonal": diagonal, "sd_off_diagonal": 1.0, "mean": 0.0}
    )
    inverse = np.asarray(np.linalg.inv(root), np.float64)
    shrunk = denoise(congruence(inverse, matrix), spherical, math.inf, rows, unit=False)
    return congruence(root, shrunk)
