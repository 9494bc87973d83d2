"""What all estimators in the style of scikit-learn share: `fit`, `score` and a graph.

All of it is about zero, never about a mean: that is what a release holds.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from gramercy.estimators.estimator import Estimate, Estimator
from gramercy.estimators.own_evidence import of_matrix, of_rows
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]

_ROUNDING = float(np.finfo(np.float64).eps)


def evidence_in(X: Any) -> Evidence | None:
    """The evidence that a release has, or that this is; None for anything else."""
    found = X if isinstance(X, Evidence) else getattr(X, "evidence", None)
    return found if isinstance(found, Evidence) else None  # a table may have such a column


def name_columns(fitted: Any, count: int, names: Sequence[str]) -> None:
    """Set `n_features_in_` and `feature_names_in_` as scikit-learn does for a table."""
    fitted.n_features_in_ = count
    if names:
        fitted.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(fitted, "feature_names_in_"):
        del fitted.feature_names_in_


class MatrixEstimator(BaseEstimator):  # type: ignore[misc]
    """What all of them do; its parameters are the settings of the estimator's specification.

    Attributes
    ----------
    covariance_
        Shape (p, p), where the estimator knows of one.
    precision_
        Its inverse, shape (p, p); missing where that is not positive definite.
    edges_
        Weights of the graph, zero where there is no edge, shape (p, p); None where there is none.
    tuning_
        The numbers in force by name, such as the penalty.
    n_samples_
        Rows behind the matrix; noisy where the release says so.
    n_features_in_, feature_names_in_
        As scikit-learn has them; names are missing where nobody gave any.
    estimate_
        All that the estimator made, its tables too.
    """

    spec: ClassVar[type[Estimator]]
    has_moments: ClassVar[bool] = True  # an estimator of a graph alone has no likelihood

    def fit(self, X: Any, y: object = None) -> Self:
        """Estimate from a release, from evidence, or from rows.

        Parameters
        ----------
        X
            An opened release; an `Evidence`; or rows that are not private, shape (n, p), taken
            about zero and without noise.
        y
            Not used.

        Raises
        ------
        ValueError
            If the settings or the rows cannot be used.
        """
        evidence = evidence_in(X)
        if evidence is not None:
            name_columns(self, len(evidence.raw), evidence.names)
            return self._fit(evidence)
        rows = validate_data(self, X, dtype=np.float64)
        return self._fit(of_rows(rows, names=tuple(getattr(self, "feature_names_in_", ()))))

    def fit_matrix(
        self,
        S: ArrayLike,
        n_samples: float,
        law: NoiseLaw | None = None,
        *,
        names: Sequence[str] = (),
    ) -> Self:
        """Estimate from a second moment; see `estimators.own_evidence.of_matrix`."""
        evidence = of_matrix(S, n_samples, law, names=names)
        name_columns(self, len(evidence.raw), evidence.names)
        return self._fit(evidence)

    def _fit(self, evidence: Evidence) -> Self:
        found = self.spec(**self.get_params()).fit(evidence)
        for stale in ("covariance_", "precision_"):
            if hasattr(self, stale):
                delattr(self, stale)
        for name, matrix in _pair(found).items():
            setattr(self, name, matrix)
        self.estimate_ = found
        self.edges_ = found.edges
        self.tuning_ = dict(found.tuning)
        self.n_samples_ = evidence.rows
        return self

    @available_if(operator.attrgetter("has_moments"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: object = None) -> float:
        """Mean log-likelihood of rows of a Gaussian law with mean zero and this precision.

        Parameters
        ----------
        X
            Rows in the units of the matrix, shape (n, p); or another release, whose unbiased
            second moment gives the same on average.
        y
            Not used.

        Raises
        ------
        ValueError
            If there is no positive definite precision matrix.
        """
        check_is_fitted(self)
        if not hasattr(self, "precision_"):
            raise ValueError(f"this {type(self).__name__} has no positive definite precision_")
        evidence = evidence_in(X)
        if evidence is None:
            rows = validate_data(self, X, reset=False, dtype=np.float64)
            evidence = of_rows(rows)
        precision: Array = self.precision_
        log_det = np.linalg.slogdet(precision)[1]
        trace = (evidence.raw * precision).sum()
        return float(log_det - trace - len(precision) * math.log(2 * math.pi)) / 2

    def to_networkx(self) -> Any:
        """The graph: a `networkx.Graph` of all columns, weights on its edges.

        Raises
        ------
        ValueError
            If the estimate has no graph.
        """
        import networkx as nx  # takes a third of a second

        check_is_fitted(self)
        if self.edges_ is None:
            raise ValueError(f"a {type(self).__name__} has no graph")
        called, graph = self._called, nx.Graph()
        graph.add_nodes_from(called)
        for i, j in zip(*np.nonzero(np.triu(self.edges_, 1)), strict=True):
            graph.add_edge(called[i], called[j], weight=float(self.edges_[i, j]))
        return graph

    def to_graphml(self, path: str | Path) -> None:
        """Write the graph as GraphML, for Gephi, Cytoscape or igraph; see `to_networkx`."""
        import networkx as nx

        nx.write_graphml(self.to_networkx(), path)

    def to_pandas(self) -> pd.DataFrame:
        """What was estimated, labelled, shape (p, p): the precision matrix, or the covariance.

        The weights of the edges, where the estimate is a graph alone.
        """
        check_is_fitted(self)
        kind = self.estimate_.kind
        matrix = getattr(self, f"{kind}_") if kind in {"precision", "covariance"} else self.edges_
        return pd.DataFrame(matrix, index=self._called, columns=self._called)

    def to_csv(self, path: str | Path) -> None:
        """Write `to_pandas` as CSV with 17 digits, so that every number comes back as it was.

        In R: ``as.matrix(read.csv(path, row.names = 1, check.names = FALSE))``.
        """
        self.to_pandas().to_csv(path, float_format="%.17g", lineterminator="\n")

    @property
    def _called(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else list(names)


def _pair(found: Estimate) -> dict[str, Array]:
    """Both matrices, as far as one gives the other."""
    if found.kind not in {"precision", "covariance"}:
        return {}
    this, other = ("precision_", "covariance_")[:: 1 if found.kind == "precision" else -1]
    pair = {this: found.matrix}
    values = np.linalg.eigvalsh(found.matrix)
    if values[0] <= len(values) * _ROUNDING * abs(values[-1]):
        return pair
    inverse = np.linalg.inv(found.matrix)
    return pair | {other: (inverse + inverse.T) / 2}
