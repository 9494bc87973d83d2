"""Base classes of estimators. Post-processing: no privacy code, no private data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence, ReleaseEvidence
from gramercy.schemas.manifest import EstimateKind, ReleaseSpec
from gramercy.schemas.model import digest
from gramercy.schemas.request_parts import EstimatorSpec


@dataclass(frozen=True)
class Estimate:
    """The result of an estimator.

    Parameters
    ----------
    kind
        Kind of result; it decides how a report shows it.
    matrices
        Symmetric matrices by name, the main one first; shape (p, p).
    tuning
        Tuning parameters in use, by name: a penalty, a threshold.
    tables
        Other results by name, in columns of numbers or texts.
    edges
        Weights of the graph, zero for a missing edge, shape (p, p); None without a graph.
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
            If the estimate consists of tables only.
        """
        for matrix in self.matrices.values():
            return matrix
        raise families.ESTIMATE(
            "An estimate of kind '{kind}' has no matrix.",
            "Its tables are: {tables}.",
            kind=self.kind,
            tables=tuple(self.tables),
        )


class Estimator(EstimatorSpec, ABC):
    """An estimator; its fields are its settings."""

    redrawn: ClassVar[bool] = False  # whether its graph is published with its stability

    @abstractmethod
    def fit(self, evidence: Evidence) -> Estimate:
        """Estimate from the published matrices; deterministic."""

    def check(self, spec: ReleaseSpec) -> None:
        """Check before a release is charged that these settings can be estimated from it.

        Raises
        ------
        RequestError
            If the specification of the release does not suit these settings.
        """

    @property
    def other_releases(self) -> tuple[str, ...]:
        """Names of the other releases that it needs, as DATASET/RELEASE."""
        return ()

    def check_together(self, releases: Sequence[tuple[str, ReleaseSpec]]) -> None:
        """Check before a release is charged that it suits the other releases.

        Parameters
        ----------
        releases
            Name and facts of the planned release, and of each of `other_releases`.

        Raises
        ------
        RequestError
            If their facts show that this estimate of them is impossible.
        """

    def evidence_of(self, releases: Sequence[ReleaseEvidence]) -> Evidence:
        """The evidence that `fit` receives.

        Parameters
        ----------
        releases
            The release, and each of `other_releases`.

        Raises
        ------
        RequestError
            If this estimate of them is impossible.
        """
        return releases[0].evidence

    @property
    def id(self) -> str:
        """Folder name of the result; equal for equal settings."""
        return f"{self.name}-{digest(self.model_dump())[:8]}"


def precision_estimate(
    matrix: NDArray[np.float64], *, definite: bool = True, **tuning: float
) -> Estimate:
    """Estimate from a precision matrix; its graph has the partial correlations as weights.

    If it is not positive definite, it is a graph with coefficients.
    """
    edges = partial_correlations(matrix) if np.isfinite(matrix).all() else None
    if definite:
        return Estimate("precision", {"precision": matrix}, tuning, edges=edges)
    return Estimate("graph", {"coefficients": matrix}, tuning, edges=edges)


def partial_correlations(precision: NDArray[np.float64]) -> NDArray[np.float64]:
    """-T_ij / sqrt(T_ii T_jj), zero on the diagonal; shape (p, p)."""
    root = np.sqrt(np.diag(precision))
    partial: NDArray[np.float64] = -precision / np.outer(root, root) + 0.0  # no negative zeros
    np.fill_diagonal(partial, 0.0)
    return partial


def names_of(given: Any) -> Any:
    """Names from a text with commas, as on the command line; anything else unchanged."""
    if isinstance(given, str):
        return tuple(name.strip() for name in given.split(",") if name.strip())
    return given
