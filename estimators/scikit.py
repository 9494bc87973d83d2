"""The estimators in the style of scikit-learn: ``fit``, ``covariance_``, ``precision_``.

Each has the settings of its estimator, where they are explained, and nothing of its own. What `fit`
takes is an opened release, its `Evidence`, or rows that are not private; `fit_matrix` takes a
second moment and its noise law. See `estimators.fitted.MatrixEstimator`.

>>> import numpy as np
>>> from estimators.scikit import RidgePrecision
>>> rows = np.array([[1.0, 0.5], [-1.0, 0.5], [0.0, -1.0], [1.0, 1.0]])
>>> RidgePrecision(penalty=0.1).fit(rows).precision_.round(2)
array([[ 1.09, -0.25],
       [-0.25,  1.21]])
"""

from __future__ import annotations

from typing import Literal

from estimators.choosing import Rule
from estimators.classifier import DiscriminantClassifier
from estimators.discoveries import Discoveries
from estimators.fitted import MatrixEstimator
from estimators.graphical_lasso import GraphicalLasso
from estimators.neighbourhood import NeighbourhoodSelection
from estimators.ridge import Ridge
from estimators.scio import Scio
from estimators.threshold import ThresholdedCovariance

Auto = Literal["auto"]
Input = Literal["denoised", "raw"]

__all__ = [
    "DiscoveredGraph",
    "DiscriminantClassifier",
    "MatrixEstimator",
    "NeighbourhoodGraph",
    "RidgePrecision",
    "ScioPrecision",
    "SparseCovariance",
    "SparsePrecision",
]


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
    """`estimators.graphical_lasso.GraphicalLasso`: a sparse precision matrix."""

    spec = GraphicalLasso

    def __init__(
        self,
        penalty: Auto | Rule | float = "auto",
        input: Input = "denoised",
        penalize_diagonal: bool = False,
        refit: bool = False,
    ) -> None:
        self.penalty = penalty
        self.input = input
        self.penalize_diagonal = penalize_diagonal
        self.refit = refit


class SparseCovariance(MatrixEstimator):
    """`estimators.threshold.ThresholdedCovariance`: a sparse covariance matrix."""

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
    """`estimators.neighbourhood.NeighbourhoodSelection`: a graph, and no matrix of moments."""

    spec = NeighbourhoodSelection
    has_moments = False

    def __init__(self, rule: Literal["and", "or"] = "and", penalty: Auto | float = "auto") -> None:
        self.rule = rule
        self.penalty = penalty


class ScioPrecision(MatrixEstimator):
    """`estimators.scio.Scio`: a sparse precision matrix, made column by column."""

    spec = Scio

    def __init__(self, penalty: Auto | float = "auto") -> None:
        self.penalty = penalty


class DiscoveredGraph(MatrixEstimator):
    """`estimators.discoveries.Discoveries`: a graph with a stated rate of false edges."""

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
