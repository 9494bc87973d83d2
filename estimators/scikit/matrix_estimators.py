"""Base class of the estimators in the style of scikit-learn: `fit`, `score` and a graph.

Moments of rows are about zero, as in a release without an intercept.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from gramercy.common.plotting import Picture
from gramercy.estimators.clime import Clime
from gramercy.estimators.discoveries import Discoveries
from gramercy.estimators.estimator import Estimator
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.neighbourhood import NeighbourhoodSelection
from gramercy.estimators.ridge import Ridge
from gramercy.estimators.scio import Scio
from gramercy.estimators.threshold import ThresholdedCovariance
from gramercy.estimators.user_evidence import evidence_from_matrix, evidence_from_rows
from gramercy.estimators.wishart_prior import WishartPrior
from gramercy.schemas import families
from gramercy.schemas.errors import InvalidValue
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.model import parse
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request_parts import EstimatorSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.common.graphs import Graph

Array = NDArray[np.float64]

_ROUNDING = float(np.finfo(np.float64).eps)


def evidence_in(X: Any) -> Evidence | None:
    """The evidence of a release, or X if it is evidence; None for anything else."""
    evidence = X if isinstance(X, Evidence) else getattr(X, "evidence", None)
    return evidence if isinstance(evidence, Evidence) else None  # may be a column of a table


def name_columns(fitted: Any, count: int, names: Sequence[str]) -> None:
    """Set `n_features_in_` and `feature_names_in_` as scikit-learn does for a table."""
    fitted.n_features_in_ = count
    if names:
        fitted.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(fitted, "feature_names_in_"):
        del fitted.feature_names_in_


def init_of(spec: type[Estimator]) -> Callable[..., None]:
    """An ``__init__`` whose parameters are the settings of an estimator, for scikit-learn."""
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [
            inspect.Parameter("self", either),
            *(
                inspect.Parameter(name, either, default=setting.default)
                for name, setting in spec.model_fields.items()
                if name not in EstimatorSpec.model_fields
            ),
        ]
    )

    def init(*given: Any, **named: Any) -> None:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        vars(bound.arguments.pop("self")).update(bound.arguments)

    init.__name__, init.__signature__ = "__init__", signature  # type: ignore[attr-defined]
    return init


class MatrixEstimator(BaseEstimator):  # type: ignore[misc]
    """Base class; the parameters are the settings of the estimator.

    Attributes
    ----------
    covariance_
        Covariance matrix, shape (p, p); missing if the estimator does not give one. From a release
        it is the second moment of its normalised rows: of columns divided by their public scales,
        with a row for the intercept if there is one. `release.covariance` has the columns' own
        units.
    precision_
        Its inverse, shape (p, p); missing if the covariance matrix is not positive definite.
    edges_
        Weights of the graph, zero for a missing edge, shape (p, p); None without a graph.
    tuning_
        Tuning parameters in use by name, such as the penalty.
    n_samples_
        Number of rows; it is noisy if the release says so.
    n_features_in_, feature_names_in_
        As in scikit-learn; without names the latter is missing.
    estimate_
        The full result of the estimator, with its tables.
    """

    spec: ClassVar[type[Estimator]]  # its settings are the parameters
    has_moments: ClassVar[bool] = True  # a likelihood needs moments

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__init__ = init_of(cls.spec)  # type: ignore[method-assign]

    def fit(self, X: Any, y: object = None) -> Self:
        """Estimate from a release, from evidence, or from rows.

        Parameters
        ----------
        X
            An opened release; an `Evidence`; or rows that are not private, shape (n, p). Moments
            of rows are about zero.
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
        return self._fit(
            evidence_from_rows(rows, names=tuple(getattr(self, "feature_names_in_", ())))
        )

    def fit_matrix(
        self,
        S: ArrayLike,
        n_samples: float,
        law: NoiseLaw | None = None,
        *,
        names: Sequence[str] = (),
    ) -> Self:
        """Estimate from a second moment; see `estimators.user_evidence.evidence_from_matrix`."""
        evidence = evidence_from_matrix(S, n_samples, law, names=names)
        name_columns(self, len(evidence.raw), evidence.names)
        return self._fit(evidence)

    def _fit(self, evidence: Evidence) -> Self:
        name, settings = type(self).__name__, self.get_params()
        estimate = parse(self.spec, settings, name, InvalidValue).fit(evidence)
        for stale in ("covariance_", "precision_"):
            if hasattr(self, stale):
                delattr(self, stale)
        if estimate.kind in {"precision", "covariance"}:
            setattr(self, f"{estimate.kind}_", estimate.matrix)
            values = np.linalg.eigvalsh(estimate.matrix)
            if not values[0] <= len(values) * _ROUNDING * abs(values[-1]):
                inverse = np.linalg.inv(estimate.matrix)
                other = "covariance_" if estimate.kind == "precision" else "precision_"
                setattr(self, other, (inverse + inverse.T) / 2)
        self.estimate_ = estimate
        self.edges_ = estimate.edges
        self.tuning_ = dict(estimate.tuning)
        self.n_samples_ = evidence.rows
        return self

    @available_if(operator.attrgetter("has_moments"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: object = None) -> float:
        """Mean log-likelihood of rows under a Gaussian law with mean zero and this precision.

        Parameters
        ----------
        X
            Rows in the units of the matrix, shape (n, p); or another release, whose unbiased
            second moment gives the same value on average.
        y
            Not used.

        Raises
        ------
        ValueError
            If the estimate does not have a positive definite precision matrix.
        """
        check_is_fitted(self)
        if not hasattr(self, "precision_"):
            raise families.MATRIX(
                "This {estimator} has no precision_: its covariance matrix is not positive "
                "definite.",
                estimator=type(self).__name__,
            )
        evidence = evidence_in(X)
        if evidence is None:
            rows = validate_data(self, X, reset=False, dtype=np.float64)
            evidence = evidence_from_rows(rows)
        precision: Array = self.precision_
        log_det = np.linalg.slogdet(precision)[1]
        trace = (evidence.raw * precision).sum()
        return float(log_det - trace - len(precision) * math.log(2 * math.pi)) / 2

    def to_networkx(self) -> Any:
        """The graph as a `networkx.Graph` of all columns, with edge weights.

        Raises
        ------
        ValueError
            If the estimate has no graph.
        """
        from gramercy.common.graphs import weighted_graph  # imports networkx: a third of a second

        check_is_fitted(self)
        if self.edges_ is None:
            raise families.MATRIX(
                "{estimator} does not estimate a graph.", estimator=type(self).__name__
            )
        return weighted_graph(self._names, self.edges_)

    def to_graphml(self, path: str | Path) -> None:
        """Write the graph as GraphML, for Gephi, Cytoscape or igraph; see `to_networkx`."""
        import networkx as nx

        nx.write_graphml(self.to_networkx(), path)

    def to_pandas(self) -> pd.DataFrame:
        """The estimated precision or covariance matrix with names, shape (p, p).

        For an estimator of a graph only, the weights of the edges.
        """
        check_is_fitted(self)
        kind = self.estimate_.kind
        matrix = getattr(self, f"{kind}_") if kind in {"precision", "covariance"} else self.edges_
        return pd.DataFrame(matrix, index=self._names, columns=self._names)

    def to_frame(self, name: Literal["precision", "covariance", "edges"]) -> pd.DataFrame:
        """One of the estimated matrices with names, shape (p, p).

        Parameters
        ----------
        name
            That of the attribute `precision_`, `covariance_` or `edges_`.

        Raises
        ------
        ValueError
            If the estimate does not have it.
        """
        check_is_fitted(self)
        matrix = getattr(self, f"{name}_", None)
        if matrix is None:
            raise families.MATRIX(
                "This {estimator} has no {name}_.",
                "See .estimate_ for all.",
                estimator=type(self).__name__,
                name=name,
            )
        return pd.DataFrame(matrix, index=self._names, columns=self._names)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the graph: see `Graph.plot`, and `to_networkx`, which raises if there is none."""
        graph: Graph = self.to_networkx()
        return graph.plot(ax)

    def picture(self) -> Picture:
        """A picture of the graph with names on hover; raises as `to_networkx`."""
        graph: Graph = self.to_networkx()
        return graph.picture()

    def to_csv(self, path: str | Path) -> None:
        """Write `to_pandas` as CSV with 17 digits, which preserves every number exactly.

        In R: ``as.matrix(read.csv(path, row.names = 1, check.names = FALSE))``.
        """
        self.to_pandas().to_csv(path, float_format="%.17g", lineterminator="\n")

    @property
    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else list(names)


class RidgePrecision(MatrixEstimator):
    """`estimators.ridge.Ridge`: a dense precision matrix."""

    spec = Ridge


class SparsePrecision(MatrixEstimator):
    """`estimators.graphical_lasso.GraphicalLasso`: a sparse precision matrix.

    Examples
    --------
    A chain: a and c are conditionally independent given b.

    >>> import numpy as np
    >>> from gramercy.estimators.scikit import SparsePrecision
    >>> S = np.linalg.inv([[1.0, -0.4, 0.0], [-0.4, 1.0, -0.4], [0.0, -0.4, 1.0]])
    >>> fitted = SparsePrecision(penalty=0.02).fit_matrix(S, 1000, names=["a", "b", "c"])
    >>> fitted.precision_.round(2)
    array([[ 0.98, -0.38,  0.  ],
           [-0.38,  0.97, -0.38],
           [ 0.  , -0.38,  0.98]])
    >>> list(fitted.to_networkx().edges)
    [('a', 'b'), ('b', 'c')]
    """

    spec = GraphicalLasso


class SparseCovariance(MatrixEstimator):
    """`estimators.threshold.ThresholdedCovariance`: a sparse covariance matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from gramercy.estimators.scikit import SparseCovariance
    >>> S = np.array([[1.0, 0.5, 0.02], [0.5, 1.0, -0.01], [0.02, -0.01, 1.0]])
    >>> SparseCovariance(threshold=0.1).fit_matrix(S, 1000).covariance_
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    spec = ThresholdedCovariance


class NeighbourhoodGraph(MatrixEstimator):
    """`estimators.neighbourhood.NeighbourhoodSelection`: a graph only."""

    spec = NeighbourhoodSelection
    has_moments = False


class ScioPrecision(MatrixEstimator):
    """`estimators.scio.Scio`: a sparse precision matrix, estimated column by column."""

    spec = Scio


class ClimePrecision(MatrixEstimator):
    """`estimators.clime.Clime`: a sparse precision matrix, estimated column by column."""

    spec = Clime


class WishartPriorPrecision(MatrixEstimator):
    """`estimators.wishart_prior.WishartPrior`: a sparse precision matrix, in closed form."""

    spec = WishartPrior


class DiscoveredGraph(MatrixEstimator):
    """`estimators.discoveries.Discoveries`: a graph with a stated false discovery rate."""

    spec = Discoveries
    has_moments = False
