"""What every estimator sees and gives. Post-processing: no privacy code, no private data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.manifest import Asked, EstimateKind
from gramercy.schemas.model import digest
from gramercy.schemas.specs import EstimatorSpec


@dataclass(frozen=True)
class Estimate:
    """What was estimated.

    Parameters
    ----------
    kind
        What it is, and how a report shows it.
    matrices
        Symmetric matrices by name, the main one first; shape (p, p).
    tuning
        The numbers in force, by name: a penalty, a threshold.
    tables
        Other results by name, in columns of numbers or texts.
    edges
        Weights of the graph, zero where there is no edge, for estimates that are one; shape (p, p).
    """

    kind: EstimateKind
    matrices: Mapping[str, NDArray[np.float64]]
    tuning: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    edges: NDArray[np.float64] | None = None

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The main matrix.

        Raises
        ------
        RequestError
            If there is none, only tables.
        """
        for each in self.matrices.values():
            return each
        raise RequestError(
            f"An estimate of kind '{self.kind}' has no matrix.",
            f"Its tables are {', '.join(self.tables)}.",
        )


class Estimator(EstimatorSpec, ABC):
    """Estimates something from a release. Its fields are its settings."""

    @abstractmethod
    def fit(self, evidence: Evidence) -> Estimate:
        """Estimate from what was published, deterministically."""

    def check(self, asked: Asked) -> None:
        """Refuse a release that these settings cannot be estimated from, before it is paid for.

        Raises
        ------
        RequestError
            By what is asked for alone.
        """

    @property
    def id(self) -> str:
        """Folder name of the result: the same settings on the same release give the same one."""
        return f"{self.name}-{digest(self.model_dump())[:8]}"


def precision_estimate(matrix: NDArray[np.float64], **tuning: float) -> Estimate:
    """A precision matrix; its graph has the partial correlations -T_ij / sqrt(T_ii T_jj)."""
    edges = partial_correlations(matrix) if np.isfinite(matrix).all() else None
    return Estimate("precision", {"precision": matrix}, tuning, edges=edges)


def partial_correlations(precision: NDArray[np.float64]) -> NDArray[np.float64]:
    """-T_ij / sqrt(T_ii T_jj), zero on the diagonal; shape (p, p)."""
    root = np.sqrt(np.diag(precision))
    found: NDArray[np.float64] = -precision / np.outer(root, root) + 0.0  # no negative zeros
    np.fill_diagonal(found, 0.0)
    return found
