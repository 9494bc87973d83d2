"""A noisy second moment whose graph is a chain; imported by subprocesses, so it imports little."""

from __future__ import annotations

import numpy as np

from gramercy.estimators.noise.draws import draw, stream
from gramercy.estimators.user_evidence import evidence_from_matrix
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw


def chain_evidence(
    noise: float, rows: int = 4000, p: int = 6, law: NoiseLaw | None = None
) -> Evidence:
    """A noisy second moment of a chain, in which only neighbouring columns are dependent."""
    precision = np.eye(p) + 0.4 * (np.eye(p, k=1) + np.eye(p, k=-1))
    moment = np.linalg.inv(precision)
    white = NoiseLaw(family="gaussian-isotropic", sd_diagonal=noise * 2**0.5, sd_off_diagonal=noise)
    law = law or white
    return evidence_from_matrix(moment + draw(stream(), p, law), rows, law)
