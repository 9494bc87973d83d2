"""One class for each estimator in the style of scikit-learn."""

from __future__ import annotations

from typing import Literal

from gramercy.estimators.discoveries import Discoveries
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.neighbourhood import NeighbourhoodSelection
from gramercy.estimators.ridge import Ridge
from gramercy.estimators.scikit.fitted import MatrixEstimator
from gramercy.estimators.scio import Scio
from gramercy.estimators.threshold import ThresholdedCovariance
from gramercy.estimators.tuning.selection import Rule
from gramercy.estimators.wishart_prior import WishartPrior

Auto = Literal["auto"]
Input = Literal["denoised", "raw"]


class RidgePrecision(MatrixEstimator):
    """`estimators.ridge.Ridge`: a dense precision matrix."""

    spec = Ridge

    def __init__(
        self,
        penalty: Literal["auto", "cross-validation"] | float = "auto",
        input: Input = "denoised",
    ) -> None:
        self.penalty = penalty
        self.input = input


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

    def __init__(
        self,
        penalty: Auto | Rule | float = "auto",
        input: Input = "denoised",
        penalize_diagonal: bool = False,
        refit: bool = False,
        scale: Literal["covariance", "correlation"] = "covariance",
    ) -> None:
        self.penalty = penalty
        self.input = input
        self.penalize_diagonal = penalize_diagonal
        self.refit = refit
        self.scale = scale


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

    def __init__(
        self,
        rule: Literal["hard", "soft"] = "hard",
        threshold: Literal["auto", "wx", "wx-local", "lw", "lw-local"] | float = "auto",
        constant: Auto | float = "auto",
        keep_diagonal: bool = True,
    ) -> None:
        self.rule = rule
        self.threshold = threshold
        self.constant = constant
        self.keep_diagonal = keep_diagonal


class NeighbourhoodGraph(MatrixEstimator):
    """`estimators.neighbourhood.NeighbourhoodSelection`: a graph only."""

    spec = NeighbourhoodSelection
    has_moments = False

    def __init__(self, rule: Literal["and", "or"] = "and", penalty: Auto | float = "auto") -> None:
        self.rule = rule
        self.penalty = penalty


class ScioPrecision(MatrixEstimator):
    """`estimators.scio.Scio`: a sparse precision matrix, estimated column by column."""

    spec = Scio

    def __init__(self, penalty: Auto | float = "auto") -> None:
        self.penalty = penalty


class WishartPriorPrecision(MatrixEstimator):
    """`estimators.wishart_prior.WishartPrior`: a sparse precision matrix, in closed form."""

    spec = WishartPrior

    def __init__(self, strength: Auto | float = "auto", level: float = 0.95) -> None:
        self.strength = strength
        self.level = level


class DiscoveredGraph(MatrixEstimator):
    """`estimators.discoveries.Discoveries`: a graph with a stated false discovery rate."""

    spec = Discoveries
    has_moments = False

    def __init__(
        self,
        of: Literal["correlation", "partial-correlation"] = "partial-correlation",
        rate: float = 0.05,
        dependence: Literal["independent", "any"] = "independent",
    ) -> None:
        self.of = of
        self.rate = rate
        self.dependence = dependence
