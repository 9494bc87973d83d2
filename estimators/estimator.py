"""What every estimator sees and gives. Post-processing: no privacy code, no private data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.model import digest
from schemas.noise import NoiseLaw
from schemas.request import EstimatorSpec


@dataclass(frozen=True)
class Evidence:
    """All that an estimator may look at: what a release has published.

    Parameters
    ----------
    raw, denoised
        Released second moment and its denoised form, shape (p, p).
    law
        Noise law in the units of `raw`.
    rows
        Public or noisy number of rows.
    """

    raw: NDArray[np.float64]
    denoised: NDArray[np.float64]
    law: NoiseLaw
    rows: float


@dataclass(frozen=True)
class Precision:
    """An estimated precision matrix.

    Parameters
    ----------
    matrix
        Symmetric, positive definite, shape (p, p).
    penalty
        The penalty in force.
    """

    matrix: NDArray[np.float64]
    penalty: float


class Estimator(EstimatorSpec, ABC):
    """Estimates a precision matrix from a release. Its fields are its settings."""

    @abstractmethod
    def fit(self, evidence: Evidence) -> Precision:
        """Estimate from what was published, deterministically."""

    @property
    def id(self) -> str:
        """Folder name of the result: the same settings on the same release give the same one."""
        return f"{self.name}-{digest(self.model_dump())[:8]}"
